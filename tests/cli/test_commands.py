"""The other commands, and what every command owes its user."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from querycloak.cli import COMMANDS, main
from querycloak.registry import METHODS


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_text_ends_with_an_example_and_every_option_has_help(name):
    command = main.get_command(None, name)
    assert f"Example: querycloak {name}" in command.help
    assert all(option.help for option in command.params if isinstance(option, click.Option))


def test_an_unknown_command_suggests_the_nearest():
    done = run("protetc")
    assert done.exit_code == 2
    assert "did you mean `protect`?" in done.stderr


def test_methods_lists_promises_settings_and_limits():
    listed = json.loads(run("methods", "--json").stdout)["methods"]
    assert [method["name"] for method in listed] == METHODS.names()
    for method in listed:
        assert method["promise"]
        assert method["does_not_protect_against"]
        assert all(setting["help"] for setting in method["settings"])
    text = run("methods").stdout
    assert "does not protect against" in text


def test_doctor_names_every_extra():
    found = json.loads(run("doctor", "--json").stdout)
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert {part["name"] for part in found["parts"]} == set(project["optional-dependencies"])
    assert "Python" in run("doctor").stdout


def test_doctor_says_how_to_get_each_program_that_is_missing(monkeypatch, tmp_path):
    for name in ("PATH", "JAVA_HOME", "QUERYCLOAK_SPARK_JARS"):
        monkeypatch.setenv(name, str(tmp_path))
    names = ["Java", "Spark's Kafka connector"]
    for line, name in zip(run("doctor").stdout.splitlines()[-2:], names, strict=True):
        assert line.startswith(f"  no   {name}: ")
        assert "; in a clone, `make test-services`; else " in line
    for name in ("bin/java", "spark-sql-kafka-0-10_2.13-1.jar"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch(0o755)
    assert [part["installed"] for part in json.loads(run("doctor", "--json").stdout)["programs"]] == [
        True
    ] * 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell):
    assert "_QUERYCLOAK_COMPLETE" in run("completion", shell).stdout


def test_the_story_from_generate_to_measure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        run("generate", "--users", "150", "--seed", "7", "-o", "log.tsv", "--marketing", "ads.csv").exit_code
        == 0
    )
    assert (tmp_path / "log.tsv").read_text().startswith("AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n")
    first = (tmp_path / "log.tsv").read_bytes()
    run("generate", "--users", "150", "--seed", "7", "-o", "again.tsv")
    assert (tmp_path / "again.tsv").read_bytes() == first
    done = run("classify", "log.tsv", "-o", "c.parquet", "--json")
    assert json.loads(done.stdout)["answered"] >= 0.98
    protect = ["protect", "c.parquet", "-m", "z-anonymity", "-s", "z=3", "-s", "window=864000"]
    assert run(*protect, "-o", "out.parquet", "--truth", "t.parquet").exit_code == 0
    assert run("verify", "out.parquet", "--original", "c.parquet", "--truth", "t.parquet").exit_code == 0
    measured = run("measure", "out.parquet", "--original", "c.parquet", "--marketing", "ads.csv", "--json")
    assert 0 < json.loads(measured.stdout)["measures"]["retention"]["clicks"] <= 100


def test_demo_tells_the_story(tmp_path):
    done = run("demo", "--users", "100", "-o", str(tmp_path / "out"))
    assert done.exit_code == 0, done.stderr
    assert str(tmp_path / "out") in done.stderr.splitlines()[-1]
    assert "NO" not in done.stderr.split()
