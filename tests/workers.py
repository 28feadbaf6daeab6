"""Which tests share a worker, and in which order they start.

Tests of the same servers share a worker, and so do those of one module's fixtures: otherwise each worker
would start a Kafka broker, and build every module's logs, for itself. The process that distributes tests
knows their names alone: the folder decides, else the text of the file. (The mark `xdist_group` does not work:
xdist 3.8 writes it into names, and pytest 9.2 no longer reads them there.)
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from tests.durations import expected, function_of
from tests.groups import WAITING, worker_of

ROOT = Path(__file__).parents[1]
_SERVERS = re.compile(r"mark\.(kafka|postgres|browser)\b")
_MODULE = re.compile(r"scope=\"module\"|def test_\w+\([^)]*\bbrowser\b")


@cache
def shared(file: str) -> str | None:
    """Return what the tests of a file share: Spark, other servers, the file itself, or nothing."""
    if together := worker_of(file):
        return together
    text = (ROOT / file).read_text("utf-8")
    if _SERVERS.search(text):
        return "servers"
    return file if _MODULE.search(text) else None


def scope_of(nodeid: str) -> str:
    """Return the name of the tests that a worker gets together."""
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
    """Return the scheduler of xdist that keeps such tests together."""
    from xdist.scheduler import LoadScopeScheduling

    class FolderScheduling(LoadScopeScheduling):
        """Distributes tests one by one, except those that share something."""

        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return FolderScheduling(config, log)
