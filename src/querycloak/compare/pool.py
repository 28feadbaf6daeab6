"""A process pool with a time limit per job; a crashed job does not stop the others."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from querycloak.compare import worker
from querycloak.compare.plan import Job
from querycloak.environment import free_memory
from querycloak.errors import MissingExtra
from querycloak.keys import write_private
from querycloak.registry import Additions, add_all, additions
from querycloak.temporary_files import before_removal

#: Memory of a process before it has read anything, and its growth per byte of the log's file.
_BASE: Final = 400 << 20
_GROWTH: Final = 40
#: Seconds between two checks of the time limits.
_INTERVAL: Final = 0.5
FAULT: Final = "fault"
TOO_SLOW: Final = "too-slow"
#: Failures that another start may not meet: the machine, the installation or the program has changed.
_TRY_AGAIN: Final = (FAULT, "memory", MissingExtra.code)
#: Called after each job: how many are done, of how many, and the estimated seconds for the rest.
Report = Callable[[int, int, float], None]


@dataclass
class RunningJob:
    """A job in its process."""

    process: Any
    key: str
    deadline: float


class WorkerPool:
    """Runs jobs in processes; a stored result of an earlier start is used again."""

    def __init__(self, log: Path, fingerprint: str, results: Path, work: Path, *, seconds: float) -> None:
        self._log, self._fingerprint, self._results, self._work = log, fingerprint, results, work
        self._seconds = seconds
        self._context: Any = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
        self.at_once = capacity(log)

    def key(self, job: Job) -> str:
        """Return the name under which a job's result is stored."""
        return job.key(self._fingerprint)

    def run(self, work: Sequence[Job], report: Report) -> dict[str, dict[str, Any]]:
        """Run all jobs; return each one's result by its key."""
        results = {self.key(job): self._stored(self.key(job)) for job in work}
        waiting = [job for job in work if results[self.key(job)] is None]
        total, running, started = len(results), list[RunningJob](), time.monotonic()
        first = total - len(waiting)

        def end() -> None:
            for one in list(running):
                one.process.kill()
                one.process.join()

        before_removal.append(end)
        try:
            while waiting or running:
                while waiting and len(running) < self.at_once:
                    running.append(self._start(waiting.pop(0)))
                ended = self._ended(running)
                for one in ended:
                    running.remove(one)
                    results[one.key] = self._read(one.key) or self._lost(one)
                done = total - len(waiting) - len(running)
                if ended:
                    each = (time.monotonic() - started) / max(1, done - first)
                    report(done, total, each * (total - done))
        finally:
            end()
            before_removal.remove(end)
        return {key: found for key, found in results.items() if found is not None}

    def _start(self, job: Job) -> RunningJob:
        key = self.key(job)
        self._file(key).unlink(missing_ok=True)  # a stale failure must not pass for this run's
        arguments = (job, self._log, self._work, self._file(key), additions())
        process = self._context.Process(target=_work, args=arguments, daemon=True)
        with _without_script():
            process.start()
        return RunningJob(process, key, time.monotonic() + self._seconds)

    def _ended(self, running: list[RunningJob]) -> list[RunningJob]:
        """Wait a moment, end jobs past their deadline, and return all that have ended."""
        wait([one.process.sentinel for one in running], _INTERVAL)
        for one in running:
            if one.process.is_alive() and time.monotonic() > one.deadline:
                one.process.kill()
                one.process.join()
                failed = f"stopped after {self._seconds:g} seconds"
                found = {"failed": failed, "kind": TOO_SLOW, "seconds": self._seconds}
                write_private(self._file(one.key), json.dumps(found).encode())
        return [one for one in running if not one.process.is_alive()]

    def _lost(self, one: RunningJob) -> dict[str, Any]:
        """Return the result of a process that ended without one; a later start tries it again."""
        one.process.join()
        code = one.process.exitcode
        why = "was killed, most likely for want of memory" if code == -9 else f"ended with status {code}"
        return {"failed": f"its process {why}", "kind": "died"}

    def _stored(self, key: str) -> dict[str, Any] | None:
        """Return a result of an earlier start, unless another try may end differently."""
        found = self._read(key)
        if found is None or found.get("kind") in _TRY_AGAIN:
            return None
        if found.get("kind") == TOO_SLOW and found.get("seconds", 0.0) < self._seconds:
            return None
        return found

    def _file(self, key: str) -> Path:
        return self._results / f"{key}.json"

    def _read(self, key: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self._file(key).read_bytes())
        except (OSError, ValueError):
            return None
        return found


def capacity(log: Path) -> int:
    """Return how many jobs may run at once: one per core, limited by free memory."""
    each = _BASE + _GROWTH * log.stat().st_size
    return max(1, min(os.cpu_count() or 1, free_memory() // each))


@contextmanager
def _without_script() -> Iterator[None]:
    """Hide the script that called us while a process starts: it would be imported there, and run again."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _end_with_parent() -> None:
    """End this process when its parent does: the next run removes the folder that it works in."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _work(job: Job, log: Path, folder: Path, result: Path, added: Additions) -> None:
    """Run one job in its own process; its result gets the final name when it is complete."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        add_all(added)
        found = worker.run(job, log, folder)
    except Exception as error:  # must not end the comparison, and its text may hold a query
        found = {"failed": f"a fault of the program ({type(error).__name__})", "kind": FAULT}
    write_private(result, json.dumps(found).encode())
