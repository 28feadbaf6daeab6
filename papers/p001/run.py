"""Reproduces paper 001 on a synthetic log: what `km` keeps for advertising, by target, k and m."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from papers.common import study
from papers.common.results import Line
from papers.p001.results import COLUMNS, KS, MS
from querycloak.dictionary import Dictionary
from querycloak.log import Batch
from querycloak.methods.km import targets
from querycloak.methods.km.audit import rare
from querycloak.methods.km.deletion import HistoryTerms
from querycloak.methods.shared.terms import TermOccurrences, Tokenizer
from querycloak.synthetic import generate
from querycloak.synthetic.marketing import marketing

SEARCHES = 5  # of each user, about as many as in the paper's one day
CHECKED_KS = (2, 100)
KEY = b"paper 001, made-up log, one key."


def left_of(target: str, entries: HistoryTerms, kept: Any, values: Any) -> float:
    """Return how much of what a target counts is left."""
    left = entries[kept]
    if target == "distinct":
        return float(np.count_nonzero(left.supports()))
    if target == "users":
        return float(np.unique(left.person).size)
    own = values if values is not None and target in (*targets.MARKETING, "file") else np.ones(entries.terms)
    return float((own[left.term] * left.times).sum())


@dataclass(frozen=True)
class Workload:
    """The first searches of many users as entries, and what each term is worth by target."""

    entries: HistoryTerms
    values: dict[str, Any]
    about: dict[str, Any]

    @classmethod
    def of(cls, users: int, seed: int) -> Workload:
        """Generate a log; keep the first searches of each user; clicks do not count twice."""
        log = generate(users, seed=seed).frame.select("user", "query", "time").unique(maintain_order=True)
        log = log.sort("time", "user", "query").group_by("user", maintain_order=True).head(SEARCHES)
        figures = marketing(log, seed=seed)
        queries, terms = Dictionary(), Dictionary()
        people, code = Dictionary().encode(log["user"]), queries.encode(log["query"])
        held = Batch.of({"row": np.arange(log.height), "user": people, "query": code}, None)  # type: ignore[arg-type]
        uses = TermOccurrences.of(held, Tokenizer(queries, terms), None)
        prints = terms.fingerprints(np.arange(len(terms.texts())), KEY)
        keyed = np.random.default_rng(seed).integers(0, 1 << 63, int(people.max()) + 1).astype(np.uint64)
        entries, _ = uses.entries(people, np.arange(keyed.size), keyed, prints, KEY)
        worth = pl.DataFrame({"term": terms.texts()}).join(
            figures, on="term", how="left", maintain_order="left"
        )
        worth = worth.with_columns(revenue=pl.col("bid") * pl.col("clicks"))
        values = {name: worth[name].fill_null(0.0).cast(pl.Float64).to_numpy() for name in targets.MARKETING}
        sizes = np.bincount(entries.history)
        about = {
            "users": int(sizes.size),
            "terms": entries.terms,
            "user_terms": len(entries),
            "occurrences": int(entries.times.sum()),
            "longest_history": int(sizes.max()),
            "pairs_of_terms_in_histories": int((sizes * (sizes - 1) // 2).sum()),
        }
        return cls(entries, values, about | {"correlations": correlations(entries, values)})

    def retention(self, alive: Any) -> dict[str, float]:
        """Return in percent what is left of the seven things that the paper looks at."""
        every = np.ones(len(self.entries), np.bool_)
        return {
            name: 100
            * left_of(name, self.entries, alive, self.values.get(name))
            / left_of(name, self.entries, every, self.values.get(name))
            for name in COLUMNS
        }


def correlations(entries: HistoryTerms, values: dict[str, Any]) -> dict[str, float]:
    """Return Pearson's correlation of each two figures of terms, as the paper's Table 3."""
    own = {
        "term frq.": np.bincount(entries.term, entries.times, minlength=entries.terms),
        "user frq.": entries.supports().astype(np.float64),
    } | values
    names = list(own)
    return {
        f"{a} / {b}": round(float(np.corrcoef(own[a], own[b])[0, 1]), 3)
        for place, a in enumerate(names)
        for b in names[place + 1 :]
    }


class Plan(NamedTuple):
    """A target at one k and m."""

    target: str
    k: int
    m: int

    @property
    def name(self) -> str:
        """Name of the line."""
        return f"greedy {self.target} k={self.k} m={self.m}"


@dataclass
class Study(study.Study):
    """`km` for every target, k and m of the paper, and for m=4."""

    name = "p001"
    users: int = 367_803
    seed: int = 3

    def __post_init__(self) -> None:
        if self.quick:
            self.users = 40_000

    @cached_property
    def work(self) -> Workload:
        """The log and the worth of its terms."""
        return Workload.of(self.users, self.seed)

    def identity(self) -> Line:
        """Return the seed; the number of users is that of the histories that are not empty."""
        return {"seed": self.seed}

    def about(self) -> Line:
        """Return the size of the log and the correlations of Table 3."""
        return self.work.about

    def plans(self) -> Iterator[Plan]:
        """Yield the settings of the paper, then those of a larger m."""
        ks = (2, 10) if self.quick else KS
        yield from (Plan(target, k, m) for m in MS for k in ks for target in targets.TARGETS)
        yield from (Plan("logsize", k, 4) for k in ks)

    def measure(self, plan: Plan) -> Line:
        """Run one setting; `random` is the mean of two runs, as in the paper."""
        work, (target, k, m) = self.work, plan
        begin = time.perf_counter()
        outcome = targets.greedy(target, k, m, work.entries, work.values.get(target))
        seconds = time.perf_counter() - begin
        kept = [work.retention(outcome.kept)]
        if target == "random":
            turned = replace(work.entries, draw=~work.entries.draw)
            again = targets.deletion(target, k, m, turned, None).run(turned)
            kept.append(work.retention(again.kept))
        line = plan._asdict() | {
            "kept": {name: sum(one[name] for one in kept) / len(kept) for name in COLUMNS},
            "seconds": round(seconds, 2),
            "rounds": outcome.rounds,
            "by_size": {str(size): count for size, count in outcome.by_size.items()},
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
        if k in CHECKED_KS:
            left = work.entries[outcome.kept]
            begin = time.perf_counter()
            bad = rare(left.history, left.term, np.zeros(len(left), np.int64), k, m)
            line |= {"holds": not bool(bad.any()), "check_seconds": round(time.perf_counter() - begin, 2)}
        return line
