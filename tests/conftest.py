"""What all tests share: hypothesis profiles and small logs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, settings

from querycloak.testing.strategies import frame_of
from tests.servers import (
    browser,
    kafka,
    kafka_of_the_session,
    postgres,
    postgres_of_the_session,
    postgres_url,
    spark,
)

#: Fixtures for every folder.
__all__ = [
    "browser",
    "kafka",
    "kafka_of_the_session",
    "postgres",
    "postgres_of_the_session",
    "postgres_url",
    "spark",
]

slow_machine = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", max_examples=40, derandomize=True, **slow_machine)
settings.register_profile("deep", max_examples=1000, **slow_machine)
settings.load_profile(os.environ.get("QUERYCLOAK_HYPOTHESIS", "default"))


@pytest.hookimpl(optionalhook=True)  # xdist's; pytest also runs without it
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let `tests.run` keep tests together that share something costly."""
    from tests.workers import Together

    return Together(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-home"))


@pytest.fixture
def small_log() -> pl.DataFrame:
    """Twelve people who ask the same five things, and one rare thing each."""
    common = ["weather", "cheap flights", "horoscope", "news", "red shoes"]
    rows = []
    for person in range(12):
        for place, query in enumerate([*common, f"rare thing of {'abcdefghijkl'[person]}"]):
            second = person * 60 + place
            time = f"2006-03-01 10:{second // 60:02d}:{second % 60:02d}"
            rows.append({"user": f"u{person}", "query": query, "time": time, "rank": None, "url": None})
    frame = frame_of([]).select("user", "query", "rank", "url")
    made = pl.DataFrame(rows, schema_overrides=frame.schema).with_columns(
        pl.col("time").str.to_datetime(time_zone="UTC", time_unit="us"), category=pl.lit("Sports/Soccer")
    )
    return made.with_row_index("row").cast({"row": pl.Int64})
