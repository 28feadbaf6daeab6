"""Reproduces chapter 5 of paper 003 on synthetic users: microaggregations and removals, and what is left."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

import querycloak as qc
from papers.common import study
from papers.common.results import Line
from papers.p003.mining import mined
from querycloak.measures.base import words_of

#: 1,000 users with at least so many records have about as many as the thesis's 1,000 (55,666).
LEAST, QUICK_USERS = 9, 120
KS = (2, 3, 4, 5, 6, 7, 8, 9, 10)
LARGE_KS = (20, 30, 35, 40, 50)  # the thesis goes to 50 with the syntactic method only
QUERIES_OF_EACH = (1, 2, 3, 5, 10, 15, 20)  # Korolova's d
DOCUMENTS = (1, 2, 3, 5, 10, 20, 30, 40)  # Poblete's K
ASKED_BY = (2, 3, 5, 10, 20)  # people; a yardstick for what is rare, without noise
EPSILON, DELTA = math.log(10), 1e-5  # Korolova's: the thesis names neither
MINED_KS, MINED_GROUPS = (3, 5, 10, 20, 30, 50), (2, 5, 10, 25, 50, 100, 200, 300, 400, 500)
TOP = 10
#: Methods by the names that the page gives them, with what sets them apart.
GROUPING: dict[str, tuple[str, dict[str, Any]]] = {
    "semantic": ("microagg-semantic", {}),
    "topic": ("microagg-topic", {"categories": 1}),
    "topic five": ("microagg-topic", {"categories": 5}),
    "syntactic": ("microagg-syntactic", {}),
    "plain": ("microagg-plain", {}),
}
MEASURES = (
    "profile_exposure",
    "information_loss_ratio",
    "semantic_remain",
    "record_linkage",
    "partition_loss",
    "top_preserved",
)


class Plan(NamedTuple):
    """One release to make and to measure."""

    kind: str
    method: str
    settings: dict[str, Any]
    at: int  # k, or what stands in its place

    @property
    def name(self) -> str:
        """Name of the line."""
        return "mining" if self.kind == "mining" else f"{self.kind} {self.at}"


def plans(quick: bool) -> Iterator[Plan]:
    """Yield what to measure."""
    for kind, (method, settings) in GROUPING.items():
        many = (2, 5, 10) if quick else KS + (LARGE_KS if kind in ("syntactic", "semantic") else ())
        yield from (Plan(kind, method, settings | {"k": k}, k) for k in many)
    for d in (1, 20) if quick else QUERIES_OF_EACH:
        scale, least = d / EPSILON, math.ceil(d * (1 - math.log(2 * DELTA / d) / EPSILON))
        settings = {"d": d, "K": least, "b": scale, "b_q": scale, "threshold-dp.output": "log"}
        yield Plan("threshold", "threshold-dp", settings, d)
    for least in (2,) if quick else ASKED_BY:
        yield Plan("frequent", "frequent-only", {"k": least}, least)
    for least in (2, 5) if quick else DOCUMENTS:
        yield Plan("graph", "graph-suppress", {"k": least, "sites": 0}, least)
        yield Plan("graph, no density", "graph-suppress", {"k": least, "sites": 0, "density": "off"}, least)
    yield Plan("graph, density alone", "graph-suppress", {"k": 0, "sites": 0, "targeted": "off"}, 0)
    yield Plan("mining", "", {}, 0)


def synthetic(users: int, seed: int) -> qc.Log:
    """Generate the log; one classifier gives each query its category, before and after."""
    whole = qc.generate(users=2 * users, seed=seed)
    often = whole.frame.group_by("user", maintain_order=True).len().filter(pl.col("len") >= LEAST)
    chosen = whole.frame.filter(pl.col("user").is_in(often["user"].head(users).to_list()))
    numbered = chosen.drop("row").with_row_index("row").cast({"row": pl.Int64})
    return qc.classify(whole.with_frame(numbered))


def measured(log: qc.Log, plan: Plan, seed: int) -> Line:
    """Make one release, and measure it by queries and by the classifier's categories."""
    begin, busy = time.perf_counter(), time.process_time()
    release = qc.protect(log, plan.method, seed=seed, **plan.settings)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - busy
    shown = classified(release)
    found = qc.measure(log, shown, MEASURES)
    before, after = (set(side.frame["query"].drop_nulls()) for side in (log, shown))
    asked, left = log.frame["user"].n_unique(), shown.frame["user"].n_unique()
    return {
        "kind": plan.kind,
        "at": plan.at,
        "settings": plan.settings,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "rows": len(shown) / len(log),
        "queries_left": len(before & after) / len(before),
        "people_left": left / asked,
        "linked": linked(release, log, seed),
        **{f"{name}.{figure}": value for name, part in found.items() for figure, value in part.items()},
        "top_queries": shares(log.frame["query"], shown.frame["query"]),
        "top_words": shares(words_of(log.frame["query"]), words_of(shown.frame["query"])),
    }


