"""The examples in CONTRIBUTING are files that run: a method, an attack and a measure, each with its tests."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import querycloak.attacks
import querycloak.measures
import querycloak.methods
from querycloak.registry import ATTACKS, MEASURES, METHODS
from querycloak.testing.conformance import run_checks
from tests.conformance.corpus import corpus
from tests.docs.pages import ROOT, blocks

EXAMPLES = Path(__file__).parent / "contributing"
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
REGISTRIES = {"METHODS": METHODS, "ATTACKS": ATTACKS, "MEASURES": MEASURES}
#: The lines that the page adds to the registry, by table.
LINES = {
    "METHODS": ("cap", "querycloak.methods.cap:Cap"),
    "ATTACKS": ("link-next", "querycloak.attacks.link_next:LinkNext"),
    "MEASURES": ("queries_kept", "querycloak.measures.queries_kept:QueriesKept"),
}
PACKAGES = (querycloak.methods, querycloak.attacks, querycloak.measures)


def files() -> dict[str, str]:
    return {path.relative_to(EXAMPLES).as_posix(): path.read_text("utf-8") for path in EXAMPLES.rglob("*.py")}


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """Let the modules be found in their packages, and enter the lines of the page into the registry."""
    source = EXAMPLES / "src"
    for package in PACKAGES:
        package.__path__.append(str(source / package.__name__.replace(".", "/")))
    for table, (name, value) in LINES.items():
        module, _, attribute = value.partition(":")
        REGISTRIES[table].added[name] = getattr(importlib.import_module(module), attribute)
    yield
    for package in PACKAGES:
        package.__path__.pop()
    for table, (name, value) in LINES.items():
        del REGISTRIES[table].added[name], sys.modules[value.partition(":")[0]]


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_the_files() -> None:
    assert {block.file: block.text for block in blocks(PAGE) if block.file} == files()


def test_the_page_shows_lines_that_look_like_those_of_the_registry() -> None:
    lines = (ROOT / "src" / "querycloak" / "registry.py").read_text("utf-8")
    for table, (name, value) in LINES.items():
        assert f'"{name}": "{value}",' in PAGE
        first, place = next(iter(REGISTRIES[table].built_in.items()))
        assert f'        "{first}": "{place}",' in lines


def test_the_method_conforms() -> None:
    for log, at in corpus().values():
        run_checks(METHODS.get("cap"), log, at)


@pytest.mark.parametrize("name", sorted(name for name in files() if name.startswith("tests/")))
def test_the_tests_of_an_example_pass(name: str) -> None:
    module = loaded(EXAMPLES / name)
    tests = [part for part_name, part in vars(module).items() if part_name.startswith("test_")]
    assert tests
    for test in tests:
        test()


def test_the_benchmark_runs() -> None:
    found = loaded(EXAMPLES / "benchmarks" / "cap.py").measure(0.01)
    assert 0 < found["released"] < found["records"]


def test_the_command_line_knows_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.docs.runner import execute

    monkeypatch.chdir(tmp_path)
    assert execute("querycloak generate --users 20 --seed 1 -o log.tsv --quiet")[0] == 0
    status, output = execute("querycloak protect log.tsv -m cap -s n=2 -o out.tsv --truth truth.parquet")
    assert status == 0, output
    assert "cap: at most 2 searches of each user are released [passed]" in output
    assert "-s n=100" in execute("querycloak methods")[1]
    status, output = execute(
        "querycloak attack out.tsv --original log.tsv --truth truth.parquet -a link-next"
    )
    assert status == 0, output
    assert output.splitlines()[1].startswith("link-next  attribution")
    status, output = execute("querycloak measure out.tsv --original log.tsv -u queries_kept")
    assert status == 0, output
    assert "queries_kept" in output
