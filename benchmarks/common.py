"""What the benchmarks share: machine, clocks, memory, and functions that run in a process of their own."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
PROGRAM = str(Path(sys.executable).with_name("querycloak"))


def machine() -> dict[str, Any]:
    """Return where figures come from: processor, cores, Python, commit and time."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "processor": next(models, "unknown"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "commit": commit.stdout.strip(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Run once; return the result, and the seconds of the clock and of the processor (cores are shared)."""
    clock, busy = time.perf_counter(), time.process_time()
    result = work()
    seconds, cpu = time.perf_counter() - clock, time.process_time() - busy
    return result, {"seconds": round(seconds, 4), "cpu_seconds": round(cpu, 4)}


def best_of(work: Callable[[], Any], times: int = 3) -> float:
    """Return the least seconds of a few runs: the machine is shared."""
    return min(timed(work)[1]["seconds"] for _ in range(times))


class Steps:
    """Processor seconds of each step of a run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.process_time()

    def end(self, name: str) -> None:
        """Store the seconds since the last step ended."""
        now = time.process_time()
        self.seconds[name], self._last = round(now - self._last, 2), now


def peak_gigabytes() -> float:
    """Return the peak memory of this process."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2)


def cpu_seconds(process: int) -> float:
    """Return the processor seconds that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_bytes(process: int) -> int:
    """Watch a process until it ends; what the system reports afterwards counts its parent's memory too."""
    peak, status = 0, Path(f"/proc/{process}/status")
    while True:
        try:
            lines = status.read_text().splitlines()
        except OSError:
            return peak
        found = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
        if not found:  # it has ended and waits for its parent
            return peak
        peak = max(peak, found[0] * 1024)
        time.sleep(0.02)


def array_bytes(part: Any, shared: Any, seen: set[int] | None = None) -> int:
    """Return the size of all arrays that an object holds, its parts included, `shared` excluded."""
    seen = set() if seen is None else seen
    if part is shared or id(part) in seen:
        return 0
    seen.add(id(part))
    if isinstance(part, np.ndarray):
        return int(part.nbytes)
    inside = part if isinstance(part, list | tuple) else getattr(part, "__dict__", {}).values()
    return sum(array_bytes(one, shared, seen) for one in inside)


def command_of(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """Return the command that runs a function of a benchmark in a process and prints its result as JSON."""
    name = f"{function.__module__}:{function.__name__}"
    return [sys.executable, "-m", "benchmarks.common", name, json.dumps(arguments)]


def in_own_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a process of its own, since memory is counted at its peak."""
    done = subprocess.run(command_of(function, *arguments), check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    where, _, called = sys.argv[1].partition(":")
    print(json.dumps(getattr(import_module(where), called)(*json.loads(sys.argv[2]))))
