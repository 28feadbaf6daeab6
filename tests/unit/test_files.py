"""The lock of a folder, and the check of outputs."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

import querycloak as qc
from querycloak import formats
from querycloak.engines.classify import classify_file
from querycloak.errors import UsageError
from querycloak.files import FolderLock, check_outputs


def test_one_holder_at_a_time(tmp_path):
    path = tmp_path / "lock"
    first = FolderLock(path)
    with pytest.raises(BlockingIOError):
        FolderLock(path)
    first.release()
    first.release()
    with FolderLock(path), pytest.raises(BlockingIOError):
        FolderLock(path)
    FolderLock(path).release()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_waiting_holder_gets_it_next(tmp_path):
    path, got = tmp_path / "lock", threading.Event()

    def wait():
        with FolderLock(path, wait=True):
            got.set()

    with FolderLock(path):
        other = threading.Thread(target=wait)
        other.start()
        assert not got.wait(0.1)
    other.join(30)
    assert got.is_set()


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("user,query\n" + "".join(f"u{n},weather\n" for n in range(20)))
    return "log.csv"


@pytest.mark.parametrize("name", ["log.csv", "./log.csv", "../{here}/log.csv", "soft.csv", "hard.csv"])
def test_an_output_never_replaces_an_input(log, tmp_path, name):
    Path("soft.csv").symlink_to(log)
    os.link(log, "hard.csv")
    before = Path(log).read_bytes()
    output = name.format(here=tmp_path.name)
    for call in (
        lambda: check_outputs([output], [log]),
        lambda: qc.protect(log, "frequent-only", k=2, output=output),
        lambda: classify_file(log, output),
        lambda: formats.Writer(output, formats.Layout.default("csv"), never_replace=[log]),
    ):
        with pytest.raises(UsageError, match="would replace an input"):
            call()
    assert Path(log).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hard.csv", "log.csv", "soft.csv"]


def test_an_output_never_replaces_another_output(log):
    with pytest.raises(UsageError, match="would replace another output"):
        qc.protect(log, "frequent-only", k=2, output="out.csv", truth="./out.csv")
    with pytest.raises(UsageError, match="would replace another output"):
        check_outputs(["dump", "dump/truth.parquet"])
    check_outputs(["out.csv", None, "-", "-"], ["-", None, b"bytes", object(), log])


def test_an_output_never_replaces_a_special_file(log):
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(UsageError, match="a device or a pipe"):
            formats.write(formats.read(log), name, formats.Layout.default("csv"))
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)
    assert Path("link").is_symlink()
    # Only the check: as root, a write that goes through would replace the machine's own files.
    for name in ("/dev/null", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        with pytest.raises(UsageError, match="a device or a pipe"):
            check_outputs([name])
    check_outputs(["/dev/shm/log.csv"])


def test_folders_are_replaced_as_a_whole(log, tmp_path):
    Path("dump").mkdir()
    Path("dump/ubi_queries.ndjson").write_text("{}")
    with pytest.raises(UsageError, match="would replace an input"):
        check_outputs(["dump"], ["dump/ubi_queries.ndjson"])
    with pytest.raises(UsageError, match="would replace an input"):
        check_outputs(["dump/ubi_queries.ndjson"], ["dump"])
    check_outputs(["dump/new.csv", "other"], ["dump"])
