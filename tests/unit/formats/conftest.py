"""Helpers for tests of formats: small made-up logs, and a file from bytes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

TIME = pl.Datetime("us", "UTC")
SCHEMA = {"user": pl.String, "query": pl.String, "time": TIME, "rank": pl.Int64, "url": pl.String}


@pytest.fixture
def log_file(tmp_path: Path) -> Callable[[bytes, str], Path]:
    def make(content: bytes, name: str = "log.tsv") -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return make


@pytest.fixture
def small() -> pl.DataFrame:
    rows = [
        ("u1", "red kettle", datetime(2024, 3, 1, 7, 17, 12, tzinfo=UTC), None, None),
        ("u1", "red kettle", datetime(2024, 3, 1, 7, 17, 12, tzinfo=UTC), 2, "http://kettles.example"),
        ("u2", "طقس 🌧 \u200fاليوم", datetime(2024, 3, 2, 0, 0, 0, tzinfo=UTC), 1, "http://x.example/?a=1,2"),
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")
