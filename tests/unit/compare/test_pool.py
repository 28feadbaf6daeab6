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
from querycloak.compare import plan as presets
from querycloak.compare import pool
from querycloak.compare.pool import FAULT, WorkerPool
from querycloak.compare.run import compare
from querycloak.errors import Busy
from querycloak.files import FolderLock
from tests.support.logs import made_up

PLAN = ("cohort:k=3,5", "frequent-only:k=2", "dp-histogram", "cohort:k=200", "z-anonymity:generalise=no:z=50")
ATTACKS = ("link-repeat", "link-overlap", "guess")
MEASURES = ("release_rate", "terms_kept", "sessions_kept", "clicks_kept", "unique_texts")


@pytest.fixture(scope="module")
def log():
    return made_up(users=60, seed=4, categories=True)


@pytest.fixture
def plan():
    return presets.make_plan(PLAN, attacks=ATTACKS, measures=MEASURES)


def numbers(comparison):
    """Everything but how long it took and how much memory."""
    return [
        {name: value for name, value in one.items() if name != "cost"}
        | {"findings": {label: {**found, "seconds": 0} for label, found in one.get("findings", {}).items()}}
        for one in comparison.as_dict()["candidates"]
    ]


def test_candidates_have_promises_findings_measures_and_cost(log, plan, tmp_path):
    told = []
    found = compare(log, plan, tmp_path, report=lambda *about: told.append(about[:2]))
    assert told[-1] == (6, 6)
    by_name = {one["name"]: one for one in found.as_dict()["candidates"]}
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
    assert "swap" in {one["method"] for one in found.not_run}
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
    assert one.repeats == 2
    share = one.findings["link-repeat"]
    assert 0 <= share.low < share.success < share.high <= 1


