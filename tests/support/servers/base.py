"""What all local servers share: a folder, a start that waits for an answer, a stop that leaves nothing."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from querycloak.errors import UsageError
from tests.support.servers.process import Process, wait_until


class LocalServer(ABC):
    """A server of one's own for a while; use it with `with`.

    Without a folder it keeps its data in a temporary one, and removes that at the end. Address and data stay
    the same when it is stopped and started again; `hard` means SIGKILL, as a crash would be.
    """

    name: ClassVar[str]
    #: The signal for an orderly stop, and the one for a server whose owner has died.
    soft: ClassVar[signal.Signals] = signal.SIGTERM
    orphaned: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, folder: Path | None = None) -> None:
        self._temporary = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix=f"querycloak-{self.name}-".lower()))
        self.account: tuple[int, int] | None = None
        self._process: Process | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Lay out the folder before the first start; a folder that was laid out is left as it is."""

    @abstractmethod
    def command(self) -> list[str | Path]:
        """Give the command that runs the server in the foreground."""

    @abstractmethod
    def answers(self) -> bool:
        """Say whether the server takes requests now."""

    @property
    def pid(self) -> int:
        """The server's process; 0 while it is stopped."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start, and wait until it answers; a server that runs is left alone."""
        if self._process and self._process.running:
            return
        self.stop()
        process = self._process = Process(
            self.command(),
            folder=self.folder,
            remove=self._temporary,
            account=self.account,
            orphaned=self.orphaned,
        )
        try:
            wait_until(lambda: not process.running or self.answers(), f"{self.name} answers")
            if not process.running:
                raise UsageError(f"{self.name} ended while it started; its last words:\n{self.last_words()}")
        except BaseException:
            self.stop(hard=True)
            raise

    def stop(self, hard: bool = False) -> None:
        """Stop; what clients were told is kept must be there after the next start, also after a hard stop."""
        if self._process:
            self._process.stop(signal.SIGKILL if hard else self.soft)
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the process for a while (SIGSTOP): connections stay, and nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def restart(self, hard: bool = False) -> None:
        """Stop and start."""
        self.stop(hard)
        self.start()

    def last_words(self) -> str:
        """Give the end of what the server wrote about itself."""
        return "\n".join((self.folder / "server.log").read_text("utf-8", "replace").splitlines()[-15:])

    def __enter__(self) -> Self:
        try:
            self.prepare()
            self.start()
        except BaseException:
            self._clear()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._clear()

    def _clear(self) -> None:
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)
