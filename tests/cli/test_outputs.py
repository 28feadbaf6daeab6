"""No command replaces what it reads, another output of its own, or anything that is no plain file."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

import querycloak as qc
from querycloak import formats
from querycloak.cli import main
from querycloak.errors import UsageError


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Return a folder with a log, a release with its files, and other inputs."""
    folder = tmp_path_factory.mktemp("made")
    qc.write(qc.generate(users=30, seed=1), folder / "log.tsv")
    release = {"output": folder / "safe.tsv", "truth": folder / "truth.parquet"}
    qc.protect(folder / "log.tsv", "rules", **release)
    (folder / "own.csv").write_text("query\nweather\n")
    (folder / "phrases.txt").write_text("weather\n")
    (folder / "found.md").write_text('{"findings": []}')
    (folder / "gate.toml").write_text("linked = 0.5\n")
    (folder / "comparison.csv").write_bytes((folder / "log.tsv").read_bytes())
    (folder / "proposal.json").write_bytes((folder / "log.tsv").read_bytes())
    (folder / "edges.txt").write_text("a b\n")
    return folder


@pytest.fixture(autouse=True)
def folder(made, tmp_path, monkeypatch):
    """Work in a copy."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


ATTACK = "attack safe.tsv --original log.tsv --truth truth.parquet -a link-repeat"
COMMANDS = [
    "protect log.tsv -m rules -o log.tsv",
    "protect log.tsv -m rules -o out.tsv --truth log.tsv",
    "protect log.tsv -m rules -o out.tsv --truth out.tsv",
    "protect log.tsv -m rules -o out.tsv --truth out.tsv.certificate.json",
    "protect log.tsv -m rules -s phrases=phrases.txt -o phrases.txt",
    f"{ATTACK} --write-log log.tsv",
    f"{ATTACK} --write-log safe.tsv",
    f"{ATTACK} --write-log truth.parquet",
    f"{ATTACK} --write-profiles safe.tsv.certificate.json",
    f"{ATTACK} --write-log new.csv --write-profiles new.csv",
    "generate --users 5 -o new.csv --marketing new.csv",
    "classify log.tsv -o log.tsv",
    "obfuscate log.tsv -m usr -o log.tsv",
    "obfuscate log.tsv -m usr -o new.tsv --truth log.tsv",
    "crowd simulate --log log.tsv --output log.tsv --truth new.parquet",
    "assess safe.tsv --findings found.md -o found.md",
    "measure --own found.md -o found.md",
    "compare comparison.csv -m rules -o .",
    "recommend proposal.json --max-linkage 0.5 -o .",
]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_input_and_another_output_are_never_replaced(command, folder):
    before = contents(folder)
    found = CliRunner().invoke(main, command.split())
    assert found.exit_code == 2, found.output
    assert "would replace" in found.output
    assert contents(folder) == before


SINGLE = [
    "protect log.tsv -m rules -o {}",
    "protect log.tsv -m rules -o out.tsv --truth {}",
    f"{ATTACK} --write-log {{}}",
    f"{ATTACK} --write-profiles {{}}",
    "generate --users 5 -o {}",
    "generate --users 5 -o new.csv --marketing {}",
    "classify log.tsv -o {}",
    "obfuscate log.tsv -m usr -o {}",
    "assess safe.tsv -o {}",
    "measure --own own.csv -o {}",
]


@pytest.mark.parametrize("command", SINGLE)
@pytest.mark.parametrize("name", ["pipe.md", "link.md"])
def test_a_pipe_is_never_replaced(command, name, folder):
    os.mkfifo("pipe.md")
    Path("link.md").symlink_to("pipe.md")
    before = sorted(os.listdir())
    found = CliRunner().invoke(main, command.format(name).split())
    assert found.exit_code == 2, found.output
    assert "a device or a pipe" in found.output
    assert stat.S_ISFIFO(Path("pipe.md").stat().st_mode)
    assert sorted(os.listdir()) == before


def test_a_name_that_becomes_a_link_to_an_input_is_not_replaced(folder):
    """The check is made again before the rename."""
    before = contents(folder)
    writer = formats.Writer("new.tsv", formats.Layout.default("aol"), never_replace=["log.tsv"])
    Path("new.tsv").symlink_to("log.tsv")
    with writer, pytest.raises(UsageError, match="would replace an input"):
        writer.commit()
    assert Path("new.tsv").is_symlink()
    Path("new.tsv").unlink()
    assert contents(folder) == before
