"""What it costs to bound the share of own queries that a friend is handed (`most_own`), without any I/O.

python -m benchmarks.crowd_bound
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.in_memory_crowd import InMemoryNetwork

from querycloak.clients.crowd import network

MEMBERS, QUERIES, SEED = 60, 100, 3


def one(most: float) -> dict[str, Any]:
    """Let everybody search in turn, and count who submits what and who is handed what."""
    net = network.power_law(MEMBERS, SEED)
    pairs = [
        (u, int(v)) for u in range(MEMBERS) for v in net.friend[net.start[u] : net.start[u + 1]] if u < v
    ]
    crowd = InMemoryNetwork(pairs, seed=1, most_own=most)
    for turn in range(MEMBERS * QUERIES):
        crowd.search(turn % MEMBERS, f"{turn % MEMBERS}:{turn}")
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


if __name__ == "__main__":
    print(json.dumps({str(most): one(most) for most in (1.0, 0.9, 0.75, 0.5)}, indent=2))
