"""One server as a process: started under a watchdog, and stopped softly or hard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from querycloak.errors import UsageError
from tests.support.servers import watchdog

#: Seconds for anything that a server is asked to do: generous, since test machines are busy.
LIMIT = 120.0
#: Seconds that a server has to stop by itself.
PATIENCE = 30.0


def wait_until(holds: Callable[[], bool], what: str, seconds: float = LIMIT) -> None:
    """Wait until something holds; after so many seconds, fail and say what was waited for."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise UsageError(f"waited {seconds:g} seconds in vain until {what}")
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Say whether a process is there; one that ended and waits for its parent to notice is not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


class Process:
    """A running server that ends, at the latest, when the process that started it ends."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        folder: Path,
        remove: bool,
        account: tuple[int, int] | None = None,
        orphaned: signal.Signals = signal.SIGKILL,
    ) -> None:
        """Start a command in a folder; an orphaned server gets that signal, and may lose its folder."""
        keep = [sys.executable, "-I", "-S", watchdog.__file__, orphaned.name, str(folder) if remove else ""]
        with (folder / "server.log").open("ab") as log:
            # A session of its own: Ctrl-C is for the tests, which then stop their servers in order.
            self._watchdog = subprocess.Popen(
                [*keep, *as_account(account), "--pdeathsig", "KILL", "--", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                start_new_session=True,
            )
        assert self._watchdog.stdout is not None
        self.pid = int(self._watchdog.stdout.readline())

    @property
    def running(self) -> bool:
        """Whether the server has not ended."""
        return self._watchdog.poll() is None

    def stop(self, how: signal.Signals) -> None:
        """Send a signal, and wait until the server is gone; what does not go by itself is killed."""
        family = [self.pid, *_children(self.pid)]
        if how != signal.SIGKILL:
            _send(self.pid, how)
            with suppress(UsageError):
                wait_until(lambda: not alive(self.pid), "the server is gone", PATIENCE)
        for pid in filter(alive, family):
            _send(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(alive, family)), "the server is gone")
        self._watchdog.wait(LIMIT)
        for pipe in (self._watchdog.stdin, self._watchdog.stdout):
            assert pipe is not None
            pipe.close()


def as_account(account: tuple[int, int] | None) -> list[str]:
    """Begin a command that runs as a user and group of these numbers; None: as whoever calls."""
    if account is None:
        return ["setpriv"]
    user, group = account
    return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]


def _send(pid: int, what: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, what)


def _children(pid: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    return []
