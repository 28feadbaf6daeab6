"""What the watch counts: samples, what is held, delays, and an attack on the last rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from querycloak.service.monitor import linkage, monitor
from querycloak.service.monitor.linkage import TruthWindow
from querycloak.service.stream.stream import Output
from tests.unit.service.running import made_up, running, send


def test_what_is_held_is_summed_up_by_two_levels() -> None:
    paths = ["Sports/Soccer/Cup", "Sports/Soccer", "Sports/Golf", "Sports", "Arts/Film", None]
    assert monitor.by_category(pl.Series(paths)) == [
        {
            "category": "Sports",
            "held": 4,
            "parts": [
                {"category": "Sports/Soccer", "held": 2},
                {"category": "Sports", "held": 1},
                {"category": "Sports/Golf", "held": 1},
            ],
        },
        {"category": monitor.NONE, "held": 1, "parts": [{"category": monitor.NONE, "held": 1}]},
        {"category": "Arts", "held": 1, "parts": [{"category": "Arts/Film", "held": 1}]},
    ]


def test_very_many_categories_are_not_all_listed() -> None:
    found = monitor.by_category(pl.Series([f"Topic {n}/a" for n in range(monitor.LISTED + 7)]))
    assert len(found) == monitor.LISTED + 1
    assert found[-1] == {"category": monitor.OTHERS, "held": 7, "parts": []}


def test_ages_are_those_of_what_waits() -> None:
    assert monitor.age(pl.Series([1_000_000, 7_000_000, 8_000_000]), 11.0) == {
        "unit": "seconds",
        "oldest": 10.0,
        "median": 4.0,
    }


def left(first: int, rows: list[int], after: list[int], users: list[str]) -> Output:
    frame = pl.DataFrame({"offset": range(first, first + len(rows))})
    truth = {"original_row": rows, "released_after": after, "original_user": users}
    return Output(first, frame, pl.DataFrame(truth))


def test_the_window_keeps_the_last_rows_and_says_how_long_they_waited() -> None:
    window = TruthWindow(rows=3)
    assert window.delay() is None
    window.on_release(left(1, [0, 1], [900, 900], ["a", "b"]))
    window.on_release(left(3, [2, 3, 4], [3, 8, 105], ["a", "b", "c"]))
    assert window.truth()["released_row"].to_list() == [3, 4, 5]
    assert window.delay() == {"unit": "records", "median": 4, "p95": 100, "worst": 100}


def test_the_window_stays_small_however_much_leaves_at_once() -> None:
    window = TruthWindow(rows=10)
    window.on_release(left(1, list(range(50)), [50] * 50, ["a"] * 50))
    assert window.truth()["released_row"].to_list() == list(range(41, 51))
    for first in range(51, 151):
        window.on_release(left(first, [first], [first + 1], ["a"]))
    assert window._count <= 20
    assert window.truth().height == 10


def test_the_window_forgets_who_was_erased() -> None:
    window = TruthWindow()
    window.on_release(left(1, [0, 1, 2], [3, 3, 3], ["a", "b", "a"]))
    window.on_erasure(None, "a")  # type: ignore[arg-type]
    assert window.truth()["original_user"].to_list() == ["b"]
    window.on_epoch(None)  # type: ignore[arg-type]
    assert not window.truth().height


def test_the_estimate_is_near_the_promise_for_cohort_and_above_it_for_swap(tmp_path: Path) -> None:
    """For `cohort` the bound lies in a 95 % interval with margin; seeds are fixed, so this never flickers."""
    lines = made_up(users=300)
    with running(tmp_path / "cohort", "cohort", k=4) as service:
        send(service, lines)
        service.monitor.attack()
        found = service.monitor.linkage
    assert found is not None
    assert found["attack"] == "link-repeat"
    assert found["bound"] == 0.25
    assert found["low"] - 0.02 < 0.25 < found["high"] + 0.02
    assert found["n"] > 5000
    with running(tmp_path / "swap", "swap", k=4, level=1) as service:
        send(service, lines)
        service.monitor.attack()
        found = service.monitor.linkage
    assert found is not None
    assert found["low"] > 0.25, "what link-repeat shows about swap on files, it shows here"


def test_too_few_rows_and_methods_without_labels_give_no_estimate(tmp_path: Path) -> None:
    lines = made_up()
    with running(tmp_path / "few", "cohort", k=3) as service:
        send(service, lines[:50])
        service.monitor.attack()
        assert service.monitor.linkage is None
    with running(tmp_path / "rules", "rules") as service:
        send(service, lines)
        assert service.monitor.window.truth().height > linkage.FEWEST
        service.monitor.attack()
        assert service.monitor.linkage is None


def test_held_records_are_counted_by_the_worker(tmp_path: Path) -> None:
    with running(tmp_path, "swap", k=3, level=1) as service:
        send(service, made_up())
        held, seconds = service.worker.run_on_worker(
            lambda: monitor.count_held(service.worker.stream, 4e9)
        ).result()
        assert sum(one["held"] for one in held.by_category) == service.state().status()["held"] > 0
        for one in held.by_category:
            assert sum(part["held"] for part in one["parts"]) == one["held"]
        assert held.age["oldest"] >= held.age["median"] > 1e9
        assert seconds > 0


def test_old_samples_make_room(tmp_path: Path) -> None:
    with running(tmp_path, "cohort", k=3) as service:
        for _ in range(monitor.SAMPLES + 5):
            service.monitor.sample()
        send(service, made_up()[:20])
        service.monitor.sample()
        samples = list(service.monitor.samples)
    assert len(samples) == monitor.SAMPLES
    assert samples[-1][1] == 20
    assert samples[0][0] <= samples[-1][0]


def test_counting_takes_a_hundredth_of_the_time_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, "cohort", k=3) as service:
        service.monitor.stop()
        counts, clock = [], [1000.0]
        slow = monitor.BufferStats(), 0.5
        monkeypatch.setattr(monitor, "count_held", lambda stream, at: counts.append(at) or slow)
        monkeypatch.setattr(monitor.time, "monotonic", lambda: clock[0])
        service.monitor.count_held().result()
        for clock[0] in (1049.0, 1051.0, 1052.0):
            service.monitor.sample()
            service.worker.run_on_worker(lambda: None).result()
        assert len(counts) == 2
