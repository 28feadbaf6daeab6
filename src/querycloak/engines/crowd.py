"""Runs a study of a simulated crowd: network, queries, measures, and the search engine's view as a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak import formats
from querycloak.clients.crowd import adversary, network, outcome, simulator
from querycloak.clients.crowd.simulator import Behaviour, Trace
from querycloak.dictionary import distinct
from querycloak.engines.release import truth_bytes
from querycloak.errors import DataError, UsageError
from querycloak.files import check_outputs
from querycloak.keys import write_private
from querycloak.log import Log

Progress = Callable[[str, int, int | None], None]
#: Queries that fit into sixteen gigabytes.
MOST_QUERIES: Final = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Study:
    """What to simulate: made-up queries of so many users, or a log's, in a made-up network or one's own."""

    users: int | None = None
    queries: int | None = None
    log: str | None = None
    edges: str | None = None
    exponent: float = 1.5
    most_friends: int = 10
    behaviour: Behaviour = field(default_factory=Behaviour)
    attack: bool = True
    output: str | None = None
    truth: Path | None = None
    seed: int = 0
    reading: dict[str, Any] = field(default_factory=dict)


def study(what: Study, progress: Progress) -> dict[str, Any]:
    """Simulate, and give the columns of the thesis's tables."""
    _check(what)
    log = _read(what) if what.log else None
    people = log.frame["user"].n_unique() if log is not None else what.users
    net = _network(what, people)
    author, query = _searches(what, log, net)
    trace = simulator.simulate(
        net, author, what.behaviour, what.seed, lambda done, whole: progress("simulate", done, whole)
    )
    found = outcome.summary(trace, query)
    if what.attack:
        found["engine"] = adversary.engine(trace, what.seed)
        if what.behaviour.colluding:
            found["predecessor"] = adversary.predecessor(trace)
    if what.output and log is not None:
        _write(what, log, trace)
    return found


def _read(what: Study) -> Log:
    """Read a log in the order in which people searched: trust comes and goes with time."""
    assert what.log is not None
    log = formats.read(what.log, **what.reading)
    timed = "time" in log.frame.columns
    return log.with_frame(log.frame.sort("time", maintain_order=True)) if timed else log


def _check(what: Study) -> None:
    if what.log is None and (what.queries is None or (what.users is None and what.edges is None)):
        raise UsageError("say how many `--users` and `--queries`, or give a `--log`")
    if what.log is not None and (what.queries is not None or what.users is not None):
        raise UsageError("a log has its own people and queries: leave out `--users` and `--queries`")
    if what.queries is not None and what.queries > MOST_QUERIES:
        raise UsageError(f"a simulation has at most {MOST_QUERIES:,} queries")
    if bool(what.output) != bool(what.truth) or (what.output and what.log is None):
        raise UsageError("`--output` needs a `--log`, and a `--truth` beside it")
    check_outputs([what.output, what.truth], [what.log, what.edges])


def _network(what: Study, people: int | None) -> network.Network:
    """Make up a network, or read one that is large enough."""
    if what.edges is None:
        assert people is not None
        return network.power_law(people, what.seed, what.exponent, what.most_friends)
    found, _ = network.read_edges(what.edges)
    if people is not None and people != found.users and (what.log is None or people > found.users):
        raise DataError(f"the edge list has {found.users:,} users, not {people:,}")
    return found


def _searches(what: Study, log: Log | None, net: network.Network) -> tuple[Any, Any]:
    """Return whose each query is and, of a log, which text; the log's people sit anywhere in the network."""
    if log is None:
        assert what.queries is not None
        return simulator.authors(net.users, what.queries, what.seed), None
    person = distinct(log.frame["user"])[1]
    seat = np.random.default_rng([what.seed, 4]).permutation(net.users)[: int(person.max(initial=-1)) + 1]
    return seat[person].astype(np.int32), distinct(log.frame["query"])[1]


def _write(what: Study, log: Log, trace: Trace) -> None:
    """Write what the search engine sees, with the submitter as user, and beside it whose each query was."""
    assert what.output is not None
    assert what.truth is not None
    frame = log.frame
    names, person = distinct(frame["user"])
    member = np.full(trace.network.users, -1, np.int64)
    member[trace.author] = person
    shown = names.to_list() + [f"member-{n}" for n in np.flatnonzero(member < 0).tolist()]
    member[member < 0] = np.arange(len(names), len(shown))
    label = pl.Series(shown)
    columns = {"user": label[member[trace.told["submitter"]]]}
    if what.behaviour.colluding:
        seen = trace.told["seen"]
        columns["handed_by"] = label[member[np.maximum(seen, 0)]].zip_with(
            pl.Series(seen >= 0), pl.Series([None] * len(seen), dtype=pl.String)
        )
    emptied = {"url": pl.lit(None, pl.String), "rank": pl.lit(None, pl.Int64)}
    seen_log = frame.with_columns(**columns, **{n: e for n, e in emptied.items() if n in frame.columns})
    layout = formats.layout_for(what.output, like=log.layout)
    if what.behaviour.colluding and layout.format in ("aol", "excite"):  # they have no more columns
        layout = formats.layout_for(what.output, format="tsv", columns=seen_log.columns)
    truth = pl.DataFrame(
        {
            "released_row": np.arange(len(frame)),
            "original_row": frame["row"],
            "original_user": frame["user"],
            "released_after": frame["row"] + 1,
        }
    )
    try:
        write_private(what.truth, truth_bytes(truth))
    except OSError:
        raise UsageError("the truth cannot be written there") from None
    formats.write(seen_log, what.output, layout.adding(seen_log.columns), private=True)
