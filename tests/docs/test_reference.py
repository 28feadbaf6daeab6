"""The reference covers the code: nothing that a user can meet is without its place."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import querycloak as qc
from querycloak import errors, measures
from querycloak.api import describe_methods
from querycloak.cli import COMMANDS
from querycloak.cli import main as cli
from querycloak.formats import FORMATS, REASONS
from querycloak.registry import ATTACKS, MEASURES, METHODS
from querycloak.service.settings import ServiceSettings
from tests.docs.pages import ROOT
from tests.support.logs import made_up

REFERENCE = ROOT / "docs" / "reference"
EXPLANATION = ROOT / "docs" / "explanation"
SETTINGS = [
    (m["name"], s["name"]) for m in describe_methods() for s in m["settings"] if m["name"] in METHODS.built_in
]


def page(name: str) -> str:
    return (REFERENCE / name).read_text("utf-8")


def every_error() -> list[type[errors.QueryCloakError]]:
    found, left = [], [errors.QueryCloakError]
    while left:
        kind = left.pop()
        if kind.__module__ == errors.__name__:
            found.append(kind)
        left += kind.__subclasses__()
    return found


def run_tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.service
def test_the_generated_pages_are_fresh() -> None:
    done = run_tool("reference.py", "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.dp
@pytest.mark.nlp
@pytest.mark.sign
def test_the_licences_are_those_of_the_installed_packages() -> None:
    done = run_tool("licences.py", "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_its_section_with_every_option(command: str) -> None:
    part = page("cli.md").partition(f"## querycloak {command}\n")[2].partition("\n## ")[0]
    found = cli.get_command(None, command)  # type: ignore[arg-type]
    assert found is not None
    for parameter in found.params:
        assert all(name in part for name in parameter.opts if name.startswith("-")), parameter.name


@pytest.mark.parametrize("command", COMMANDS)
def test_a_commands_help_ends_with_an_example(command: str) -> None:
    found = cli.get_command(None, command)  # type: ignore[arg-type]
    assert found is not None
    assert (found.help or "").strip().splitlines()[-1].strip().startswith(f"Example: querycloak {command}")


@pytest.mark.parametrize("name", list(METHODS.built_in))
def test_a_method_has_its_section_and_is_in_the_readme(name: str) -> None:
    assert f"\n## {name}\n" in page("methods.md")
    assert f"`{name}`" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize(("method", "setting"), SETTINGS)
def test_a_setting_has_its_row(method: str, setting: str) -> None:
    assert re.search(rf"^\| \[`{method}`\]\(.*\) \| `{setting}` \|", page("settings.md"), re.MULTILINE)
    section = page("methods.md").partition(f"\n## {method}\n")[2].partition("\n## ")[0]
    assert f"| `{setting}` |" in section
    assert f"`{setting}`" in (EXPLANATION / f"{method}.md").read_text("utf-8")


@pytest.mark.parametrize("name", list(ATTACKS.built_in))
def test_an_attack_has_its_section_with_every_setting(name: str) -> None:
    section = page("attacks.md").partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert "**Game**" in section
    for part in dataclasses.fields(ATTACKS.get(name).Settings):
        assert f"| `{part.name}` |" in section


@pytest.mark.parametrize("name", list(MEASURES.built_in))
def test_a_measure_has_its_row(name: str) -> None:
    assert f"| `{name}` |" in page("measures.md")


@pytest.mark.parametrize("name", measures.__all__)
def test_a_public_function_of_measures_has_its_section(name: str) -> None:
    assert f"### measures.{name}\n" in page("measures.md")


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(ServiceSettings)])
def test_a_setting_of_the_service_has_its_row(name: str) -> None:
    assert f"\n| `{name}` |" in page("service.md")


@pytest.mark.service
def test_a_route_of_the_service_has_its_row() -> None:
    from querycloak.service.web.routes import router

    for route in router.routes:
        assert f"{route.path}` |" in page("service.md")


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.code)
def test_an_error_has_its_section(kind: type[errors.QueryCloakError]) -> None:
    row = rf"^\| \[`{kind.code}`\].* \| {kind.exit_status} \| {kind.http_status} \|"
    assert re.search(row, page("errors.md"), re.MULTILINE)
    assert f"\n### {kind.code}\n" in page("errors.md")


def test_error_codes_are_distinct() -> None:
    codes = [kind.code for kind in every_error()]
    assert len(codes) == len(set(codes)) >= 8


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_for_a_bad_row_has_its_row(reason: str) -> None:
    assert f"| `{reason}` | {REASONS[reason]} |" in page("errors.md")


@pytest.mark.parametrize("name", FORMATS.names())
def test_a_format_is_on_the_formats_page(name: str) -> None:
    assert f"`{name}`" in page("formats.md")


#: The sections of a method's page.
SECTIONS = (
    "Guarantee",
    "How it works",
    "What the audit checks",
    "Limits",
    "Settings",
    "Utility and cost",
    "Reference",
)


@pytest.mark.parametrize("name", list(METHODS.built_in))
@pytest.mark.parametrize("part", SECTIONS)
def test_the_explanation_of_a_method_is_complete(name: str, part: str) -> None:
    text = (EXPLANATION / f"{name}.md").read_text("utf-8")
    section = re.split(r"\n##+ ", text.partition(f"# {part}\n")[2])[0]
    assert len(section.split()) > 5, f"{name}.md has no section `{part}`, or an empty one"


@pytest.mark.parametrize("name", list(METHODS.built_in))
def test_the_explanation_of_a_method_has_the_words_of_its_guarantee(name: str) -> None:
    text = (EXPLANATION / f"{name}.md").read_text("utf-8")
    section = text.partition("\n## Guarantee\n")[2].partition("\n## ")[0]
    words = " ".join(line.removeprefix("> ").removeprefix("- ") for line in section.splitlines())
    method = METHODS.get(name)
    for sentence in method.promise(method.Settings()).sentences:
        assert sentence.text[1:] in words, f"{name}.md does not have the sentence: {sentence.text}"


@pytest.mark.parametrize("name", list(METHODS.built_in))
def test_limits_name_every_method(name: str) -> None:
    assert f"({name}.md)" in (EXPLANATION / "limits.md").read_text("utf-8")
    assert "docs/explanation/limits.md" in (ROOT / "README.md").read_text("utf-8")


def test_environment_variables_have_their_row() -> None:
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    used = set(re.findall(r"environ(?:\.get\(|\[)\"(\w+)\"", code))
    assert used
    assert all(f"| `{name}` |" in page("settings.md") for name in used), used


def test_the_private_files_are_described_as_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from pages import certificate

    log, out, truth = tmp_path / "log.csv", tmp_path / "out.csv", tmp_path / "truth.parquet"
    log.write_text("user,query,time\nu,rain,2006-03-01 10:00:00\n", "utf-8")
    release = qc.protect(log, "rules", output=out, truth=truth, labels="keep", source="web")
    private = json.loads((tmp_path / "out.csv.certificate.private.json").read_text("utf-8"))
    assert set(private) == {name for name, _ in certificate.PRIVATE}
    assert release.truth.columns == [name for name, _ in certificate.TRUTH]
    groups = qc.protect(made_up(users=20, seed=1), "cohort", k=2, labels="fresh")
    assert groups.truth.columns == [name for name, _ in certificate.TRUTH + certificate.MORE_TRUTH]


def test_a_stale_page_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import reference

    kept = tmp_path / "page.md"
    kept.write_text("old", "utf-8")
    assert reference.stale({kept: "new", tmp_path / "absent.md": "new"}) == [kept, tmp_path / "absent.md"]
    assert reference.stale({kept: "old"}) == []
