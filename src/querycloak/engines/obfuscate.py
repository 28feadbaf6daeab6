"""Covers a log with fakes, file to file; and runs a live client over standard input and output."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from querycloak import formats
from querycloak.clients.obfuscation import lines, pool, trace
from querycloak.clients.obfuscation.draws import Draws
from querycloak.clients.obfuscation.evolving import Evolving
from querycloak.clients.obfuscation.live import Rhythm, Seen, cover
from querycloak.clients.obfuscation.searches import Searches
from querycloak.clients.obfuscation.settings import Settings
from querycloak.engines.source import silent
from querycloak.errors import UsageError
from querycloak.files import check_outputs
from querycloak.keys import Secret, derive
from querycloak.truth import write_truth

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, kw_only=True)
class Cover:
    """One call of `obfuscate`."""

    log: str
    output: str
    settings: Settings
    truth: Path | None = None
    seed: int | None = None
    format: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    keep: Sequence[str] = ()
    strict: bool = False
    progress: Progress = silent


def obfuscate(request: Cover) -> dict[str, Any]:
    """Write everybody's trace with fakes in it and, for evaluation only, which rows are fakes."""
    check_outputs([request.output, request.truth], [request.log, request.settings.pool])
    log = formats.read(request.log, format=request.format, mapping=request.mapping, keep=request.keep,
                  strict=request.strict)  # fmt: skip
    key = derive(Secret.choose(request.seed).value, "obfuscate", request.settings.method)
    searches = Searches.of(log.frame, _pool(request, log.frame))
    found: dict[str, Any] = {
        "method": request.settings.method,
        "users": searches.people,
        "searches": len(searches),
        "fakes": 0,
        "records": 0,
        "timed": searches.timed,
    }
    layout = formats.Layout.for_output(request.output, like=log.layout, columns=log.frame.columns)
    told = []
    with formats.Writer(request.output, layout, private=True) as writer:
        for piece in trace.covered(searches, request.settings, key):
            writer.write(piece.trace)
            found["fakes"] += piece.fakes
            found["records"] += piece.trace.height
            told += [piece.truth] if request.truth else []
            request.progress("cover", found["records"], None)
        if request.truth:
            write_truth(request.truth, pl.concat(told))
        writer.commit()
    return {
        **found,
        "output": request.output,
        "truth": str(request.truth) if request.truth else None,
        "skipped": dict(log.skipped.counts),
    }


def _pool(request: Cover, log: pl.DataFrame) -> pl.DataFrame | None:
    """Read whom to borrow from, where that is another log; it is read as the first one is."""
    if request.settings.pool is None:
        return None
    found = formats.read(request.settings.pool, format=request.format, mapping=request.mapping,
                         keep=request.keep, strict=request.strict)  # fmt: skip
    return pool.fitted(found.frame, log)


def live(settings: Settings, rhythm: Rhythm, output: str = "-", seed: int | None = None) -> dict[str, int]:
    """Read real queries from standard input, write them among fakes as they are due; say how many."""
    from querycloak.clients.obfuscation.tmn import bag_of

    if settings.method != "tmn":
        raise UsageError(
            f"`{settings.method}` borrows from a log, so it has no live form", hint="`tmn` has one"
        )
    draws = Draws(derive(Secret.choose(seed).value, "obfuscate", "live"))
    client = Evolving(bag_of(settings), draws)
    if output == "-":
        return asyncio.run(_run(client, rhythm, draws, sys.stdout.buffer))
    try:
        with open(output, "ab", opener=_private) as file:
            return asyncio.run(_run(client, rhythm, draws, file))
    except OSError as error:
        raise UsageError(f"the output cannot be written: {error.strerror}") from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


async def _run(client: Evolving, rhythm: Rhythm, draws: Draws, out: BinaryIO) -> dict[str, int]:
    done = {"real": 0, "fakes": 0, "not_understood": 0}
    async for sent in cover(_heard(done), client, rhythm, draws):
        out.write(lines.write(sent))
        out.flush()
        done["fakes" if sent.fake else "real"] += 1
    return done


async def _heard(done: dict[str, int]) -> AsyncIterator[str | Seen]:
    """Yield what stands on the lines of standard input, as they come."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[bytes] = asyncio.Queue(1)
    # a thread of its own, which may stay blocked in a read when everything else ends
    threading.Thread(target=_read, args=(_reader(sys.stdin.buffer), loop, waiting), daemon=True).start()
    split = lines.Tokenizer()
    while chunk := await waiting.get():
        for line in split.feed(chunk):
            if (event := _understood(line, done)) is not None:
                yield event
    if (event := _understood(split.rest, done)) is not None:
        yield event


def _understood(line: bytes, done: dict[str, int]) -> str | Seen | None:
    event = lines.read(line)
    done["not_understood"] += event is None and bool(line.strip())
    return event


def _reader(stream: BinaryIO) -> Callable[[], bytes]:
    """Read past the buffer, whose lock a thread must not hold when Python ends."""
    try:
        number = stream.fileno()
    except OSError:
        return lambda: stream.read(lines.LINE_LIMIT)
    return lambda: os.read(number, lines.LINE_LIMIT)


def _read(more: Callable[[], bytes], loop: asyncio.AbstractEventLoop, waiting: asyncio.Queue[bytes]) -> None:
    chunk = b" "
    while chunk:
        try:
            chunk = more()
        except OSError:
            chunk = b""
        put = waiting.put(chunk)
        try:
            asyncio.run_coroutine_threadsafe(put, loop).result()
        except (RuntimeError, concurrent.futures.CancelledError):  # nobody listens any more
            put.close()
            return
