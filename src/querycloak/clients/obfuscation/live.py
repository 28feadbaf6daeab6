"""Live obfuscation: real queries come in, and go out among dummy queries that are due.

    async for query in mix_live(queries, cover, LiveTiming(timing="burst"), stream):
        answer = await search(query.text)
        if not query.fake:
            show(answer)

`fake` is for the sender only, which must drop the answers of dummy queries.

Lines of the protocol on standard input are a query, as plain text or `{"query": …}`, or the titles of
results, `{"results": [titles]}`; lines of the output are JSON objects.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import os
import stat
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, BinaryIO, Final

from querycloak.clients import is_query
from querycloak.clients.obfuscation.base import LiveCover, TimedSettings, choose
from querycloak.clients.obfuscation.feeds import TITLE_LIMIT, tidy
from querycloak.clients.obfuscation.random_stream import KeyedStream
from querycloak.clients.obfuscation.timing import BURST_PAUSE, SHORTEST
from querycloak.errors import UsageError
from querycloak.keys import Secret, derive
from querycloak.settings import setting

#: Queries that may wait to be sent, and bursts that may be in progress; further dummy queries are left out.
MAX_WAITING: Final = 1_000
#: The longest line, in bytes, and the largest number of titles of a result.
LINE_LIMIT: Final = 64 * 1024
MAX_TITLES: Final = 50


@dataclass(frozen=True)
class OutgoingQuery:
    """A query to be sent now."""

    text: str
    fake: bool


@dataclass(frozen=True)
class ResultTitles:
    """Titles of a search engine's results, from which later dummy queries are made."""

    titles: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LiveTiming(TimedSettings):
    """Times of dummy queries: `fakes` on average in a burst after a real query, or at intervals."""

    method = "obfuscate"

    every: float = setting(60.0, at_least=0.001, at_most=1e9, help="mean seconds between two dummy queries")
    speed: float = setting(
        1.0, at_least=1e-6, at_most=1e9, help="factor by which time passes faster, for trials"
    )

    def pause(self, stream: KeyedStream) -> float:
        """Draw the seconds before the next dummy query that follows no real one."""
        factor = 1.0 if self.timing == "regular" else SHORTEST + (2 - 2 * SHORTEST) * stream.one()
        return self.every * factor / self.speed

    def burst(self, stream: KeyedStream) -> list[float]:
        """Draw the pauses before the dummy queries of a burst, in seconds."""
        mean = self.fakes * 2 * stream.one()  # a fixed number would reveal a burst
        low, high = BURST_PAUSE
        return [(low + (high - low) * stream.one()) / self.speed for _ in range(stream.whole(mean))]


async def mix_live(
    real: AsyncIterator[str | ResultTitles], cover: LiveCover, timing: LiveTiming, stream: KeyedStream
) -> AsyncIterator[OutgoingQuery]:
    """Yield every real query at once, and dummy queries when they are due.

    It ends when the real queries end, after the bursts that they started. It waits for a slow consumer and
    leaves out dummy queries that would accumulate. An error of the cover ends it: real queries never
    continue without cover.
    """
    ready: asyncio.Queue[OutgoingQuery | None] = asyncio.Queue(MAX_WAITING)
    work = asyncio.create_task(_Mixer(cover, timing, stream, ready).run(real))
    try:
        while (query := await ready.get()) is not None:
            yield query
        await work  # for its exception, if there is one
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


@dataclass
class _Mixer:
    """The tasks of `mix_live`: real queries, dummy queries by the clock, and bursts."""

    cover: LiveCover
    timing: LiveTiming
    stream: KeyedStream
    ready: asyncio.Queue[OutgoingQuery | None]
    bursts: int = 0

    async def run(self, real: AsyncIterator[str | ResultTitles]) -> None:
        """Work until the real queries end or something fails, then put None into the queue."""
        failure: Exception | None = None
        try:
            async with asyncio.TaskGroup() as group:
                clock = group.create_task(self._by_clock())
                async for event in real:
                    await self._take(event, group)
                clock.cancel()
        except ExceptionGroup as failures:
            failure = failures.exceptions[0]
        await self.ready.put(None)
        if failure:
            raise failure

    async def _take(self, event: str | ResultTitles, group: asyncio.TaskGroup) -> None:
        if isinstance(event, ResultTitles):
            self.cover.observe(event.titles)
            return
        await self.ready.put(OutgoingQuery(event, fake=False))
        if self.timing.timing == "burst" and self.bursts < MAX_WAITING:
            self.bursts += 1
            group.create_task(self._burst(self.timing.burst(self.stream)))

    async def _burst(self, pauses: list[float]) -> None:
        for pause in pauses:
            await asyncio.sleep(pause)
            self._put_fake()
        self.bursts -= 1

    async def _by_clock(self) -> None:
        while self.timing.timing != "burst":
            await asyncio.sleep(self.timing.pause(self.stream))
            self._put_fake()

    def _put_fake(self) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self.ready.put_nowait(OutgoingQuery(self.cover.next_query(), fake=True))


