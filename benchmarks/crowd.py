"""The crowd: simulated networks of up to ten million members, real peers, and the cost of `most_own`."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.crowd import LocalCrowd, friendships
from tests.support.in_memory_crowd import InMemoryNetwork

from benchmarks.common import cpu_seconds, in_own_process, peak_gigabytes
from querycloak.clients.crowd import network, simulator
from querycloak.clients.crowd.engine import HttpEngine

#: Members and queries: few fit into the caches of a processor, ten million do not fit anywhere near it.
SIZES = ((1_000, 20_000_000), (100_000, 10_000_000), (10_000_000, 10_000_000))
MEMBERS, AT_A_TIME = 20, 48
PROTOCOL = {"rate": 10_000.0, "burst": 10_000, "waiting": 10_000, "in_flight": 10_000}
#: Members, queries of each, and seed of the network in which `most_own` is tried.
FEW_MEMBERS, QUERIES, SEED = 60, 100, 3


def measure(scale: float) -> dict[str, Any]:
    """Simulate each size in a process of its own."""
    found = {}
    for users, queries in SIZES:
        many = max(int(users * scale), 100) if users == SIZES[-1][0] else users
        found[f"{users:,}_users"] = in_own_process(simulated, many, max(int(queries * scale), 1000))
    return found


def simulated(users: int, queries: int) -> dict[str, Any]:
    """Draw a network and send queries into it."""
    network.power_law(100, seed=1)  # compiles
    begin = time.perf_counter()
    net = network.power_law(users, seed=1)
    made = time.perf_counter() - begin
    trace = simulator.simulate(net, simulator.authors(users, queries, seed=1), simulator.Behaviour(), seed=1)
    return {
        "queries_per_second": round(queries / trace.seconds),
        "network_seconds": round(made, 2),
        "hops": round(trace.hops, 3),
        "gigabytes": peak_gigabytes(),
    }


async def send(crowd: LocalCrowd, queries: int, at_a_time: int, word: str) -> tuple[float, list[float]]:
    """Send queries, so many at a time; return the seconds of all and of each."""
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
    """Return the median time of the engine without a crowd."""
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
    """Return the counters of every peer."""
    return [Counter((await crowd.health(member))["counts"]) for member in range(MEMBERS)]


def from_their_author(crowd: LocalCrowd, counts: list[Counter[str]]) -> dict[str, float]:
    """Return the share of queries that come straight from their authors, by how many friends those have."""
    asked: Counter[str] = Counter()
    own: Counter[str] = Counter()
    for member, counters in enumerate(counts):
        friends = len(crowd.friends(member))
        for group in ("all", f"of {friends}" if friends < 5 else "of 5 and more"):
            asked[group] += counters["queries_sent"]
            own[group] += counters["queries_sent_own"]
    return {group: round(own[group] / asked[group], 3) for group in sorted(asked)}


async def peers_run(folder: Path, queries: int) -> dict[str, Any]:
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


def peers(scale: float) -> dict[str, Any]:
    """Send queries through 20 real peers."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        return {"load_before": load} | asyncio.run(peers_run(Path(folder), int(4000 * scale)))


def bound(scale: float) -> dict[str, Any]:
    """Limit the share of own queries that a friend is handed; count questions and own submissions."""
    return {str(most): bounded(most, max(int(QUERIES * scale), 1)) for most in (1.0, 0.9, 0.75, 0.5)}


def bounded(most: float, queries: int) -> dict[str, Any]:
    """Run all members in turn without I/O; count who submits what and who is handed what."""
    net = network.power_law(FEW_MEMBERS, SEED)
    pairs = [
        (u, int(v)) for u in range(FEW_MEMBERS) for v in net.friend[net.start[u] : net.start[u + 1]] if u < v
    ]
    crowd = InMemoryNetwork(pairs, seed=1, most_own=most)
    for turn in range(FEW_MEMBERS * queries):
        crowd.search(turn % FEW_MEMBERS, f"{turn % FEW_MEMBERS}:{turn}")
        crowd.settle()
    known = [friend for member in crowd.members.values() for friend in member.friends.values()]
    own = sum(text.startswith(f"{member}:") for member, text in crowd.submitted)
    handed = sum(friend.own for friend in known)
    return {
        "questions_per_query": round(sum(crowd.hops.values()) / len(crowd.submitted), 2),
        "own_submitted_by_author": round(own / len(crowd.submitted), 2),
        "own_share_of_what_friends_could_not_know": round(
            handed / (handed + sum(friend.passed for friend in known)), 2
        ),
    }
