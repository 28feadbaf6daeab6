"""Benchmarks: every registered one exists, stored figures belong to one, and a run is compared with them."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import sys
from importlib import import_module

import numpy as np
import pytest
from benchmarks.__main__ import BENCHMARKS, compared, flat, stored
from benchmarks.common import RESULTS, array_bytes, best_of, in_own_process, timed

from benchmarks import __main__ as runner


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_registered_benchmark_is_a_function_of_the_scale(name):
    module, _, function = BENCHMARKS[name].where.partition(":")
    try:
        found = import_module(f"benchmarks.{module}")
    except ImportError as error:  # an extra is missing; a name of our own that is gone is a fault
        if str(error.name).partition(".")[0] in ("benchmarks", "papers", "querycloak", "tests"):
            raise
        pytest.skip(str(error))
    assert list(inspect.signature(getattr(found, function or "measure")).parameters) == ["scale"]


def test_stored_figures_belong_to_a_benchmark():
    for path in RESULTS.iterdir():
        document = json.loads(path.read_text("utf-8"))
        assert path.stem in BENCHMARKS
        assert document["scale"] == 1.0
        assert stored(path.stem) == flat(document["figures"]) != {}


def test_a_figure_stands_beside_the_stored_one():
    now = {"streams": {"rate": 150, "name": "x"}, "new": 2.5, "flag": True}
    lines = compared(now, {"streams.rate": 100, "flag": True})
    assert [line.split() for line in lines] == [
        ["streams.rate", "150", "1.50", "of", "100"],
        ["streams.name", "x"],
        ["new", "2.5"],
        ["flag", "True"],
    ]


def test_figures_are_stored_with_the_machine(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    monkeypatch.setattr(runner, "start_up", lambda scale: {"help": 2 * scale})
    monkeypatch.setattr(sys, "argv", ["benchmarks", "start-up", "--store"])
    importlib.import_module("benchmarks.__main__").main()
    document = json.loads((tmp_path / "start-up.json").read_text())
    assert document["figures"] == {"help": 2.0}
    assert document["machine"]["commit"]
    runner.main()
    assert "1.00 of 2.0" in capsys.readouterr().out


def test_times_are_of_the_clock_and_of_the_processor():
    result, spent = timed(lambda: sum(range(200_000)))
    assert result == sum(range(200_000))
    assert set(spent) == {"seconds", "cpu_seconds"}
    assert 0 <= best_of(lambda: None) < 1


def test_arrays_count_once_and_shared_ones_not_at_all():
    class Part:
        def __init__(self, *held: object) -> None:
            self.held = list(held)

    one, shared = np.zeros(10, np.int64), Part(np.zeros(1000))
    assert array_bytes(Part(one, Part(one, np.zeros(5, np.int32)), shared), shared) == 80 + 20


def test_a_function_runs_in_a_process_of_its_own():
    assert in_own_process(math.hypot, 3, 4) == 5.0
