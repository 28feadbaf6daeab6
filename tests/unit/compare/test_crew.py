"""Jobs in processes of their own: stopped, too slow, dying or failing, the rest goes on."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import querycloak as qc
from querycloak.engines.compare import asking, crew
from querycloak.engines.compare.crew import FAULT, Crew
from querycloak.engines.compare.run import compare
from querycloak.errors import Busy

PLAN = ("cohort:k=3,5", "frequent-only:k=2", "dp-histogram", "cohort:k=200", "z-anonymity:generalise=no:z=50")
ATTACKS = ("link-repeat", "link-overlap", "guess")
MEASURES = ("release_rate", "terms_kept", "sessions_kept", "clicks_kept", "unique_texts")


@pytest.fixture(scope="module")
def log():
    return qc.generate(users=60, seed=4, categories=True)


@pytest.fixture
def plan():
    return asking.planned(PLAN, attacks=ATTACKS, measures=MEASURES)


def numbers(comparison):
    """Everything but how long it took and how much memory."""
    return [
        {name: value for name, value in one.items() if name != "cost"}
        | {"findings": {label: {**found, "seconds": 0} for label, found in one.get("findings", {}).items()}}
        for one in comparison.candidates
    ]


def test_candidates_have_promises_findings_measures_and_cost(log, plan, tmp_path):
    told = []
    found = compare(log, plan, tmp_path, told=lambda *about: told.append(about[:2]))
    assert told[-1] == (6, 6)
    by_name = {one["name"]: one for one in found.candidates}
    cohort = by_name["cohort k=3"]
    assert cohort["labels"] == "mixed"
    assert cohort["findings"]["link-repeat"]["bound"] == pytest.approx(1 / 3)
    assert cohort["linked"]["release"]["attack"] == "link-repeat"
    assert cohort["linked"]["knowing"]["attack"] == "link-overlap"
    assert cohort["promises"][0]["audit"] == "kept"
    assert cohort["cost"]["peak_mb"] > 10
    assert by_name["dp-histogram"]["labels"] == "table"
    assert by_name["dp-histogram"]["linked"] == {"release": None, "knowing": None, "any": None}
    assert by_name["frequent-only k=2"]["labels"] == "none"
    assert by_name["frequent-only k=2"]["measures"]["unique_texts"]["value"] == 0
    assert "200" in by_name["cohort k=200"]["failed"]
    assert by_name["z-anonymity generalise=no z=50"]["labels"] == "empty"
    assert "swap" in {one["method"] for one in found.data["not_run"]}
    text = found.as_json()
    assert not [query for query in log.frame["query"].unique() if len(query) > 8 and query in text]


def test_what_is_on_disk_is_private_and_the_log_is_gone(log, plan, tmp_path):
    compare(log, plan.with_(candidates=plan.candidates[:1]), tmp_path)
    assert not (tmp_path / "private" / "log.parquet").exists()
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700
    results = list((tmp_path / "private" / "results").iterdir())
    assert [stat.S_IMODE(path.stat().st_mode) for path in results] == [0o600]


def test_repeats_give_intervals_over_draws(log, plan, tmp_path):
    found = compare(log, plan.with_(candidates=plan.candidates[:1], repeats=2), tmp_path)
    (one,) = found.candidates
    assert one["repeats"] == 2
    share = one["findings"]["link-repeat"]
    assert 0 <= share["low"] < share["success"] < share["high"] <= 1


def test_results_that_are_there_are_not_made_again(log, plan, tmp_path):
    first = compare(log, plan, tmp_path)
    results = tmp_path / "private" / "results"
    stamps = {path.name: path.stat().st_mtime_ns for path in results.iterdir()}
    again = compare(
        log, plan.with_(candidates=(*plan.candidates, *asking.planned(["rules"]).candidates)), tmp_path
    )
    assert again.candidates[:-1] == first.candidates
    assert {path.name: path.stat().st_mtime_ns for path in results.iterdir()}.items() >= stamps.items()
    assert len(list(results.iterdir())) == len(stamps) + 1


def test_killed_and_started_again_it_ends_with_the_same_numbers(log, plan, tmp_path):
    whole = compare(log, plan, tmp_path / "whole")
    path = tmp_path / "log.parquet"
    qc.write(log, str(path))
    asked = [part for text in PLAN for part in ("-m", text)] + [
        part for name in ATTACKS for part in ("-a", name)
    ]
    asked += [part for name in MEASURES for part in ("-u", name)]
    command = [
        sys.executable,
        "-m",
        "querycloak",
        "compare",
        str(path),
        *asked,
        "-o",
        str(tmp_path / "cut"),
        "--quiet",
    ]
    process = subprocess.Popen(command, start_new_session=True)
    results = tmp_path / "cut" / "private" / "results"
    end = time.monotonic() + 120
    while not list(results.glob("*.json")):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "cut" / "comparison.json").exists()
    assert subprocess.run(command, check=False).returncode == 0
    found = json.loads((tmp_path / "cut" / "comparison.json").read_text())
    assert numbers(type(whole)(found)) == numbers(whole)


def test_two_at_once_in_one_folder_are_refused(log, plan, tmp_path):
    from querycloak.engines.compare.run import _alone

    (tmp_path / "private").mkdir()
    with _alone(tmp_path / "private"), pytest.raises(Busy):
        compare(log, plan, tmp_path)


class Jobs:
    """A crew whose jobs do what a test wants; see `target`."""

    def __init__(self, folder: Path, monkeypatch, target) -> None:
        (folder / "log").write_bytes(b"log")
        results = folder / "results"
        results.mkdir()
        self.crew = Crew(folder / "log", "log", results, folder, seconds=2)
        monkeypatch.setattr(self.crew, "_context", __import__("multiprocessing").get_context("fork"))
        monkeypatch.setattr(crew.jobs, "run", target)

    def run(self, plan):
        return list(self.crew.run(plan.jobs()[:2], lambda *about: None).values())


def test_one_that_takes_too_long_is_stopped_and_told(plan, tmp_path, monkeypatch):
    def target(job, log, folder):
        time.sleep(60 if job.candidate.name == "cohort k=3" else 0)
        return {"fine": True}

    started = time.monotonic()
    found = Jobs(tmp_path, monkeypatch, target).run(plan)
    assert found == [{"failed": "stopped after 2 seconds", "kind": "too-slow"}, {"fine": True}]
    assert time.monotonic() - started < 30


def test_one_that_dies_is_told_and_tried_again_the_next_time(plan, tmp_path, monkeypatch):
    def target(job, log, folder):
        os.kill(os.getpid(), signal.SIGKILL)

    work = Jobs(tmp_path, monkeypatch, target)
    assert {one["kind"] for one in work.run(plan)} == {"died"}
    monkeypatch.setattr(crew.jobs, "run", lambda *about: {"fine": True})
    assert work.run(plan) == [{"fine": True}] * 2


def test_a_fault_of_ours_shows_nothing_of_the_log_and_is_tried_again(plan, tmp_path, monkeypatch):
    def target(job, log, folder):
        raise ValueError("somebody's query")

    work = Jobs(tmp_path, monkeypatch, target)
    found = work.run(plan)
    assert {one["kind"] for one in found} == {FAULT}
    assert "query" not in json.dumps(found)
    monkeypatch.setattr(crew.jobs, "run", lambda *about: {"fine": True})
    assert work.run(plan) == [{"fine": True}] * 2
