"""CPU seconds of each test function: measured, stored, and used to choose and to order tests.

A function's number in `durations.json` is the sum over its cases, with set-up and with processes that ended
meanwhile. One that starts a process counts at least `FAST`. Those below `FAST` are not stored: they are fast.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STORED = Path(__file__).with_name("durations.json")
#: Functions that take less than this are the fast set of `make check`.
FAST = 0.1
_STARTS = {"subprocess.Popen", "os.fork", "os.posix_spawn", "os.forkpty"}
_started = Counter[str]()


def watch_processes() -> None:
    """Count the processes that this one starts from now on."""
    sys.addaudithook(lambda event, _: _started.update([event]) if event in _STARTS else None)


def spent() -> tuple[float, float, int]:
    """Return the CPU seconds of this process and of its ended children so far, and how many it started."""
    now = os.times()
    return now.user + now.system, now.children_user + now.children_system, _started.total()


def cost(before: tuple[float, float, int], after: tuple[float, float, int]) -> float:
    """Compute what happened between two moments, in CPU seconds."""
    own, children, started = (b - a for a, b in zip(before, after, strict=True))
    return max(own + children, FAST if started or children else 0.0)


def function_of(nodeid: str) -> str:
    """Return the name of a case's function, without its parameters."""
    return nodeid.partition("[")[0]


@cache
def stored() -> dict[str, float]:
    """Read the stored numbers."""
    return json.loads(STORED.read_text("utf-8")) if STORED.exists() else {}


@cache
def _by_name() -> dict[str, float]:
    """Find a function that moved by its name alone; of several the costliest counts."""
    found: dict[str, float] = {}
    for function, seconds in stored().items():
        name = function.rpartition("::")[2]
        found[name] = max(seconds, found.get(name, 0.0))
    return found


def expected(function: str) -> float:
    """Return the stored CPU seconds of a function; 0 for a fast or a new one, so `make check` runs it."""
    return stored().get(function, _by_name().get(function.rpartition("::")[2], 0.0))


def is_fast(nodeid: str) -> bool:
    """Whether a case belongs to the fast set."""
    return expected(function_of(nodeid)) < FAST


def store(measured: dict[str, float]) -> None:
    """Update the stored numbers; forget functions that are fast by now, or whose files are gone."""
    kept = {function: s for function, s in stored().items() if (ROOT / function.partition("::")[0]).exists()}
    both = (kept | measured).items()
    rounded = {function: round(seconds, 1) for function, seconds in both if seconds >= FAST}
    STORED.write_text(json.dumps(rounded, indent=0, sort_keys=True) + "\n", "utf-8")


class Measured:
    """Collects what workers measured; kept by the process that reports."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def add(self, nodeid: str, properties: Iterable[tuple[str, Any]]) -> None:
        """Add one phase of a case."""
        function = function_of(nodeid)
        for name, value in properties:
            if name == "cpu":
                self.seconds[function] = self.seconds.get(function, 0.0) + value
