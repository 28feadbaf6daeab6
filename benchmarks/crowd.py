"""Simulates crowds of one thousand to ten million members: queries a second, and memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

#: Members and queries: few fit into the caches of a processor, ten million do not fit anywhere near it.
SIZES = ((1_000, 20_000_000), (100_000, 10_000_000), (10_000_000, 10_000_000))


def measure(scale: float) -> dict[str, Any]:
    """Measure each size in a process of its own, since memory is counted at its highest."""
    found = {}
    for users, queries in SIZES:
        many = max(int(users * scale), 100) if users == SIZES[-1][0] else users
        command = [sys.executable, "-m", "benchmarks.crowd", str(many), str(max(int(queries * scale), 1000))]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[f"{users:,}_users"] = json.loads(done.stdout)
    return found


def one(users: int, queries: int) -> dict[str, Any]:
    """Make a network, and send queries into it."""
    from querycloak.clients.crowd import network, simulator

    network.power_law(100, seed=1)  # compiles
    begin = time.perf_counter()
    net = network.power_law(users, seed=1)
    made = time.perf_counter() - begin
    trace = simulator.simulate(net, simulator.authors(users, queries, seed=1), simulator.Behaviour(), seed=1)
    return {
        "queries_per_second": round(queries / trace.seconds),
        "network_seconds": round(made, 2),
        "hops": round(trace.hops, 3),
        "gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),
    }


if __name__ == "__main__":
    print(json.dumps(one(int(sys.argv[1]), int(sys.argv[2]))))
