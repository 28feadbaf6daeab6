"""Lets requests wait until something new was released."""

from __future__ import annotations

import asyncio
import contextlib

from querycloak.service.service import Service


class News:
    """Wakes all who wait whenever the worker has released records."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fresh = asyncio.Event()
        service.listen(self._told)

    def _told(self) -> None:
        """Called in the worker's thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever waited
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        fresh, self._fresh = self._fresh, asyncio.Event()
        fresh.set()

    async def beyond(self, offset: int, seconds: float) -> None:
        """Wait until something behind this offset was released, or the time is over."""
        self._loop = asyncio.get_running_loop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._service.released.last <= offset:
                    await self._fresh.wait()
