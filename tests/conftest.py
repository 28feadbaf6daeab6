"""What all tests share: hypothesis profiles, what tests cost, and small logs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, settings

from querycloak.testing.strategies import frame_of
from tests import durations, groups
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

_SPENT = pytest.StashKey[tuple[float, float, int]]()
slow_machine = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", max_examples=40, derandomize=True, **slow_machine)
settings.register_profile("deep", max_examples=250, **slow_machine)
#: For planted faults: that a test fails is enough, whatever the smallest example is.
settings.register_profile(
    "unshrunk", settings.get_profile("default"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile(os.environ.get("QUERYCLOAK_HYPOTHESIS", "default"))


if "PYTEST_XDIST_WORKER" in os.environ:
    from tests.compiling import share_compiled_kernels

    share_compiled_kernels()
durations.watch_processes()
_measured = durations.Measured()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what `tests.run` needs."""
    parser.addoption("--fast", action="store_true", help="only tests that take next to no CPU time")
    parser.addoption("--store-durations", action="store_true", help="update tests/durations.json")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not fast, if asked; with several workers, start with what costs most."""
    if config.getoption("--fast"):
        left = [item for item in items if not durations.is_fast(item.nodeid)]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if durations.is_fast(item.nodeid)]
    if "PYTEST_XDIST_WORKER" in os.environ:
        from tests.workers import costliest_first

        items[:] = [items[place] for place in costliest_first([item.nodeid for item in items])]
    config.stash[_SPENT] = durations.spent()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files whose folder needs a module that is not installed."""
    if collection_path.suffix != ".py" or groups.TESTS not in collection_path.parents:
        return None
    return True if not all(map(groups.is_installed, groups.marks_of(collection_path))) else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each test the marks of its folder."""
    for mark in groups.marks_of(item.path) if groups.TESTS in item.path.parents else ():
        item.add_marker(mark)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Note the CPU time since the phase before."""
    report = yield
    now = durations.spent()
    report.user_properties.append(("cpu", durations.cost(item.config.stash[_SPENT], now)))
    item.config.stash[_SPENT] = now
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _measured.add(report.nodeid, report.user_properties)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Store what was measured, where reports of all workers arrive."""
    if session.config.getoption("--store-durations") and "PYTEST_XDIST_WORKER" not in os.environ:
        durations.store(_measured.seconds)


@pytest.hookimpl(optionalhook=True)  # xdist's; pytest also runs without it
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let `tests.run` keep tests together that share something costly."""
    from tests.workers import scheduler

    return scheduler(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-home"))


@pytest.fixture(autouse=True)
def _kernels_are_loaded() -> Iterator[None]:
    """Wait for a thread that compiles kernels: numba's compiler sets the warning filters of all threads."""
    yield
    for thread in threading.enumerate():
        if thread.name == "warm-up":
            thread.join()


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
