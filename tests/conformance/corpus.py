"""Stored logs, each with places to cut it: together they show every planted fault (see `find_corpus`)."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from querycloak.testing.strategies import frame_of

FOLDER = Path(__file__).with_name("corpus")
FIELDS = ("user", "query", "time", "rank", "url", "category")


@cache
def corpus() -> dict[str, tuple[pl.DataFrame, list[int]]]:
    """Read the stored logs by name."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.json"))}


def _read(path: Path) -> tuple[pl.DataFrame, list[int]]:
    stored = json.loads(path.read_text("utf-8"))
    rows = [dict(zip(FIELDS, row, strict=True)) for row in stored["log"]]
    return frame_of([row | {"time": datetime.fromisoformat(row["time"])} for row in rows]), stored["at"]


def write(name: str, rows: list[dict[str, Any]], at: list[int], shows: list[str]) -> None:
    """Store a log, one record per line."""
    lines = [
        json.dumps([row[name].isoformat() if name == "time" else row[name] for name in FIELDS])
        for row in rows
    ]
    log = ",\n  ".join(lines)
    text = f'{{\n "shows": {json.dumps(shows)},\n "at": {json.dumps(at)},\n "log": [\n  {log}\n ]\n}}\n'
    (FOLDER / f"{name}.json").write_text(text.replace("[\n  \n ]", "[]"), "utf-8")
