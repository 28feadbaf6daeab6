"""What `guard` and `level=auto` of `swap` cost and gain: release rate, delay, and what attacks still reach.

python -m benchmarks.guard [USERS]
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import querycloak as qc
from benchmarks.__main__ import RESULTS, machine

USERS = 3_000
CASES: tuple[dict[str, Any], ...] = (
    {"level": 1},
    {"level": 1, "guard": 0.5},
    {"level": 1, "guard": 0.2},
    {"level": 1, "guard": "1/k"},
    {"level": 3},
    {"level": 13},
    {"level": "auto"},
    {"level": "auto", "patience": 1000},
)
ATTACKS = ("link-window", "link-repeat", "link-time")


def measure(users: int = USERS) -> list[dict[str, Any]]:
    """Protect one log in each way, attack it, and measure it."""
    log = qc.generate(users, seed=11, categories=True)
    found = []
    for settings in CASES:
        begin = time.perf_counter()
        release = qc.protect(log, "swap", k=10, seed=1, **settings)
        seconds = time.perf_counter() - begin
        kept = qc.measure(log, release.log, ["release_rate", "delay"], truth=release.truth)
        attacks = qc.attack(release, log, *ATTACKS, seed=1)
        found.append(
            {
                "settings": settings,
                "release_rate": round(kept["release_rate"], 4),
                "delay": kept["delay"],
                "facts": release.certificate["methods"][0]["facts"].get("released_by_level"),
                "seconds": round(seconds, 1),
                **{one.attack: one.success for one in attacks},
            }
        )
        print(json.dumps(found[-1]), flush=True)
    return found


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else USERS
    document = {"users": size, "machine": machine(), "cases": measure(size)}
    (RESULTS / "guard.json").write_text(json.dumps(document, indent=2) + "\n")