# lines on standard input and output


def parse_line(line: bytes) -> str | ResultTitles | None:
    """Parse a line of the input; None if it is neither a query nor a result."""
    if len(line) > LINE_LIMIT:
        return None
    try:
        text = line.decode().strip()
        event = json.loads(text) if text.startswith("{") else {"query": text}
    except (ValueError, RecursionError):
        return None
    if "query" in event:
        query = event["query"]
        return query if is_query(query) and query.strip() else None
    titles = event.get("results")
    if not isinstance(titles, list) or not all(isinstance(title, str) for title in titles):
        return None
    return ResultTitles(tuple(tidy(title, TITLE_LIMIT) for title in titles[:MAX_TITLES]))


def format_line(query: OutgoingQuery) -> bytes:
    """Return the line of a query that is to be sent now."""
    moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = {"time": moment, "query": query.text, "fake": query.fake}
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


def read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield lines until the end or an error; a line above the limit is cut so that it is still too long."""
    with contextlib.suppress(OSError):
        while line := stream.readline(LINE_LIMIT + 2):
            rest = line
            while len(rest) > LINE_LIMIT + 1 and not rest.endswith(b"\n"):
                rest = stream.readline(LINE_LIMIT + 2)
            yield line.removesuffix(b"\n")


def run(
    method: str,
    settings: Mapping[str, Any],
    timing: Mapping[str, Any],
    output: str = "-",
    seed: int | None = None,
) -> dict[str, int]:
    """Read real queries from standard input and write them among dummy queries; return the counts."""
    kind, chosen = choose(method, settings)
    stream = KeyedStream(derive(Secret.choose(seed).value, "obfuscate", "live"))
    shared = {name: value for name in ("timing", "fakes") if (value := settings.get(name)) is not None}
    when = LiveTiming.given(shared | {name: value for name, value in timing.items() if value is not None})
    cover = kind.live(chosen, stream)
    if cover is None:
        raise UsageError(f"`{method}` has no live form", hint="`tmn` has one")
    if output == "-":
        return asyncio.run(_run(cover, when, stream, sys.stdout.buffer))
    try:
        with open(output, "ab", opener=_private) as file:
            return asyncio.run(_run(cover, when, stream, file))
    except OSError as error:
        raise UsageError(f"the output cannot be written: {error.strerror}") from None


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read: its lines reveal which queries are dummies.

    A device or a pipe keeps its mode, since others use it too.
    """
    descriptor = os.open(path, flags, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.fchmod(descriptor, 0o600)
    return descriptor


async def _run(cover: LiveCover, timing: LiveTiming, stream: KeyedStream, out: BinaryIO) -> dict[str, int]:
    done = {"real": 0, "fakes": 0, "not_understood": 0}
    async for query in mix_live(_events(done), cover, timing, stream):
        out.write(format_line(query))
        out.flush()
        done["fakes" if query.fake else "real"] += 1
    return done


async def _events(done: dict[str, int]) -> AsyncIterator[str | ResultTitles]:
    waiting: asyncio.Queue[bytes | None] = asyncio.Queue(1)
    # a thread of its own, which can stay blocked in a read when everything else ends
    threading.Thread(target=_feed, args=(asyncio.get_running_loop(), waiting), daemon=True).start()
    while (line := await waiting.get()) is not None:
        event = parse_line(line)
        done["not_understood"] += event is None and bool(line.strip())
        if event is not None:
            yield event


def _feed(loop: asyncio.AbstractEventLoop, waiting: asyncio.Queue[bytes | None]) -> None:
    stream: BinaryIO = sys.stdin.buffer
    with contextlib.suppress(OSError):  # a thread must not hold the lock of stdin's buffer when Python ends
        stream = open(stream.fileno(), "rb", closefd=False)  # noqa: SIM115 - the thread may never end
    for line in chain(read_lines(stream), [None]):
        put = waiting.put(line)
        try:
            asyncio.run_coroutine_threadsafe(put, loop).result()
        except (RuntimeError, concurrent.futures.CancelledError):  # the loop has ended
            put.close()
            return
