"""Obfuscation of a log, file to file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from querycloak import formats
from querycloak.clients.obfuscation.base import check_pool, choose
from querycloak.clients.obfuscation.borrowed import align_pool
from querycloak.clients.obfuscation.history import SearchHistory
from querycloak.clients.obfuscation.mixing import mix
from querycloak.files import check_outputs
from querycloak.keys import Secret, derive
from querycloak.log import Log
from querycloak.truth import check_truth_path, write_truth

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, kw_only=True)
class Cover:
    """One call of `obfuscate`; settings that are None have the method's defaults."""

    log: str
    output: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    pool: str | None = None
    truth: Path | None = None
    seed: int | None = None
    format: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    keep: Sequence[str] = ()
    strict: bool = False

    def read(self, path: str) -> Log:
        """Read the log, or the pool in the same way."""
        return formats.read(
            path, format=self.format, mapping=self.mapping, keep=self.keep, strict=self.strict
        )


def cover(request: Cover, progress: Progress) -> dict[str, Any]:
    """Write the traces of all users and, for evaluation only, which rows are dummy searches."""
    kind, settings = choose(request.method, request.settings)
    check_pool(kind, request.pool)
    inputs = [request.log, request.pool, request.settings.get("bag")]
    check_outputs([request.output, request.truth], inputs)
    check_truth_path(request.truth)
    log = request.read(request.log)
    pool = align_pool(request.read(request.pool).frame, log.frame) if request.pool else None
    history = SearchHistory.of(log.frame, pool)
    method = kind(history, settings, derive(Secret.choose(request.seed).value, "obfuscate", request.method))
    layout = formats.Layout.for_output(request.output, like=log.layout, columns=log.frame.columns)
    fakes = records = 0
    truths = []
    with formats.Writer(request.output, layout, private=True) as writer:
        for chunk in mix(method):
            writer.write(chunk.trace)
            fakes += chunk.fakes
            records += chunk.trace.height
            truths += [chunk.truth] if request.truth else []
            progress("cover", records, None)
        if request.truth:  # the traces get their name last, as a release does
            write_truth(request.truth, pl.concat(truths))
        writer.commit()
    return {
        "method": request.method,
        "users": history.users,
        "searches": len(history),
        "fakes": fakes,
        "records": records,
        "timed": history.timed,
        "output": request.output,
        "truth": str(request.truth) if request.truth else None,
        "skipped": dict(log.skipped.counts),
    }
