"""Draws logs, and stores the few that together show every planted fault.

`python -m tests.conformance.find_corpus [LOGS]` takes some seconds per log that it draws.
A fault is a broken method with one of its example settings: a log that shows it with k = 2 need not show it
with k = 4. Several logs are to show each, so that a change which hides it from one is noticed by another.
"""

from __future__ import annotations

import random
import sys
from datetime import timedelta
from typing import Any

from querycloak.testing import conformance
from querycloak.testing import strategies as made_of
from querycloak.testing.strategies import frame_of
from tests.conformance import corpus
from tests.conformance.broken_methods import CAUGHT_BY

Candidate = tuple[list[dict[str, Any]], list[int]]
Fault = tuple[str, int]
TIMES = 4


def drawn(seed: int) -> Candidate:
    """Draw a log and cuts that fall within it; some logs have few people, so that crowds form early."""
    rng = random.Random(seed)
    size, people = rng.randint(8, 40), rng.choice([2, 3, 4, 6, 6])
    rows = [
        {
            "user": rng.choice(made_of.USERS[:people]),
            "query": rng.choice(made_of.QUERIES),
            "time": made_of.START + timedelta(seconds=20 * rng.randint(0, 40)),
            "rank": rng.choice(made_of.RANKS),
            "url": rng.choice(made_of.URLS),
            "category": rng.choice(made_of.CATEGORIES),
        }
        for _ in range(size)
    ]
    return rows, sorted(rng.randint(0, size) for _ in range(rng.randint(1, 3)))


def shown_by(candidate: Candidate) -> set[Fault]:
    """Find the faults that their checks see in a log."""
    log, at = frame_of(candidate[0]), candidate[1]
    found = set()
    for method, name in CAUGHT_BY.items():
        for place, settings in enumerate(method.examples()):
            try:
                conformance.run_checks(method, log, at, [getattr(conformance, name)], [settings])
            except ExceptionGroup:
                found.add((method.__name__, place))
    return found


def covering(shown: dict[int, set[Fault]]) -> list[int]:
    """Choose logs greedily until each fault is shown several times, or as often as any log shows it."""
    missing = {
        fault: min(TIMES, sum(fault in some for some in shown.values()))
        for fault in set().union(*shown.values())
    }
    chosen: list[int] = []
    while any(missing.values()):
        left = [seed for seed in shown if seed not in chosen]
        best = max(left, key=lambda seed: (sum(missing[fault] > 0 for fault in shown[seed]), -seed))
        chosen.append(best)
        for fault in shown[best]:
            missing[fault] = max(0, missing[fault] - 1)
    return chosen


def main(tries: int) -> None:
    """Draw that many logs, and replace the stored ones."""
    shown = {}
    for seed in range(tries):
        shown[seed] = shown_by(drawn(seed))
        print(f"{seed}: {len(shown[seed])} faults", flush=True)
    for old in corpus.FOLDER.glob("*.json"):
        old.unlink()
    corpus.FOLDER.mkdir(exist_ok=True)
    corpus.write("empty", [], [0, 3], [])
    corpus.write("one-record", drawn(0)[0][:1], [0, 1], [])
    for seed in covering(shown):
        faults = sorted(f"{name} {place}" for name, place in shown[seed])
        corpus.write(f"drawn-{seed:03d}", *drawn(seed), faults)
    print(f"{len(set().union(*shown.values()))} faults, {len(list(corpus.FOLDER.glob('*.json')))} logs")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 120)