def classified(release: qc.Release) -> qc.Log:
    """Return the release with categories, and with the true user where labels are gone."""
    frame = release.log.frame.with_columns(category=pl.lit(None, pl.String))
    if "user" not in frame.columns or frame["user"].null_count() == len(frame):
        assert release.truth is not None
        frame = frame.with_columns(user=release.truth["original_user"])
    return qc.classify(release.log.with_frame(frame))


def linked(release: qc.Release, log: qc.Log, seed: int) -> float | None:
    """Return how often the best overlap of histories is right; None where no label is left."""
    (found,) = qc.attack(release, log, "link-overlap", seed=seed)
    return found.success


def shares(before: pl.Series, after: pl.Series) -> list[list[float]]:
    """Return how often the ten commonest of a log come in it, and in the release, per thousand."""
    common = before.drop_nulls().value_counts().sort(["count", before.name], descending=[True, False])
    found = dict(after.drop_nulls().value_counts().iter_rows())
    top = common.head(TOP).iter_rows()
    return [[1000 * n / len(before), 1000 * found.get(text, 0) / max(len(after), 1)] for text, n in top]


def levels(log: qc.Log) -> dict[str, Any]:
    """Count the queries that are classified down to each level (Figure 5.10)."""
    depth = log.frame["category"].str.split("/").list.len().fill_null(0)
    return {str(level): float((depth >= level).mean()) for level in range(1, 14)}  # type: ignore[arg-type]


@dataclass
class Study(study.Study):
    """All methods over k, or over what they have in its place, and the clusterings of Figure 5.5."""

    name = "p003"
    users: int = 1000
    seed: int = 5

    def __post_init__(self) -> None:
        if self.quick:
            self.users = QUICK_USERS
        self._warm: set[str] = set()

    @cached_property
    def log(self) -> qc.Log:
        """The log."""
        return synthetic(self.users, self.seed)

    @cached_property
    def small_log(self) -> qc.Log:
        """A log on which each method runs once first: compiling and loading are not the method's time."""
        return synthetic(QUICK_USERS // 2, self.seed)

    def identity(self) -> Line:
        """Return users, least number of records, and seed."""
        return {"users": self.users, "least": LEAST, "seed": self.seed}

    def about(self) -> Line:
        """Describe the log."""
        query = self.log.frame["query"]
        return {
            "rows": len(self.log),
            "levels": levels(self.log),
            "once": float(query.is_unique().mean()),  # type: ignore[arg-type]
            "words": float((query.str.count_matches(r"\S+") > 1).mean()),  # type: ignore[arg-type]
        }

    def plans(self) -> Iterator[Plan]:
        """Yield what to measure."""
        return plans(self.quick)

    def measure(self, plan: Plan) -> Line:
        """Make one release and measure it, or compare clusterings."""
        if plan.kind == "mining":
            ks, groups = ((3, 50), (2, 10)) if self.quick else (MINED_KS, MINED_GROUPS)
            return {"lines": mined(self.log, ks, groups, self.seed)}
        if plan.kind not in self._warm:
            measured(self.small_log, plan, self.seed)
            self._warm.add(plan.kind)
        return measured(self.log, plan, self.seed)
