"""Which released records `link-learned` can give back to people of whom some history is known, by method.

python -m benchmarks.link_learned_released
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Final

import querycloak as qc

USERS, LOG_SEED, SEED = 1000, 11, 1
ATTACK: Final = {"targets": 60, "functions": 10}
#: Every rule is off: what is left of `rules` are fresh labels, and nothing else is protected.
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
RESULT: Final = Path(__file__).parent / "results" / "link-learned-released.json"
SHOWN: Final = (
    "targets", "left_out", "learned_from", "known_searches", "records_to_find", "among", "area_under_curve",
    "area_under_curve_new_texts", "precision", "precision_by_chance",
)  # fmt: skip


def attacked(log: Any, release: Any, labels: bool) -> dict[str, Any]:
    """Attack a release with or without a look at labels."""
    start = time.process_time()
    finding = qc.attack(release, log, "link-learned", seed=SEED, labels=labels, **ATTACK)[0]
    if finding.not_applicable:
        return {"not_applicable": finding.not_applicable}
    told = {name: finding.details[name] for name in SHOWN}
    first = list(finding.details["importances"])[:3]
    numbers = {"success": finding.success, "low": finding.low, "high": finding.high, "n": finding.n}
    rounded = {name: round(value, 4) for name, value in (numbers | told).items()}
    return rounded | {"first_relations": first, "processor": round(time.process_time() - start, 1)}


def measure(users: int = USERS) -> dict[str, Any]:
    """Protect one made-up log by each method and attack what comes out."""
    log = qc.classify(qc.generate(users=users, seed=LOG_SEED))
    found: dict[str, Any] = {"users": users, "rows": len(log), "attack": ATTACK, "releases": {}}
    for method, settings in RELEASES.items():
        release = qc.protect(log, method, seed=SEED, **settings)
        numbers = {"without": attacked(log, release, False), "labels": attacked(log, release, True)}
        found["releases"][method] = {"rows": len(release.log), "settings": settings} | numbers
        print(method, json.dumps(numbers), flush=True)
    return found


if __name__ == "__main__":
    RESULT.write_text(json.dumps(measure(), indent=2) + "\n")
