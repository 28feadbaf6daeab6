"""Says which tests share a worker: those of one server, and those of one module's fixtures.

Otherwise each worker would start a Kafka broker, and build every module's logs, for itself. The process that
deals out tests knows their names alone, so it looks at the text of their files. (The mark `xdist_group` is
no way: xdist 3.8 writes it into names, and pytest 9.2 no longer reads them there.)
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
_SERVERS = re.compile(r"mark\.(kafka|postgres|spark)\b")
_MODULE = re.compile(r"scope=\"module\"|def test_\w+\([^)]*\bbrowser\b")


class Together(LoadScopeScheduling):
    """Deals out tests one by one, except those that share something."""

    def _split_scope(self, nodeid: str) -> str:
        return _shared(nodeid.partition("::")[0]) or nodeid


@cache
def _shared(file: str) -> str | None:
    """Name what the tests of a file share: the costliest server, else the file itself, else nothing."""
    text = (ROOT / file).read_text("utf-8")
    servers = sorted(_SERVERS.findall(text))
    if servers:
        return str(servers[0])
    return file if _MODULE.search(text) else None
