"""Lanes in Spark's state store: a snapshot, and a log of the rows since, from which a lane is rebuilt."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

import polars as pl
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from querycloak.keys import derive
from querycloak.spark.checkpoint import other_plan
from querycloak.spark.stage_worker import StreamWorker
from querycloak.spark.transfer import Plan, lanes_apart, pack, shuffle_lanes, unpack

#: What is kept of a lane, beside its journal: whose it is, how far it came, and what became of its rows.
HEAD: Final = (
    "mark binary, place int, number long, chain binary, kept long, since long, "
    "accepted long, released long, held long, dropped string"
)
#: A lane's journal: first a snapshot, if there is one yet, then one entry for each micro-batch since. Entries
#: are cut into parts, each a value of its own: none comes near the 2 GB that Spark can hold in one.
JOURNAL: Final = ("number long, part int", "chain binary, snapshot boolean, data binary")
ENTRY: Final = tuple(part.split()[0] for part in ", ".join(JOURNAL).split(", "))
PART: Final = 1 << 24
_NAMES: Final = tuple(part.split()[0] for part in HEAD.split(", "))
_NEW: Final = {"number": 0, "chain": b"", "kept": 0, "since": 0}
#: A new snapshot is written when the entries since take more room than the last one, and than this.
LEAST: Final = 1 << 16
#: Lanes that a Python worker keeps alive between micro-batches.
ALIVE: Final = 64

#: Lanes of this worker by (plan, place, lane), each with the chain of all rows that it has seen.
_alive: OrderedDict[tuple[bytes, int, int], tuple[bytes, StreamWorker]] = OrderedDict()


@cache
def mark_of(plan: Plan) -> bytes:
    """Return a keyed hash of methods, settings, columns and lanes, which identifies a plan."""
    stages = [(stage.method, stage.settings.as_dict()) for stage in plan.stages]
    facts = json.dumps([stages, plan.columns, plan.parts], sort_keys=True)
    return derive(plan.key, "stream", facts)


def check_mark(plan: Plan, mark: bytes) -> None:
    """Refuse a state of other methods, settings or secrets."""
    if mark != mark_of(plan):
        raise other_plan()


def _joined(parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for part in sorted(parts, key=lambda one: (one["number"], one["part"])):
        found.setdefault(part["number"], {**part, "data": []})["data"].append(bytes(part["data"]))
    return [{**entry, "data": b"".join(entry["data"])} for entry in found.values()]


def rebuilt(
    plan: Plan, place: int, parts: Iterable[dict[str, Any]], known: tuple[bytes, StreamWorker] | None = None
) -> StreamWorker:
    """Rebuild a lane from its log; continue with a cached one if it has seen the beginning of the log."""
    entries = _joined(parts)
    chains = [bytes(entry["chain"]) for entry in entries]
    if known is not None and known[0] in chains:
        run, since = known[1], chains.index(known[0]) + 1
    elif entries and entries[0]["snapshot"]:
        run, since = StreamWorker.load(plan, place, entries[0]["data"]), 1
    else:
        run, since = StreamWorker(plan, place), 0
    for entry in entries[since:]:
        run.push(unpack(entry["data"]))
    return run


def route(plan: Plan, place: int, left: pl.DataFrame) -> list[tuple[int, bytes]]:
    """Pack released rows for the lanes of the next method, or shuffled for the sink."""
    if not left.height:
        return []
    lane = shuffle_lanes(left, plan.key, plan.parts) if plan.is_last(place) else left["_lane"].to_numpy()
    return lanes_apart(left.drop("_lane"), lane)


class Lanes(StatefulProcessor):
    """One method of a plan as an operator of Spark, keyed by lane."""

    def __init__(self, plan: Plan, place: int) -> None:
        self._plan, self._place = plan, place

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state; Spark calls this on the driver too, which has no rows."""
        self._head = handle.getValueState("head", HEAD)
        self._journal = handle.getMapState("journal", *JOURNAL)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Push the rows of a micro-batch; store them, or a snapshot instead; yield released rows."""
        lane, mark = int(key[0]), mark_of(self._plan)
        came = pl.concat([unpack(bytes(row["payload"])) for row in rows]).sort("_row")
        found = self._head.get()
        head: dict[str, Any] = dict(zip(_NAMES, found, strict=True)) if found else {"mark": mark, **_NEW}
        check_mark(self._plan, bytes(head["mark"]))
        run = self._lane(lane, bytes(head["chain"]))
        left = run.push(came)
        head |= self._keep(run, head, pack(came))
        head |= {"accepted": run.accepted, "released": run.released, "held": run.held}
        head |= {"place": self._place, "dropped": json.dumps(run.reasons(), sort_keys=True)}
        self._head.update(tuple(head[name] for name in _NAMES))
        _alive[mark, self._place, lane] = head["chain"], run
        while len(_alive) > ALIVE:
            _alive.popitem(last=False)
        for number, payload in route(self._plan, self._place, left):
            yield Row(lane=number, payload=payload)

    def _lane(self, lane: int, chain: bytes) -> StreamWorker:
        """Return the lane of this state: from the cache if it has seen the same rows, else rebuilt.

        It is removed from the cache meanwhile: after a failure the next attempt starts from the state.
        """
        known = _alive.pop((mark_of(self._plan), self._place, lane), None)
        if known is not None and known[0] == chain:
            return known[1]
        found = self._journal.iterator()
        parts = [dict(zip(ENTRY, (*name, *value), strict=True)) for name, value in found]
        return rebuilt(self._plan, self._place, parts, known)

    def _keep(self, run: StreamWorker, head: dict[str, Any], data: bytes) -> dict[str, Any]:
        """Append rows to the log, or replace it by a snapshot; return its new position."""
        number, kept, since = head["number"] + 1, head["kept"], head["since"] + len(data)
        chain = hashlib.blake2b(data, key=bytes(head["chain"]), digest_size=32).digest()
        if since <= max(kept, LEAST):
            self._write(number, chain, False, data)
        else:
            snapshot = run.dump()
            self._journal.clear()
            self._write(number, chain, True, snapshot)
            kept, since = len(snapshot), 0
        return {"number": number, "chain": chain, "kept": kept, "since": since}

    def _write(self, number: int, chain: bytes, snapshot: bool, data: bytes) -> None:
        for part, start in enumerate(range(0, len(data), PART)):
            self._journal.updateValue((number, part), (chain, snapshot, data[start : start + PART]))

    def close(self) -> None:
        """Do nothing: cached lanes serve the next micro-batch."""
