"""Side outputs of Spark workers: drop counts, facts for the certificate, and stored state."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from querycloak.engines.source_state import Stored
from querycloak.protector import Protector, State


@dataclass
class WorkerReports:
    """The reports of all workers, combined by method."""

    dropped: list[Counter[str]]
    explanation: list[dict[str, Any]]
    tally: list[State]
    stored: list[pl.DataFrame | None]


def report(
    place: int,
    dropped: dict[str, int],
    explanation: dict[str, Any],
    tally: dict[str, list[Any]],
    table: pl.DataFrame | None,
) -> bytes:
    """Return one worker's report about the method at this place."""
    kept = None if table is None else base64.b64encode(_ipc(table)).decode()
    names = ("place", "dropped", "explanation", "tally", "state")
    return json.dumps(dict(zip(names, (place, dropped, explanation, tally, kept), strict=True))).encode()


def _ipc(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc(buffer)
    return buffer.getvalue()


def combine(
    methods: Sequence[Protector], stored: Sequence[Stored], reports: Iterable[bytes]
) -> WorkerReports:
    """Combine the reports of all workers."""
    every = [json.loads(one) for one in reports]
    by_place = [[one for one in every if one["place"] == place] for place in range(len(methods))]
    return WorkerReports(
        [sum((Counter(one["dropped"]) for one in some), Counter()) for some in by_place],
        [_added([one["explanation"] for one in some]) for some in by_place],
        [_joined([one["tally"] for one in some]) for some in by_place],
        [
            _merged(method, [one["state"] for one in some], loaded)
            for method, some, loaded in zip(methods, by_place, stored, strict=True)
        ],
    )


def _added(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Add numbers at any depth; other values are the same in all parts."""
    found: dict[str, Any] = {}
    for name, value in (pair for part in parts for pair in part.items()):
        if isinstance(value, dict):
            found[name] = _added([found.get(name, {}), value])
        else:
            found[name] = found.get(name, 0) + value if isinstance(value, int | float) else value
    return found


def _joined(parts: list[dict[str, list[Any]]]) -> State:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.array([value for part in parts for value in part[name]]) for name in names}


def _merged(method: Protector, tables: list[str | None], loaded: Stored) -> pl.DataFrame | None:
    """Combine the state that workers of a method store for the next release."""
    found = [pl.read_ipc(io.BytesIO(base64.b64decode(table))) for table in tables if table is not None]
    if not found or method.source_state is None:
        return None
    return method.source_state.merge(found, loaded if isinstance(loaded, pl.DataFrame) else None)
