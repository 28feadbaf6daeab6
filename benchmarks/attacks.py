"""Attacks: processor seconds of `link-learned`; its success on releases; what `guard` costs and gains."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Final

import numpy as np
import polars as pl

import querycloak as qc
from benchmarks.common import Steps, peak_gigabytes, timed
from querycloak.attacks.link_learned import features, pair_scores, training
from querycloak.attacks.link_learned.words import TermFrequencies

FUNCTIONS = 4
LOG_SEED, SEED = 11, 1
ATTACK: Final = {"targets": 60, "functions": 10}
#: All rules off: labels are fresh, and nothing else is protected.
NO_RULES: Final = dict.fromkeys(("digits", "emails", "phones", "cards", "names"), False) | {
    "max_words": 10_000,
    "max_letters": 1_000_000,
}
RELEASES: Final[dict[str, dict[str, Any]]] = {
    "rules": NO_RULES | {"labels": "fresh"},
    "swap": {},
    "cohort": {"k": 10},
    "microagg-topic": {},
    "microagg-semantic": {},
    "microagg-syntactic": {},
    "microagg-plain": {},
}
DETAILS: Final = (
    "targets", "left_out", "learned_from", "known_searches", "records_to_find", "among", "area_under_curve",
    "area_under_curve_new_texts", "precision", "precision_by_chance",
)  # fmt: skip
#: Settings of `swap` that are compared.
GUARDS: Final[tuple[dict[str, Any], ...]] = (
    {"level": 1},
    {"level": 1, "guard": 0.5},
    {"level": 1, "guard": 0.2},
    {"level": 1, "guard": "1/k"},
    {"level": 3},
    {"level": 13},
    {"level": "auto"},
    {"level": "auto", "patience": 1000},
)


def busiest(searches: int) -> pl.DataFrame:
    """Join the histories of the busiest users to one of so many rows, half of which count as real."""
    frame = qc.generate(users=3000, seed=3).frame
    order = frame.group_by("user").len().sort("len", "user", descending=True)["user"].head(4)
    rows = frame.filter(pl.col("user").is_in(order.implode())).with_columns(person="user", user=pl.lit("one"))
    return rows.unique(["query", "time"], keep="first", maintain_order=True).sort("time").head(searches)


def measure(scale: float) -> dict[str, Any]:
    """Read, relate, learn, score and cut; then score again with half of the searches known."""
    searches = int(1790 * scale)
    rows = busiest(searches)
    known = TermFrequencies.of(rows)
    features.read(rows.head(50), known)  # words and trees are loaded once
    pair_scores.cut(np.zeros(45, np.float32), 10, 2, 0)  # and kernels compiled
    steps = Steps()
    read = features.read(rows, known)
    steps.end("features")
    size, relate = len(read), read.relate
    fake = (rows["person"].rank("dense").to_numpy() % 2 == 0)[read.searches.first_row]
    lessons = training.lessons(np.zeros(size, np.int64), fake, searches)
    functions = training.learn(relate, lessons, FUNCTIONS, seed=0)
    steps.end(f"learn {FUNCTIONS} functions")
    pair_scores.scores(relate, size, functions[:1], "median")
    steps.end("relations of all pairs, and 1 function")
    scores = pair_scores.scores(relate, size, functions, "median")
    steps.end(f"the same with {FUNCTIONS} functions")
    own = np.flatnonzero(~fake)
    pair_scores.scores(relate, size, functions, "median", (own, pair_scores.among(scores, size, own)))
    steps.end("the same, own pairs known")
    for parts in (2, pair_scores.MANY):
        pair_scores.cut(scores, size, parts, 0)
        steps.end(f"cut into {parts}")
    return {"searches": size, "pairs": scores.size, "processor": steps.seconds, "memory_gb": peak_gigabytes()}


def attacked(log: Any, release: Any, labels: bool) -> dict[str, Any]:
    """Attack a release, with or without its labels."""
    start = time.process_time()
    finding = qc.attack(release, log, "link-learned", seed=SEED, labels=labels, **ATTACK)[0]
    if finding.not_applicable:
        return {"not_applicable": finding.not_applicable}
    kept = {name: finding.details[name] for name in DETAILS}
    first = list(finding.details["importances"])[:3]
    numbers = {"success": finding.success, "low": finding.low, "high": finding.high, "n": finding.n}
    rounded = {name: round(value, 4) for name, value in (numbers | kept).items()}
    return rounded | {"first_relations": first, "processor": round(time.process_time() - start, 1)}


def released(scale: float) -> dict[str, Any]:
    """Protect one log by each method, and attack each release by users of whom some history is known."""
    log = qc.classify(qc.generate(users=int(1000 * scale), seed=LOG_SEED))
    found: dict[str, Any] = {"users": int(1000 * scale), "rows": len(log), "attack": ATTACK, "releases": {}}
    for method, settings in RELEASES.items():
        release = qc.protect(log, method, seed=SEED, **settings)
        numbers = {"without": attacked(log, release, False), "labels": attacked(log, release, True)}
        found["releases"][method] = {"rows": len(release.log), "settings": settings} | numbers
    return found


def guard(scale: float) -> dict[str, Any]:
    """Protect one log with each guard and level of `swap`, attack it, and measure it."""
    users = int(3_000 * scale)
    log = qc.generate(users, seed=11, categories=True)
    cases = []
    for settings in GUARDS:
        release, spent = timed(partial(qc.protect, log, "swap", k=10, seed=1, **settings))
        kept = qc.measure(log, release.log, ["release_rate", "delay"], truth=release.truth)
        attacks = qc.attack(release, log, "link-window", "link-repeat", "link-time", seed=1)
        cases.append(
            {
                "settings": settings,
                "release_rate": round(kept["release_rate"], 4),
                "delay": kept["delay"],
                "facts": release.certificate["methods"][0]["facts"].get("released_by_level"),
                "seconds": round(spent["seconds"], 1),
                **{one.attack: one.success for one in attacks},
            }
        )
    return {"users": users, "cases": cases}
