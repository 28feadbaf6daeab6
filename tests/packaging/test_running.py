"""How tests are run: which share a worker, which are fast, what they cost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import querycloak as qc
from tests import conftest, durations, groups, run, workers
from tests.docs.pages import ROOT
from tests.support.logs import made_up
from tests.support.releases import release


@pytest.mark.parametrize(
    ("file", "text", "group"),
    [
        ("tests/integration/spark/test_x.py", "", "spark"),
        ("tests/integration/spark_kafka/test_x.py", "", "spark"),
        ("tests/integration/kafka/test_x.py", "", "servers"),
        ("tests/integration/postgres/test_x.py", "", "servers"),
        ("tests/integration/browser/test_x.py", "", "servers"),
        ("tests/cli/test_x.py", "@pytest.mark.browser", "servers"),
        ("tests/integration/service/test_x.py", '@pytest.fixture(scope="module")', "the file"),
        ("tests/unit/spark/test_x.py", "@pytest.fixture", "the case"),
    ],
)
def test_tests_of_one_server_or_one_module_share_a_worker(file, text, group, tmp_path, monkeypatch):
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    monkeypatch.setattr(workers, "ROOT", tmp_path)
    monkeypatch.setattr(workers, "shared", workers.shared.__wrapped__)
    case = f"{file}::test_a[1]"
    assert workers.scope_of(case) == {"the file": file, "the case": case}.get(group, group)


def test_a_folder_gives_its_marks_and_every_such_folder_exists():
    assert groups.marks_of("tests/integration/spark_kafka/test_x.py") == ("spark", "kafka")
    assert groups.marks_of(ROOT / "tests" / "unit" / "attacks" / "test_x.py") == ()
    peers = (ROOT / "tests").rglob("test_agreement.py")
    assert [groups.marks_of(path) for path in peers] == [("crowd", "sign")] * 2  # peers have certificates
    assert [folder for folder in groups.FOLDERS if not (ROOT / "tests" / folder).is_dir()] == []
    assert {mark for marks in groups.FOLDERS.values() for mark in marks} <= groups.GROUPS.keys()


def test_a_file_whose_folder_needs_a_missing_module_is_not_collected(monkeypatch):
    path = ROOT / "tests" / "unit" / "service" / "test_x.py"
    assert conftest.pytest_ignore_collect(path) is None
    monkeypatch.setattr(groups, "is_installed", lambda mark: mark != "service")
    assert conftest.pytest_ignore_collect(path) is True
    assert conftest.pytest_ignore_collect(ROOT / "tests" / "unit" / "test_files.py") is None


def test_pytest_without_python_finds_all_packages():
    """`python -m pytest` adds the folder to the path, `pytest` does not; one failing import stops all."""
    program = Path(sys.executable).with_name("pytest")
    words = [program, "--collect-only", "-q", "-p", "no:cacheprovider", "tests/benchmarks/test_registry.py"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_waits_starts_first_then_the_costliest(monkeypatch):
    known = {"x.py::test_a": 1.0, "x.py::test_b": 9.0, "x.py::test_c": 4.0}
    monkeypatch.setattr(workers, "expected", lambda function: known.get(function, 0.0))
    monkeypatch.setattr(workers, "shared", lambda file: "spark" if file == "y.py" else None)
    cases = ["x.py::test_a", "x.py::test_b[1]", "x.py::test_b[2]", "x.py::test_c", "y.py::test_d"]
    assert workers.costliest_first(cases) == [4, 1, 2, 3, 0]


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Durations in a file of their own."""
    path = tmp_path / "durations.json"
    path.write_text(
        json.dumps(
            {"tests/unit/test_gone.py::test_a": 2.0, "tests/run.py::test_b": 0.3, "tests/run.py::test_d": 0.3}
        )
    )
    monkeypatch.setattr(durations, "STORED", path)
    for kept in (durations.stored, durations._by_name):
        kept.cache_clear()
    yield path
    monkeypatch.undo()
    for kept in (durations.stored, durations._by_name):
        kept.cache_clear()


def test_a_moved_function_is_known_by_its_name_and_a_new_one_counts_as_fast(stored):
    assert not durations.is_fast("tests/unit/test_elsewhere.py::test_a[3]")
    assert not durations.is_fast("tests/run.py::test_b")
    assert durations.is_fast("tests/run.py::test_new")


def test_storing_forgets_files_that_are_gone_and_what_is_fast(stored):
    durations.store({"tests/workers.py::test_c": 0.123, "tests/run.py::test_d": 0.01})
    assert json.loads(stored.read_text()) == {"tests/run.py::test_b": 0.3, "tests/workers.py::test_c": 0.1}


def test_who_starts_a_process_is_not_fast():
    before = durations.spent()
    subprocess.run([sys.executable, "-S", "-c", ""], check=True)
    assert durations.cost(before, durations.spent()) >= durations.FAST
    before = durations.spent()
    assert durations.cost(before, before) == 0


def test_the_stored_durations_are_sorted_and_of_slow_functions_only():
    known = json.loads((ROOT / "tests" / "durations.json").read_text("utf-8"))
    assert list(known) == sorted(known)
    assert len(known) > 300
    assert min(known.values()) >= durations.FAST


def test_nightly_tests_wait_for_the_night():
    assert run.selection(["kafka"], nightly=False) == "not nightly and not kafka"
    assert run.selection(["kafka"], nightly=True) == "(hypothesis or nightly) and not kafka"


def test_a_shared_log_is_what_the_generator_gives_and_a_release_is_made_once():
    log = made_up(20, seed=9)
    assert log is made_up(20, seed=9)
    assert log.frame.equals(qc.generate(20, 9).frame)
    once = release(log, "frequent-only", k=2, seed=1)
    assert once is release(log, "frequent-only", k=2, seed=1)
    assert once is not release(log, "frequent-only", k=3, seed=1)
    with pytest.raises(ValueError, match="seed"):
        release(log, "frequent-only", k=2)
