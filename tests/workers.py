"""Says which tests share a worker, and in which order they start.

Tests of the same servers share a worker, and so do those of one module's fixtures: otherwise each worker
would start a Kafka broker, and build every module's logs, for itself. The process that deals out tests knows
their names alone, so it looks at the text of their files. (The mark `xdist_group` is no way: xdist 3.8 writes
it into names, and pytest 9.2 no longer reads them there.)
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from tests.durations import expected, function_of

ROOT = Path(__file__).parents[1]
_SERVERS = re.compile(r"mark\.(kafka|postgres|spark|browser)\b")
_MODULE = re.compile(r"scope=\"module\"|def test_\w+\([^)]*\bbrowser\b")
#: Groups that mostly wait for servers. Spark's tests need a JVM of their own; some need Kafka beside it.
WAITING = ("spark", "servers")


@cache
def shared(file: str) -> str | None:
    """Name what the tests of a file share: Spark, else other servers, else the file itself, or nothing."""
    text = (ROOT / file).read_text("utf-8")
    servers = set(_SERVERS.findall(text))
    if servers:
        return "spark" if "spark" in servers else "servers"
    return file if _MODULE.search(text) else None


def scope_of(nodeid: str) -> str:
    """Name the tests that a worker gets in one go."""
    return shared(nodeid.partition("::")[0]) or nodeid


def costliest_first(nodeids: list[str]) -> list[int]:
    """Order tests by what their group costs, so that no long one comes last; waiting ones start first."""
    cases = Counter(function_of(nodeid) for nodeid in nodeids)
    group: dict[str, float] = defaultdict(float)
    for nodeid in nodeids:
        group[scope_of(nodeid)] += expected(function_of(nodeid)) / cases[function_of(nodeid)]

    def rank(place: int) -> tuple[Any, ...]:
        scope = scope_of(nodeids[place])
        return scope not in WAITING, -group[scope], scope, place

    return sorted(range(len(nodeids)), key=rank)


def scheduler(config: Any, log: Any) -> Any:
    """Make the scheduler of xdist that deals out tests so."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        """Deals out tests one by one, except those that share something."""

        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return Together(config, log)
