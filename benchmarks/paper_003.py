"""Reproduces chapter 5 of paper 003 on made-up people: microaggregations and removals, and what is left.

    python -m benchmarks.paper_003                measures, plots, and writes the page
    python -m benchmarks.paper_003 --quick        few people and settings, to see that it works
    python -m benchmarks.paper_003 --only-draw    measures nothing

Each result is one line of `results/paper-003.jsonl`; what is there already is not measured again.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import querycloak as qc
from benchmarks.__main__ import RESULTS, machine
from benchmarks.paper_003_mining import mined
from querycloak.measures.base import words_of

#: 1,000 made-up people who searched so often have about as many records as the thesis's 1,000 (55,666).
USERS, LEAST, SEED, QUICK_USERS = 1000, 9, 5, 120
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
        """Name it, the same in every run."""
        return f"{self.kind} {self.at}"


def plans(quick: bool) -> Iterator[Plan]:
    """List what to measure."""
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


def made_up(users: int) -> qc.Log:
    """Make up the log; every query has the category that one classifier gives it, before and after."""
    whole = qc.generate(users=2 * users, seed=SEED)
    often = whole.frame.group_by("user", maintain_order=True).len().filter(pl.col("len") >= LEAST)
    chosen = whole.frame.filter(pl.col("user").is_in(often["user"].head(users).to_list()))
    numbered = chosen.drop("row").with_row_index("row").cast({"row": pl.Int64})
    return qc.classify(whole.with_frame(numbered))


def measured(log: qc.Log, plan: Plan) -> dict[str, Any]:
    """Make one release, and measure it by queries and by the classifier's categories."""
    begin, busy = time.perf_counter(), time.process_time()
    release = qc.protect(log, plan.method, seed=SEED, **plan.settings)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - busy
    shown = classified(release)
    found = qc.measure(log, shown, MEASURES)
    before, after = (set(side.frame["query"].drop_nulls()) for side in (log, shown))
    asked, left = log.frame["user"].n_unique(), shown.frame["user"].n_unique()
    return {
        "name": plan.name,
        "kind": plan.kind,
        "at": plan.at,
        "settings": plan.settings,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "rows": len(shown) / len(log),
        "queries_left": len(before & after) / len(before),
        "people_left": left / asked,
        "linked": linked(release, log),
        **{f"{name}.{figure}": value for name, part in found.items() for figure, value in part.items()},
        "top_queries": shares(log.frame["query"], shown.frame["query"]),
        "top_words": shares(words_of(log.frame["query"]), words_of(shown.frame["query"])),
    }


def classified(release: qc.Release) -> qc.Log:
    """Give each released query the classifier's category, and each row its person where labels are gone."""
    frame = release.log.frame.with_columns(category=pl.lit(None, pl.String))
    if "user" not in frame.columns or frame["user"].null_count() == len(frame):
        assert release.truth is not None
        frame = frame.with_columns(user=release.truth["original_user"])
    return qc.classify(release.log.with_frame(frame))


def linked(release: qc.Release, log: qc.Log) -> float | None:
    """Say how often the best overlap of histories is the right person's; None where no label is left."""
    (found,) = qc.attack(release, log, "link-overlap", seed=SEED)
    return found.success


def shares(before: pl.Series, after: pl.Series) -> list[list[float]]:
    """Give how often the ten commonest of a log come in it, and in the release, for a thousand."""
    common = before.drop_nulls().value_counts().sort(["count", before.name], descending=[True, False])
    found = dict(after.drop_nulls().value_counts().iter_rows())
    top = common.head(TOP).iter_rows()
    return [[1000 * n / len(before), 1000 * found.get(text, 0) / max(len(after), 1)] for text, n in top]


def levels(log: qc.Log) -> dict[str, Any]:
    """Count the queries that are classified down to each level (Figure 5.10)."""
    depth = log.frame["category"].str.split("/").list.len().fill_null(0)
    return {str(level): float((depth >= level).mean()) for level in range(1, 14)}  # type: ignore[arg-type]


def sweep(path: Path, users: int, quick: bool, only: str | None) -> None:
    """Measure every plan that the file does not have yet."""
    lines = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    done = {line.get("name") for line in lines}
    waiting = [plan for plan in plans(quick) if plan.name not in done and (only or "") in plan.name]
    mining = "mining" not in done and (only or "mining") in "mining"
    if not waiting and not mining:
        return
    begin, log, warm = time.perf_counter(), made_up(users), set[str]()
    with path.open("a") as file:

        def keep(line: dict[str, Any]) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()

        if not lines:
            about = {"users": users, "rows": len(log), "least": LEAST, "seed": SEED, "levels": levels(log)}
            about["once"] = float(log.frame["query"].is_unique().mean())  # type: ignore[arg-type]
            about["words"] = float((log.frame["query"].str.count_matches(r"\S+") > 1).mean())  # type: ignore[arg-type]
            keep({"about": about, "machine": machine()})
        few = made_up(QUICK_USERS // 2)
        for plan in waiting:
            if plan.kind not in warm:  # what is compiled or loaded on first use is not the method's time
                measured(few, plan)
                warm.add(plan.kind)
            line = measured(log, plan)
            keep(line)
            print(f"{plan.name}: {line['cpu_seconds']} s of processor, linked {line['linked']}", flush=True)
        if mining:
            ks, groups = ((3, 50), (2, 10)) if quick else (MINED_KS, MINED_GROUPS)
            keep({"name": "mining", "lines": mined(log, ks, groups, SEED)})
        taken = round(time.perf_counter() - begin, 1)
        keep({"name": None, "part": "time", "plans": len(waiting), "seconds": taken})


def main() -> None:
    """Measure, then write the page and its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few people and settings")
    parser.add_argument("--only", help="plans whose names hold this")
    parser.add_argument("--only-draw", action="store_true", help="measure nothing")
    chosen = parser.parse_args()
    path = RESULTS / ("paper-003-quick.jsonl" if chosen.quick else "paper-003.jsonl")
    if not chosen.only_draw:
        sweep(path, QUICK_USERS if chosen.quick else USERS, chosen.quick, chosen.only)
    from benchmarks import paper_003_page

    paper_003_page.write(path)


if __name__ == "__main__":
    main()
