"""How many records a second `threshold-dp` counts, and how many draws of noise a second OpenDP gives."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from querycloak import generate, protect
from querycloak.methods import dp_counts


def measure(users: int = 20_000, draws: int = 1_000_000) -> dict[str, Any]:
    """Protect a made-up log, then draw noise alone."""
    log = generate(users=users, seed=7)
    dp_counts.require_opendp()
    report = protect(log, "threshold-dp").report
    begin = time.perf_counter()
    dp_counts.add_laplace(np.zeros(draws, np.int64), 10.0)
    seconds = time.perf_counter() - begin
    return {
        "records": len(log),
        "distinct_queries": log.frame["query"].n_unique(),
        "lines": report.released,
        "seconds": report.seconds,
        "draws_per_second": round(draws / seconds),
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000), indent=2))
