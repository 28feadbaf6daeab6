"""A study of a simulated crowd: network, queries, metrics, attacks, and the search engine's view as a log."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak import formats
from querycloak.clients.crowd import attackers, metrics, network, simulator
from querycloak.clients.crowd.network import Ints, Network
from querycloak.clients.crowd.simulator import Behaviour, Trace
from querycloak.dictionary import distinct
from querycloak.errors import DataError, UsageError
from querycloak.files import check_outputs
from querycloak.log import IntArray, Log
from querycloak.truth import check_truth_path, write_truth

Progress = Callable[[str, int, int | None], None]
#: Largest number of queries: they take sixteen gigabytes.
MAX_QUERIES: Final = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Study:
    """What to simulate: synthetic queries or those of a log, in a random network or a given one."""

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


def simulate_crowd(
    *,
    cut: tuple[float, float],
    seed: int | None,
    truth: str | None = None,
    progress: Progress,
    **options: Any,
) -> dict[str, Any]:
    """Simulate friends who submit each other's queries; return the columns of the thesis's tables.

    Options are those of a study and its behaviour.
    """
    own = {f.name: options.pop(f.name) for f in fields(Behaviour) if f.name in options}
    study = Study(
        behaviour=Behaviour(least_cut=cut[0], most_cut=cut[1], **own),
        seed=secrets.randbits(32) if seed is None else seed % 2**63,
        truth=Path(truth) if truth else None,
        **options,
    )
    _check(study)
    log = _read(study.log, study.reading) if study.log else None
    users = log.frame["user"].n_unique() if log is not None else study.users
    net, names = _network(study, users)
    if log is None:
        assert study.queries is not None
        author, query = simulator.authors(net.users, study.queries, study.seed), None
    else:
        author, query = _place(log, names, net, study.seed), distinct(log.frame["query"])[1]
    trace = simulator.simulate(
        net, author, study.behaviour, study.seed, lambda done, whole: progress("simulate", done, whole)
    )
    found = metrics.summary(trace, query)
    if study.attack:
        found["engine"] = attackers.engine(trace, study.seed)
        if study.behaviour.colluding:
            found["predecessor"] = attackers.predecessor(trace)
    if study.output and log is not None:
        _write(study, log, trace)
    return found


def _read(path: str, reading: dict[str, Any]) -> Log:
    """Read a log in the order of its searches: trust changes with time."""
    log = formats.read(path, **reading)
    timed = "time" in log.frame.columns
    return log.with_frame(log.frame.sort("time", maintain_order=True)) if timed else log


def _check(study: Study) -> None:
    if study.log is None and (study.queries is None or (study.users is None and study.edges is None)):
        raise UsageError("no queries given", hint="use `--users` and `--queries`, or `--log`")
    if study.log is not None and (study.queries is not None or study.users is not None):
        raise UsageError("a log has its own users and queries: leave out `--users` and `--queries`")
    if study.queries is not None and study.queries > MAX_QUERIES:
        raise UsageError(f"a simulation has at most {MAX_QUERIES:,} queries")
    if bool(study.output) != bool(study.truth) or (study.output and study.log is None):
        raise UsageError("`--output` needs a `--log`, and a `--truth` beside it")
    check_outputs([study.output, study.truth], [study.log, study.edges])
    check_truth_path(study.truth)


def _network(study: Study, users: int | None) -> tuple[Network, list[str]]:
    if study.edges is None:
        assert users is not None
        return network.power_law(users, study.seed, study.exponent, study.most_friends), []
    found, names = network.read_edges(study.edges)
    if users is not None and users != found.users and (study.log is None or users > found.users):
        raise DataError(f"the edge list has {found.users:,} users, not {users:,}")
    return found, names


def _place(log: Log, names: list[str], net: Network, seed: int) -> Ints:
    """Return the author of each query: its user's place in the network.

    Users of the log are matched with the names of the edge list. If no name occurs in both, the users are
    placed at random.
    """
    users, user = distinct(log.frame["user"])
    place = np.random.default_rng([seed, 4]).permutation(net.users)[: len(users)]
    known = {name: number for number, name in enumerate(names)}
    matched = [known.get(str(name), -1) for name in users]
    missing = sum(number < 0 for number in matched)
    if missing and missing < len(users):
        raise DataError(
            f"{missing:,} of {len(users):,} users of the log are not in the edge list",
            hint="name all users of the log in the edge list, or none",
        )
    if names and not missing:
        place = np.array(matched)
    return place[user].astype(np.int32)


def _write(study: Study, log: Log, trace: Trace) -> None:
    """Write the search engine's view, with the submitter as user, and the ground truth."""
    assert study.output is not None
    assert study.truth is not None
    frame = log.frame
    label, member = _labels(log, trace)
    columns = {"user": label[member[trace.outcomes["submitter"]]]}
    if study.behaviour.colluding:
        seen = trace.outcomes["seen"]
        columns["handed_by"] = label[member[np.maximum(seen, 0)]].zip_with(
            pl.Series(seen >= 0), pl.Series([None] * len(seen), dtype=pl.String)
        )
    emptied = {"url": pl.lit(None, pl.String), "rank": pl.lit(None, pl.Int64)}
    seen_log = frame.with_columns(**columns, **{n: e for n, e in emptied.items() if n in frame.columns})
    layout = formats.Layout.for_output(study.output, like=log.layout)
    if study.behaviour.colluding and layout.fixed_columns:
        layout = formats.Layout.for_output(study.output, format="tsv", columns=seen_log.columns)
    truth = pl.DataFrame(
        {
            "released_row": np.arange(len(frame)),
            "original_row": frame["row"],
            "original_user": frame["user"],
            "released_after": frame["row"] + 1,
        }
    )
    write_truth(study.truth, truth)
    inputs = [study.log, study.edges]
    formats.write(seen_log, study.output, layout.adding(seen_log.columns), private=True, never_replace=inputs)


def _labels(log: Log, trace: Trace) -> tuple[pl.Series, IntArray]:
    """Return the labels of all members, and the number of each member's label; some searched nothing."""
    names, user = distinct(log.frame["user"])
    member = np.full(trace.network.users, -1, np.int64)
    member[trace.author] = user
    shown = names.to_list() + [f"member-{n}" for n in np.flatnonzero(member < 0).tolist()]
    member[member < 0] = np.arange(len(names), len(shown))
    return pl.Series(shown), member
