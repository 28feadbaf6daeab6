"""The example in CONTRIBUTING is a real method: it conforms, its own tests pass, its benchmark runs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings

import querycloak.methods
from querycloak.registry import METHODS
from querycloak.testing.conformance import CHECKS, run_check
from querycloak.testing.strategies import cuts, logs
from tests.docs.pages import ROOT, blocks

FILES = {
    block.file: block.text for block in blocks((ROOT / "CONTRIBUTING.md").read_text("utf-8")) if block.file
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory):
    """Lay out the example's files, and let `querycloak.methods.cap` be found among them."""
    folder = tmp_path_factory.mktemp("clone")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    querycloak.methods.__path__.append(str(folder / "src" / "querycloak" / "methods"))
    METHODS.added["cap"] = importlib.import_module("querycloak.methods.cap").Cap
    yield folder
    querycloak.methods.__path__.pop()
    del METHODS.added["cap"], sys.modules["querycloak.methods.cap"]


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_files_that_it_lists() -> None:
    assert {Path(name).parts[0] for name in FILES} == {"src", "tests", "benchmarks"}
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert '"cap": "querycloak.methods.cap:Cap",' in text
    assert '    "frequent-only": "querycloak.methods.frequent_only:FrequentOnly",' in (
        ROOT / "src" / "querycloak" / "registry.py"
    ).read_text("utf-8"), "the line in the page no longer looks like those in the registry"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_example_conforms(check, place: Path) -> None:
    @settings(max_examples=15)
    @given(log=logs(), at=cuts())
    def conforms(log, at):
        run_check(check, METHODS.get("cap"), log, at)

    conforms()


def test_the_examples_own_tests_pass(place: Path) -> None:
    module = loaded(place / "tests" / "unit" / "methods" / "test_cap.py")
    tests = [part for name, part in vars(module).items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


def test_the_examples_benchmark_runs(place: Path) -> None:
    found = loaded(place / "benchmarks" / "cap.py").measure(users=20)
    assert 0 < found["released"] < found["records"]


def test_the_command_line_knows_the_example(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.docs.runner import execute

    monkeypatch.chdir(tmp_path)
    assert execute("querycloak generate --users 20 --seed 1 -o log.tsv --quiet")[0] == 0
    status, output = execute("querycloak protect log.tsv -m cap -s n=2 -o out.tsv")
    assert status == 0, output
    assert "cap: at most 2 searches of each person are released [kept]" in output
    assert "-s n=100" in execute("querycloak methods")[1]
