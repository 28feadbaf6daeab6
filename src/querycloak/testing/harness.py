"""Harness for methods: runs them over a small log, also with erasures, and collects the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from querycloak.audits.evidence import Evidence
from querycloak.dictionary import Dictionaries
from querycloak.engines.codec import Released, decode, encode_and_register
from querycloak.engines.pipeline import Pipeline
from querycloak.engines.record_store import RecordStore
from querycloak.engines.state_codec import compact_dictionaries
from querycloak.engines.time_order import in_order
from querycloak.log import Batch, IntArray
from querycloak.protector import Protector, Traits
from querycloak.settings import Settings

_TEXTS = ("user", "query", "url", "category")
KEY = b"a key for tests, of thirty-two b"


class Harness:
    """A method and a log to try it on: builds instances, runs them, and returns the evidence for audits."""

    def __init__(
        self,
        method: type[Protector],
        settings: Settings,
        log: pl.DataFrame,
        texts: Dictionaries | None = None,
    ) -> None:
        self.method, self.settings = method, settings
        self.frame = in_order(log, KEY)
        self.texts = texts or Dictionaries()
        self.batch = encode_and_register(self.frame, self.pipeline(self.make()), 0)

    @property
    def traits(self) -> Traits:
        """The properties of the method with these settings."""
        return self.method.traits(self.settings)

    def make(self, key: bytes = KEY) -> Protector:
        """Build a fresh instance on the shared dictionary."""
        return self.method(self.settings, key, self.texts)

    def pipeline(self, method: Protector) -> Pipeline:
        """Return a pipeline with this method alone, as engines run it."""
        pipeline = Pipeline([], method.key, method.texts)
        pipeline.use([method], [method.traits(method.settings)])
        return pipeline

    def run(self, at: Sequence[int] = (), method: Protector | None = None) -> Batch:
        """Run a fresh instance over the log, cut at these places."""
        pipeline = self.pipeline(method or self.make())
        released = Batch.empty(self.texts)
        for piece in cut(self.batch, at):
            released += pipeline.push(piece)
        return released + pipeline.close_at(self.frame.height)

    @cached_property
    def whole(self) -> Batch:
        """What a fresh instance releases of the log in one piece, for checks to share."""
        return self.run()

    def moves(self, key: bytes) -> tuple[Batch, Batch]:
        """Return what is released under this key while the log is read, and what its end releases."""
        pipeline = self.pipeline(self.make(key))
        return pipeline.push(self.batch), pipeline.close_at(self.frame.height)

    def labels(self, key: bytes) -> set[str]:
        """Return the labels of a release under this key."""
        method = self.make(key)
        shown = self.evidence(method, self.run((), method)).text().collect()
        return set(shown["user"].drop_nulls()) if "user" in shown.columns else set()

    def draws(self, key: bytes) -> list[tuple[Any, ...]]:
        """Return the released records by input row, each with the user for whom its label stands."""
        method = self.make(key)
        out, pipeline = self.run((), method), self.pipeline(method)
        pipeline.register_users(self.batch.user)
        users = pipeline.users_of_labels(out.user).to_list() if len(out) else []
        columns = (out.row.tolist(), users, *(getattr(out, name).tolist() for name in ("query", "category")))
        return sorted(zip(*columns, strict=True))

    def counts(self, method: Protector) -> pl.DataFrame:
        """Return the table of a method that has ended, as the engine would write it."""
        return self.pipeline(method).counts()

    def evidence(self, method: Protector, released: Batch) -> Evidence:
        """Return what a method released so far, as an audit sees it; for a table, after its end."""
        pending = RecordStore()
        pending.add(self.frame)
        pipeline = self.pipeline(method)
        pipeline.register_users(self.batch.user)
        return self.evidence_of(method, decode(pipeline, released, pending))

    def evidence_of(self, method: Protector, shown: Released, erased: pl.DataFrame | None = None) -> Evidence:
        """Return the evidence of a release, with the users who were erased meanwhile."""
        own = self.traits
        frame = self.counts(method) if own.is_table else shown.frame
        release = frame.with_row_index("released_row").cast({"released_row": pl.Int64})
        truth = shown.truth.with_row_index("released_row").cast({"released_row": pl.Int64})
        return Evidence(
            release.lazy(),
            self.frame.lazy(),
            truth.lazy(),
            rewritten="query" in own.rewrites,
            table=own.is_table,
            erased=None if erased is None else erased.lazy(),
        )


def cut(batch: Batch, at: Sequence[int]) -> Iterator[Batch]:
    """Cut a batch into pieces at these places; some may be empty."""
    places = [0, *sorted(min(place, len(batch)) for place in at), len(batch)]
    for start, end in pairwise(places):
        yield batch[start:end]


def spelled_rows(batch: Batch) -> list[tuple[object, ...]]:
    """Return a batch as plain tuples with texts in the place of their codes, to compare over dictionaries."""
    columns = {name: getattr(batch, name).tolist() for name in Batch.COLUMNS}
    columns |= {name: getattr(batch.texts, name).decode(getattr(batch, name)).to_list() for name in _TEXTS}
    return list(zip(*columns.values(), strict=True))


def rows(batch: Batch) -> list[tuple[int, ...]]:
    """Return a batch as plain tuples, to compare."""
    return list(zip(*(getattr(batch, name).tolist() for name in Batch.COLUMNS), strict=True))


def has_ties(batch: Batch) -> bool:
    """Whether some records are released at one moment and have one time."""
    return len(set(zip(batch.seq.tolist(), batch.time.tolist(), strict=True))) < len(batch)


def in_input_order(batch: Batch) -> bool:
    """Whether records that are released at one moment and have one time are in the order of their rows."""
    last: dict[tuple[int, int], int] = {}
    for seq, time, row in zip(batch.seq.tolist(), batch.time.tolist(), batch.row.tolist(), strict=True):
        if row < last.get((seq, time), row):
            return False
        last[seq, time] = row
    return True


class ErasureRun:
    """A log in pieces; after each but the last, one or two of the users so far are erased.

    From then on they have another id. With `audited`, released records are decoded at once, as an engine
    does: later the method does not know who was erased.
    """

    def __init__(self, harness: Harness, at: Sequence[int], *, audited: bool = False) -> None:
        ends = sorted(min(place, len(harness.batch)) for place in at)
        self.harness, names = _with_returns(harness, ends)
        self.texts, self._ends = self.harness.texts, [*ends, len(harness.batch)]
        self.pieces = list(cut(self.harness.batch, at))
        names += [[] for _ in range(len(self.pieces) - len(names))]
        self.victims = [self.texts.user.intern(some) for some in names]
        self._set_up(self.texts)
        self._audited, self._released = audited, list[Released]()
        self._erased: list[tuple[str, int]] = []
        self._names = names
        self._pending = RecordStore()
        self._pending.add(self.harness.frame)
        self.shown = Batch.empty(self.texts)

    def _set_up(self, texts: Dictionaries) -> None:
        self.texts = texts
        self.method = self.harness.method(self.harness.settings, KEY, texts)
        self._pipeline = self.harness.pipeline(self.method)
        self._pipeline.register_users(self.harness.batch.user)

    def push(self, place: int) -> Batch:
        """Push a piece and return what is released."""
        return self._note(self._pipeline.push(self._in_codes(self.pieces[place])))

    def push_one_by_one(self, place: int) -> None:
        """Push the records of a piece each by itself."""
        for record in cut(self.pieces[place], range(1, len(self.pieces[place]))):
            self._note(self._pipeline.push(self._in_codes(record)))

    def _in_codes(self, piece: Batch) -> Batch:
        """Return a piece in the codes of the dictionaries that are in use now."""
        if self.texts is piece.texts:
            return piece
        columns = {
            name: getattr(self.texts, name).encode(getattr(piece.texts, name).decode(np.array(codes)))
            for name, codes in (("query", piece.query), ("url", piece.url), ("category", piece.category))
        }
        return Batch(**(piece.arrays() | columns), texts=self.texts)

    def close(self) -> Batch:
        """End the input and return what is released."""
        return self._note(self._pipeline.close_at(self.harness.frame.height))

    def _note(self, out: Batch) -> Batch:
        if self._audited:
            self._released.append(decode(self._pipeline, out, self._pending))
        self.shown += out
        return out

    def erase(self, place: int) -> None:
        """Erase the users whose turn it is after a piece."""
        users = self.victims[place]
        if users.size:
            self._pipeline.erase(users, np.setdiff1d(self.rows_of(place), self.shown.row))
            self._erased += [(name, self._read(place)) for name in self._names[place]]

    def _read(self, place: int) -> int:
        return int(self.harness.batch.seq[: self._ends[place]].max(initial=0))

    def rows_of(self, place: int) -> IntArray:
        """Return the input rows, up to the end of a piece, of the users who are erased then."""
        so_far = self.harness.batch[: self._ends[place]]
        return so_far.row[np.isin(so_far.user, self.victims[place])]

    def forgotten(self, place: int, column: str) -> set[str]:
        """Return the texts that only erased users had sent by the end of a piece."""
        so_far = self.harness.batch[: self._ends[place]]
        theirs = np.isin(so_far.user, np.concatenate(self.victims[: place + 1]))
        dictionary = getattr(self.harness.texts, column)
        own, others = (
            set(dictionary.decode(np.array(getattr(so_far, column)[which])).drop_nulls())
            for which in (theirs, ~theirs)
        )
        return own - (_with_ancestors(others) if column == "category" else others)

    def restart(self) -> None:
        """Continue in a new instance."""
        state = {name: array.copy() for name, array in self._pipeline.snapshot().items()}
        self._set_up(self.texts)
        self._pipeline.restore(state)

    def recode(self) -> None:
        """Continue in a new instance with new dictionaries."""
        new = Dictionaries()
        state = compact_dictionaries(self._pipeline.snapshot(), self._pipeline, self.texts, new)
        self._set_up(new)
        self._pipeline.restore(state)

    def to_the_end(self) -> ErasureRun:
        """Push, erase and close everything."""
        for place in range(len(self.pieces)):
            self.push(place)
            self.erase(place)
        self.close()
        return self

    def evidence(self) -> Evidence:
        """Return what was released so far, as an audit sees it."""
        shown = Released(
            pl.concat([part.frame for part in self._released]),
            pl.concat([part.truth for part in self._released]),
        )
        schema = {"user": pl.String, "erased_after": pl.Int64}
        erased = pl.DataFrame(self._erased, schema=schema, orient="row")
        return self.harness.evidence_of(self.method, shown, erased)


def _with_ancestors(paths: set[str]) -> set[str]:
    """Add the categories above: methods count by them too."""
    return paths | {path[:place] for path in paths for place, sign in enumerate(path) if sign == "/"}


def _with_returns(harness: Harness, ends: list[int]) -> tuple[Harness, list[list[str]]]:
    """Choose users to erase at these places; return a harness with new ids for them from then on."""
    frame = harness.frame
    name = dict(zip(frame["row"].to_list(), frame["user"].to_list(), strict=True))
    of_search: dict[int, list[int]] = {}
    for row, head in zip(frame["row"].to_list(), frame["_head"].to_list(), strict=True):
        of_search.setdefault(head, []).append(row)
    searches, chosen = harness.batch.row.tolist(), list[list[str]]()
    gone: set[str] = set()
    for turn, end in enumerate(ends):
        here = sorted({name[head] for head in searches[:end]} - gone)
        picks = (7 * end + turn, 3 * end + turn + 1)[: 1 + (len(here) > 3)]
        some = sorted({here[pick % len(here)] for pick in picks}) if here else []
        gone |= set(some)
        for row in (row for head in searches[end:] for row in of_search[head]):
            name[row] += "~" if name[row] in some else ""
        chosen.append(some)
    users = pl.Series("user", [name[row] for row in frame["row"].to_list()], dtype=pl.String)
    log = frame.drop("_when", "_place", "_head").with_columns(users)
    return Harness(harness.method, harness.settings, log), chosen
