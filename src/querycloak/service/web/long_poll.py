"""Long poll: requests wait until lines after an offset are released."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from querycloak.service.stream.observer import StreamObserver
from querycloak.service.stream.stream import Output


class ReleaseWaiter(StreamObserver):
    """Wakes all waiting requests when sinks have new lines."""

    def __init__(self, last_offset: Callable[[], int]) -> None:
        self._last_offset = last_offset
        self._loop: asyncio.AbstractEventLoop | None = None
        self._new_lines = asyncio.Event()

    def on_delivery(self, output: Output) -> None:
        """Wake the requests; runs in the worker's thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        new_lines, self._new_lines = self._new_lines, asyncio.Event()
        new_lines.set()

    async def wait_beyond(self, offset: int, seconds: float) -> None:
        """Return when a line after `offset` is released, or after so many seconds."""
        self._loop = asyncio.get_running_loop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._last_offset() <= offset:
                    await self._new_lines.wait()