def test_results_that_are_there_are_not_made_again(log, plan, tmp_path):
    first = compare(log, plan, tmp_path)
    results = tmp_path / "private" / "results"
    stamps = {path.name: path.stat().st_mtime_ns for path in results.iterdir()}
    again = compare(
        log, plan.with_(candidates=(*plan.candidates, *presets.make_plan(["rules"]).candidates)), tmp_path
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
    assert numbers(type(whole).from_dict(found)) == numbers(whole)


SCRIPT = """
import querycloak as qc
from querycloak.registry import METHODS

import kept

print("imported")
METHODS.add("kept", kept.Kept)
found = qc.compare(qc.generate(20, seed=1), "kept", output="out", attacks=("guess",))
print([one.failed for one in found.candidates])
"""
KEPT = """
from querycloak.methods.rules import Rules


class Kept(Rules):
    name = "kept"
"""


def test_a_script_is_not_run_again_by_the_processes_and_its_parts_are_known_there(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT, "utf-8")
    (tmp_path / "kept.py").write_text(KEPT, "utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("imported\n[None]\n", 0), done.stderr


def test_two_at_once_in_one_folder_are_refused(log, plan, tmp_path):
    (tmp_path / "private").mkdir()
    with FolderLock(tmp_path / "private" / "lock"), pytest.raises(Busy, match="another comparison"):
        compare(log, plan, tmp_path)


class Jobs:
    """A pool whose jobs do what a test wants; see `target`."""

    def __init__(self, folder: Path, monkeypatch, target) -> None:
        (folder / "log").write_bytes(b"log")
        results = folder / "results"
        results.mkdir()
        self.pool = WorkerPool(folder / "log", "log", results, folder, seconds=2)
        monkeypatch.setattr(self.pool, "_context", __import__("multiprocessing").get_context("fork"))
        monkeypatch.setattr(pool.worker, "run", target)

    def run(self, plan):
        return list(self.pool.run(plan.jobs()[:2], lambda *about: None).values())


def test_one_that_takes_too_long_is_stopped_and_told(plan, tmp_path, monkeypatch):
    def target(job, log, folder):
        time.sleep(60 if job.candidate.name == "cohort k=3" else 0)
        return {"fine": True}

    started = time.monotonic()
    found = Jobs(tmp_path, monkeypatch, target).run(plan)
    assert found == [{"failed": "stopped after 2 seconds", "kind": "too-slow", "seconds": 2}, {"fine": True}]
    assert time.monotonic() - started < 30


def test_one_that_dies_is_told_and_tried_again_the_next_time(plan, tmp_path, monkeypatch):
    def target(job, log, folder):
        os.kill(os.getpid(), signal.SIGKILL)

    work = Jobs(tmp_path, monkeypatch, target)
    assert {one["kind"] for one in work.run(plan)} == {"died"}
    monkeypatch.setattr(pool.worker, "run", lambda *about: {"fine": True})
    assert work.run(plan) == [{"fine": True}] * 2


def test_a_fault_of_ours_shows_nothing_of_the_log_and_is_tried_again(plan, tmp_path, monkeypatch):
    def target(job, log, folder):
        raise ValueError("somebody's query")

    work = Jobs(tmp_path, monkeypatch, target)
    found = work.run(plan)
    assert {one["kind"] for one in found} == {FAULT}
    assert "query" not in json.dumps(found)
    monkeypatch.setattr(pool.worker, "run", lambda *about: {"fine": True})
    assert work.run(plan) == [{"fine": True}] * 2


@pytest.mark.parametrize("kind", ["memory", "missing-extra"])
def test_what_another_installation_may_do_is_tried_again(plan, tmp_path, monkeypatch, kind):
    work = Jobs(tmp_path, monkeypatch, lambda *about: {"failed": "no", "kind": kind})
    assert {one["kind"] for one in work.run(plan)} == {kind}
    monkeypatch.setattr(pool.worker, "run", lambda *about: {"fine": True})
    assert work.run(plan) == [{"fine": True}] * 2


def test_what_was_too_slow_is_tried_again_with_more_time_only(plan, tmp_path, monkeypatch):
    work = Jobs(tmp_path, monkeypatch, lambda *about: {"fine": True})
    for job in plan.jobs()[:2]:
        work.pool._file(work.pool.key(job)).write_text(
            json.dumps({"failed": "slow", "kind": "too-slow", "seconds": 2})
        )
    assert {one.get("kind") for one in work.run(plan)} == {"too-slow"}
    monkeypatch.setattr(work.pool, "_seconds", 3)
    assert work.run(plan) == [{"fine": True}] * 2


def test_a_stale_failure_does_not_pass_for_a_run_that_died(plan, tmp_path, monkeypatch):
    def target(job, log, folder):
        os.kill(os.getpid(), signal.SIGKILL)

    work = Jobs(tmp_path, monkeypatch, target)
    for job in plan.jobs()[:2]:
        work.pool._file(work.pool.key(job)).write_text(json.dumps({"failed": "no memory", "kind": "memory"}))
    assert {one["kind"] for one in work.run(plan)} == {"died"}


def test_results_of_other_code_or_another_installation_are_not_used(plan, monkeypatch):
    from querycloak.compare import plan as plans

    (job, *_) = plan.jobs()
    key = job.key("log")
    monkeypatch.setattr(plans, "code_digest", lambda: "other code")
    assert job.key("log") != key
    monkeypatch.undo()
    plans.code_digest.cache_clear()
    monkeypatch.setattr(plans, "_installed", lambda: [("lightgbm", None)])
    assert job.key("log") != key
    monkeypatch.undo()
    plans.code_digest.cache_clear()
    assert job.key("log") == key


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("where", ["classification", "start of the pool", "run of the pool"])
def test_the_log_is_gone_after_an_error_or_an_interrupt(log, plan, tmp_path, monkeypatch, error, where):
    from querycloak import text

    def fail(*about, **more):
        raise error

    if where == "run of the pool":
        monkeypatch.setattr(WorkerPool, "run", fail)
    elif where == "classification":
        monkeypatch.setattr(text, "classify_log", fail)
        log = qc.generate(users=20, seed=4)
    else:
        monkeypatch.setattr(WorkerPool, "__init__", fail)
    with pytest.raises(error):
        compare(log, plan, tmp_path)
    assert not list((tmp_path / "private").glob("*parquet*"))


def test_recommend_leaves_no_log_either(log, tmp_path, monkeypatch):
    from querycloak.compare import recommend

    def fail(*about, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(recommend, "compare", fail)
    with pytest.raises(KeyboardInterrupt):
        recommend.recommend(log, recommend.Goal(0.5), folder=tmp_path)
    assert not list(tmp_path.rglob("*.parquet"))
