"""What workers tell beside their rows: what was dropped and why, and what must be kept."""

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
class Told:
    """What workers told beside their rows, put together."""

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
    """Write down what one worker tells about the method at this place."""
    kept = None if table is None else base64.b64encode(_ipc(table)).decode()
    names = ("place", "dropped", "explanation", "tally", "state")
    return json.dumps(dict(zip(names, (place, dropped, explanation, tally, kept), strict=True))).encode()


def _ipc(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc(buffer)
    return buffer.getvalue()


def told(methods: Sequence[Protector], stored: Sequence[Stored], reports: Iterable[bytes]) -> Told:
    """Put together what all workers of each method told."""
    every = [json.loads(one) for one in reports]
    by_place = [[one for one in every if one["place"] == place] for place in range(len(methods))]
    return Told(
        [sum((Counter(one["dropped"]) for one in some), Counter()) for some in by_place],
        [_added([one["explanation"] for one in some]) for some in by_place],
        [_joined([one["tally"] for one in some]) for some in by_place],
        [
            _merged(method, [one["state"] for one in some], loaded)
            for method, some, loaded in zip(methods, by_place, stored, strict=True)
        ],
    )


def _added(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Add numbers up, at any depth; what is no number is the same everywhere."""
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
    """Combine what workers of a method keep for the next release."""
    found = [pl.read_ipc(io.BytesIO(base64.b64decode(table))) for table in tables if table is not None]
    if not found or method.source_state is None:
        return None
    return method.source_state.merge(found, loaded if isinstance(loaded, pl.DataFrame) else None)
