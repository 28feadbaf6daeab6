"""Reproduces paper 001 on a made-up log: what `km` keeps for advertising, by target, k and m.

    python -m benchmarks.paper_001            measures, plots, and writes the tables of the page
    python -m benchmarks.paper_001 --quick    a small log and few settings, to see that it works

Each result is one line of `results/paper-001.jsonl`; what is there already is not measured again.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.__main__ import RESULTS, machine
from querycloak.dictionary import Dictionary
from querycloak.log import Batch
from querycloak.methods.km import targets
from querycloak.methods.km.audit import rare
from querycloak.methods.km.deletion import HistoryTerms
from querycloak.methods.shared.terms import TermOccurrences, Tokenizer
from querycloak.synthetic import generate
from querycloak.synthetic.marketing import marketing

USERS, QUICK_USERS = 367_803, 40_000
SEARCHES = 5  # of each user, about as many as in the paper's one day
KS, MS = (2, 5, 10, 20, 40, 100), (2, 3)
COLUMNS = ("distinct", "logsize", "users", "bid", "clicks", "impressions", "revenue")
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
    """The first searches of many made-up people as entries, and what each term is worth by target."""

    entries: HistoryTerms
    values: dict[str, Any]
    about: dict[str, Any]

    @classmethod
    def of(cls, users: int, seed: int) -> Workload:
        """Make up a log and keep the first searches of everybody; clicks do not count twice."""
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
        """Give in percent what is left of the seven things that the paper looks at."""
        every = np.ones(len(self.entries), np.bool_)
        return {
            name: 100
            * left_of(name, self.entries, alive, self.values.get(name))
            / left_of(name, self.entries, every, self.values.get(name))
            for name in COLUMNS
        }


def correlations(entries: HistoryTerms, values: dict[str, Any]) -> dict[str, float]:
    """Give Pearson's correlation of each two figures of terms, as the paper's Table 3."""
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


def measured(work: Workload, target: str, k: int, m: int, optimise: str, check: bool) -> dict[str, Any]:
    """Run one setting; `random` is the mean of two runs, as in the paper."""
    begin = time.perf_counter()
    values = work.values.get(target)
    outcome = targets.greedy(target, k, m, work.entries, values)
    seconds = time.perf_counter() - begin
    kept = [work.retention(outcome.kept)]
    if target == "random":
        turned = replace(work.entries, draw=~work.entries.draw)
        again = targets.deletion(target, k, m, turned, None).run(turned)
        kept.append(work.retention(again.kept))
    line = {
        "name": f"{optimise} {target} k={k} m={m}",
        "target": target,
        "k": k,
        "m": m,
        "optimise": optimise,
        "kept": {name: sum(one[name] for one in kept) / len(kept) for name in COLUMNS},
        "seconds": round(seconds, 2),
        "rounds": outcome.rounds,
        "by_size": {str(size): count for size, count in outcome.by_size.items()},
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    if check:
        left = work.entries[outcome.kept]
        begin = time.perf_counter()
        bad = rare(left.history, left.term, np.zeros(len(left), np.int64), k, m)
        line |= {"holds": not bool(bad.any()), "check_seconds": round(time.perf_counter() - begin, 2)}
    return line


def settings(ks: tuple[int, ...]) -> list[tuple[str, int, int, str]]:
    """List what to measure, the most telling first."""
    greedy = [(target, k, m, "greedy") for m in MS for k in ks for target in targets.TARGETS]
    deeper = [("logsize", k, 4, "greedy") for k in ks]
    return [*greedy, *deeper]


def sweep(path: Path, users: int, seed: int, ks: tuple[int, ...], only: str | None) -> None:
    """Measure every setting that the file does not have yet."""
    lines = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    done = {line.get("name") for line in lines}
    waiting = [one for one in settings(ks) if f"{one[3]} {one[0]} k={one[1]} m={one[2]}" not in done]
    waiting = [one for one in waiting if only is None or only in f"{one[3]} {one[0]} k={one[1]} m={one[2]}"]
    if not waiting:
        return
    work = Workload.of(users, seed)
    with path.open("a") as file:
        if not lines:
            file.write(json.dumps({"about": work.about, "seed": seed, "machine": machine()}) + "\n")
        for number, (target, k, m, optimise) in enumerate(waiting, 1):
            line = measured(work, target, k, m, optimise, check=optimise == "greedy" and k in (2, 100))
            file.write(json.dumps(line | {"commit": machine()["commit"]}) + "\n")
            file.flush()
            kept = {name: round(value, 1) for name, value in line["kept"].items()}
            print(
                f"{number}/{len(waiting)} {line['name']}: {line['seconds']} s {kept} {line.get('holds')}",
                flush=True,
            )


def main() -> None:
    """Measure, then write tables and figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small log and few settings")
    parser.add_argument("--only", help="settings whose names hold this")
    parser.add_argument("--only-draw", action="store_true", help="measure nothing")
    chosen = parser.parse_args()
    path = RESULTS / ("paper-001-quick.jsonl" if chosen.quick else "paper-001.jsonl")
    ks = (2, 10) if chosen.quick else KS
    if not chosen.only_draw:
        sweep(path, QUICK_USERS if chosen.quick else USERS, 3, ks, chosen.only)
    from benchmarks import paper_001_page

    names = [f"{optimise} {target} k={k} m={m}" for target, k, m, optimise in settings(ks)]
    paper_001_page.write(path, names)


if __name__ == "__main__":
    main()
