"""How fast real peers are: queries a second through 20 processes, and what the crowd adds to the delay.

python -m benchmarks.crowd_peers [QUERIES]
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.crowd import LocalCrowd, friendships

from benchmarks.__main__ import RESULTS, machine

MEMBERS, AT_A_TIME = 20, 48
PROTOCOL = {"rate": 10_000.0, "burst": 10_000, "waiting": 10_000, "in_flight": 10_000}


def cpu_seconds(process: int) -> float:
    """Say how much processor time a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def send(crowd: LocalCrowd, queries: int, at_a_time: int, word: str) -> tuple[float, list[float]]:
    """Send queries, so many at a time; give the seconds of all and of each."""
    each: list[float] = []
    work = iter(range(queries))

    async def searcher() -> None:
        for number in work:
            begin = time.perf_counter()
            status, _ = await crowd.search(number % MEMBERS, f"{word} {number}")
            assert status == 200
            each.append(time.perf_counter() - begin)

    begin = time.perf_counter()
    await asyncio.gather(*(searcher() for _ in range(at_a_time)))
    return time.perf_counter() - begin, each


async def engine_alone(crowd: LocalCrowd, queries: int) -> float:
    """Give the median time of asking the engine without a crowd."""
    from querycloak.clients.crowd.engine import HttpEngine

    address = f"http://127.0.0.1:{crowd.engine_port}/search?q={{query}}&from=0"
    engine = HttpEngine(address, 10, 1 << 20, "benchmark")
    times = []
    for number in range(queries):
        begin = time.perf_counter()
        assert await engine.search(f"alone {number}") is not None
        times.append(time.perf_counter() - begin)
    await engine.close()
    return statistics.median(times)


async def counted(crowd: LocalCrowd) -> list[Counter[str]]:
    """Ask everybody what she has counted."""
    return [Counter((await crowd.health(member))["counts"]) for member in range(MEMBERS)]


def from_their_author(crowd: LocalCrowd, counts: list[Counter[str]]) -> dict[str, float]:
    """Give the share of queries that come straight from their authors, by how many friends those have."""
    asked: Counter[str] = Counter()
    own: Counter[str] = Counter()
    for member, told in enumerate(counts):
        friends = len(crowd.friends(member))
        for group in ("all", f"of {friends}" if friends < 5 else "of 5 and more"):
            asked[group] += told["queries_sent"]
            own[group] += told["queries_sent_own"]
    return {group: round(own[group] / asked[group], 3) for group in sorted(asked)}


async def run(folder: Path, queries: int) -> dict[str, Any]:
    """Measure one crowd: first one query after the other, then many at a time."""
    async with LocalCrowd(folder, friendships(MEMBERS, seed=1), PROTOCOL) as crowd:
        await crowd.wait_connected()
        await send(crowd, 10 * MEMBERS, AT_A_TIME, "warm up")
        alone = await engine_alone(crowd, 200)
        _, each = await send(crowd, max(queries // 4, MEMBERS), 1, "one by one")
        counts = await counted(crowd)
        processes = [crowd.process(member) for member in range(MEMBERS)]
        used = sum(map(cpu_seconds, processes))
        seconds, _ = await send(crowd, queries, AT_A_TIME, "together")
        used = sum(map(cpu_seconds, processes)) - used
        hops = sum(one["queries_accepted"] for one in counts) / sum(one["searches_started"] for one in counts)
        added = statistics.median(each) - alone
        return {
            "queries_per_second": round(queries / seconds, 1),
            "cpu_ms_per_query": round(1000 * used / queries, 2),
            "hops": round(hops, 2),
            "median_added_ms": round(1000 * added, 2),
            "goal_added_ms": round(2 * hops * 5, 2),
            "from_their_author": from_their_author(crowd, await counted(crowd)),
        }


def measure(scale: float = 1.0) -> dict[str, Any]:
    """Measure with so many queries."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(Path(folder), int(4000 * scale)))


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    document = {"machine": machine(), "load_before": os.getloadavg()[0], **measure(size / 4000)}
    (RESULTS / "crowd-peers.json").write_text(json.dumps(document, indent=2) + "\n")
    print(json.dumps(document, indent=2))
