"""Runs jobs in processes of their own, as many at once as there is room for, and survives any of them."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Final

from querycloak.engines.compare import job as jobs
from querycloak.engines.compare.plan import Job
from querycloak.engines.request import free_memory
from querycloak.keys import write_private

#: What a process takes before it has read anything, and how many times a log's file it may need then.
_BASE: Final = 400 << 20
_SWELL: Final = 40
#: Seconds between two looks at the clock.
_LOOK: Final = 0.5
FAULT: Final = "fault"
#: Told after each job: how many are done, of how many, and the seconds that the rest may take.
Told = Callable[[int, int, float], None]


@dataclass
class Running:
    """A job that is under way."""

    process: Any
    key: str
    until: float


class Crew:
    """Works jobs off; a result that is there already is not made again."""

    def __init__(self, log: Path, fingerprint: str, results: Path, work: Path, *, seconds: float) -> None:
        self._log, self._fingerprint, self._results, self._work = log, fingerprint, results, work
        self._seconds = seconds
        self._context: Any = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
        self.at_once = room(log)

    def key(self, job: Job) -> str:
        """Say under which name a job's result is kept."""
        return job.key(self._fingerprint)

    def run(self, work: Sequence[Job], told: Told) -> dict[str, dict[str, Any]]:
        """Run all jobs; give each one's result by its key."""
        results = {self.key(job): self._kept(self.key(job)) for job in work}
        waiting = [job for job in work if results[self.key(job)] is None]
        total, running, started = len(results), list[Running](), time.monotonic()
        first = total - len(waiting)
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
                    told(done, total, _rest(time.monotonic() - started, done - first, total - done))
        finally:
            for one in running:
                one.process.kill()
                one.process.join()
        return {key: found for key, found in results.items() if found is not None}

    def _start(self, job: Job) -> Running:
        key = self.key(job)
        arguments = (job, self._log, self._work, self._results / f"{key}.json")
        process = self._context.Process(target=_work, args=arguments, daemon=True)
        process.start()
        return Running(process, key, time.monotonic() + self._seconds)

    def _ended(self, running: list[Running]) -> list[Running]:
        """Wait a moment; give those that ended, and end those that took too long."""
        wait([one.process.sentinel for one in running], _LOOK)
        for one in running:
            if one.process.is_alive() and time.monotonic() > one.until:
                one.process.kill()
                one.process.join()
                self._write(
                    one.key, {"failed": f"stopped after {self._seconds:g} seconds", "kind": "too-slow"}
                )
        return [one for one in running if not one.process.is_alive()]

    def _lost(self, one: Running) -> dict[str, Any]:
        """Say that a process died without a word; a later start tries it again."""
        one.process.join()
        code = one.process.exitcode
        why = "was killed, most likely for want of memory" if code == -9 else f"ended with status {code}"
        return {"failed": f"its process {why}", "kind": "died"}

    def _kept(self, key: str) -> dict[str, Any] | None:
        """Give a result of an earlier start, unless it is worth another try."""
        found = self._read(key)
        return None if found is None or found.get("kind") == FAULT else found

    def _read(self, key: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self._results / f"{key}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return found

    def _write(self, key: str, found: dict[str, Any]) -> None:
        write_private(self._results / f"{key}.json", json.dumps(found).encode())


def room(log: Path) -> int:
    """Say how many jobs fit at once: one for each core, and no more than memory has room for."""
    each = _BASE + _SWELL * log.stat().st_size
    return max(1, min(os.cpu_count() or 1, free_memory() // each))


def _work(job: Job, log: Path, folder: Path, result: Path) -> None:
    """Run one job in its own process; the result takes its name when it is whole."""
    try:
        found = jobs.run(job, log, folder)
    except Exception as error:  # a fault of ours must not end the whole comparison, nor show what it met
        found = {"failed": f"a fault of the program ({type(error).__name__})", "kind": FAULT}
    write_private(result, json.dumps(found).encode())


def _rest(spent: float, done: int, left: int) -> float:
    return spent / max(1, done) * left
