"""`km` at the paper's scale: seconds and memory by m, and growth by users and by longest history."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from papers.p001.workload import USERS, Workload

from benchmarks.common import peak_gigabytes
from querycloak.methods.km.deletion import HistoryTerms, rule_for


def timed(entries: HistoryTerms, k: int, m: int, target: str = "logsize") -> dict[str, Any]:
    """Delete once; return the seconds and what is left."""
    begin = time.perf_counter()
    outcome = rule_for(target, k, m, entries, None).run(entries)
    seconds = time.perf_counter() - begin
    return {
        "seconds": round(seconds, 2),
        "user_terms_per_second": round(len(entries) / seconds),
        "rounds": outcome.rounds,
        "kept_share": round(float(outcome.kept.mean()), 4),
        "peak_gigabytes": peak_gigabytes(),
    }


def first_people(entries: HistoryTerms, people: int) -> HistoryTerms:
    """Return the entries of the first people."""
    return entries[entries.person < people]


def merged(entries: HistoryTerms, together: int) -> HistoryTerms:
    """Merge the histories of several users, so that histories are longer and fewer."""
    owner = entries.person // together
    pairs, first = np.unique(owner * entries.terms + entries.term, return_index=True)
    history = pairs // entries.terms
    return HistoryTerms(
        history, history, pairs % entries.terms, entries.times[first], entries.tie, entries.draw[first]
    )


def measure(scale: float) -> dict[str, Any]:
    """Measure everything; at full scale there are as many people as in the paper."""
    work = Workload.of(int(USERS * scale), seed=3)
    entries, people = work.entries, int(work.entries.person.max()) + 1
    timed(first_people(entries, 1000), 2, 4)  # compiles
    found: dict[str, Any] = {"about": work.about}
    for m in (2, 3, 4):
        found[f"m={m} k=2"] = timed(entries, 2, m) | {"the_paper_first_iteration": _PAPER.get(m)}
    found["by people, m=3 k=2"] = {
        str(people // part): timed(first_people(entries, people // part), 2, 3) for part in (8, 4, 2, 1)
    }
    found["by longest history, m=3 k=2"] = {
        str(int(np.bincount(longer.history).max())): timed(longer, 2, 3)
        for longer in (merged(entries, together) for together in (1, 2, 4, 8))
    }
    return found


_PAPER = {2: "2 h 55 m 58 s", 3: "90 h 8 m 24 s"}
