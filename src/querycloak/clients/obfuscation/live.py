"""Cover as it is needed: real queries come in, and go out among fakes that are due.

    async for sent in cover(queries, client, Rhythm(timing="burst"), draws):
        answer = await search(sent.query)
        if not sent.fake:
            show(answer)

`fake` is for the one who sends them, who must know which answers to drop; it belongs nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from querycloak.clients.obfuscation.draws import Draws
from querycloak.clients.obfuscation.timing import BURST_PAUSE, SHORTEST
from querycloak.errors import ParameterError

#: Fakes that may wait to be sent, and events that may wait to be taken; what is beyond waits or is left out.
MOST_WAITING: Final = 1_000


@dataclass(frozen=True)
class Sent:
    """A query to be sent now."""

    query: str
    fake: bool


@dataclass(frozen=True)
class Seen:
    """What a search engine answered to any query, by its titles: food for later fakes."""

    titles: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Rhythm:
    """When fakes are due: some `fakes` in a burst after a real query, or one `every` so many seconds.

    `speed` makes time run faster, for trials.
    """

    timing: str = "random"
    fakes: float = 1.0
    every: float = 60.0
    speed: float = 1.0

    def __post_init__(self) -> None:
        for name in ("every", "speed"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ParameterError(f"`{name}` must be a number above 0; got {value!r}")

    def pause(self, draws: Draws) -> float:
        """Say how many seconds pass before the next fake that nobody triggered."""
        factor = 1.0 if self.timing == "regular" else SHORTEST + (2 - 2 * SHORTEST) * draws.one()
        return self.every * factor / self.speed

    def burst(self, draws: Draws) -> list[float]:
        """Say after how many seconds each the fakes of a burst follow."""
        mean = self.fakes * 2 * draws.one()  # many now, none then: a fixed number would be a mark
        low, high = BURST_PAUSE
        return [(low + (high - low) * draws.one()) / self.speed for _ in range(draws.whole(mean))]


class Client(Protocol):
    """Whatever makes up fakes: `Evolving` is one."""

    def next(self) -> tuple[str, list[int]]:
        """Make up the next fake query."""

    def observe(self, titles: Iterable[str]) -> None:
        """Learn from answers."""


async def cover(
    real: AsyncIterator[str | Seen], client: Client, rhythm: Rhythm, draws: Draws
) -> AsyncIterator[Sent]:
    """Give every real query as soon as it comes, and fakes when they are due.

    It ends when the real ones end, after the bursts that they began. Whoever takes too little makes it
    wait, and fakes that would pile up are left out.
    """
    ready: asyncio.Queue[Sent | None] = asyncio.Queue(MOST_WAITING)
    work = asyncio.create_task(_Cover(client, rhythm, draws, ready).run(real))
    try:
        while (sent := await ready.get()) is not None:
            yield sent
        await work  # for its exception, if there is one
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


class _Cover:
    """The tasks behind `cover`: one takes real queries, one sends fakes by the clock, some are bursts."""

    def __init__(
        self, client: Client, rhythm: Rhythm, draws: Draws, ready: asyncio.Queue[Sent | None]
    ) -> None:
        self._client, self._rhythm, self._draws, self._ready = client, rhythm, draws, ready
        self._bursts: set[asyncio.Task[None]] = set()

    async def run(self, real: AsyncIterator[str | Seen]) -> None:
        """Work until the real queries end or fail, then say so."""
        try:
            await self._work(real)
        except Exception:
            await self._ready.put(None)
            raise
        await self._ready.put(None)

    async def _work(self, real: AsyncIterator[str | Seen]) -> None:
        clock = asyncio.create_task(self._by_clock())
        try:
            async for event in real:
                await self._take(event)
            await asyncio.gather(*self._bursts)
        finally:
            for task in (clock, *self._bursts):
                task.cancel()

    async def _take(self, event: str | Seen) -> None:
        if isinstance(event, Seen):
            self._client.observe(event.titles)
            return
        await self._ready.put(Sent(event, fake=False))
        if self._rhythm.timing == "burst" and len(self._bursts) < MOST_WAITING:
            task = asyncio.create_task(self._burst(self._rhythm.burst(self._draws)))
            self._bursts.add(task)
            task.add_done_callback(self._bursts.discard)

    async def _burst(self, pauses: list[float]) -> None:
        for pause in pauses:
            await asyncio.sleep(pause)
            self._fake()

    async def _by_clock(self) -> None:
        while self._rhythm.timing != "burst":
            await asyncio.sleep(self._rhythm.pause(self._draws))
            self._fake()

    def _fake(self) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._ready.put_nowait(Sent(self._client.next()[0], fake=True))
