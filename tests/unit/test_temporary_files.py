"""Temporary files are private, and gone after any end of their process."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import querycloak as qc
from querycloak import formats
from querycloak.engines.time_order import Spool
from querycloak.environment import examine
from querycloak.errors import DiskFull
from querycloak.temporary_files import leftovers, new_folder, new_unfinished, remove_leftovers
from tests.support.logs import made_up

#: A run whose log is sorted on disk. It sends itself the signal argv[1] at the argv[2]-th step.
RUN = """
import os, sys
from querycloak.engines import audit, release, source, time_order
from querycloak.formats import output
from querycloak import keys, temporary_files

number, at, steps = int(sys.argv.pop(1)), int(sys.argv.pop(1)), []

def counted(function):
    def call(*given, **named):
        steps.append(function)
        if len(steps) == at:
            os.kill(os.getpid(), number)
        return function(*given, **named)
    return call

source._too_large, source.PIECE_ROWS = lambda log: True, 1_000
for place, names in (
    (time_order.Spool, ["_write", "scan", "close"]), (output.Writer, ["write", "close", "commit"]),
    (audit, ["audit"]), (keys, ["_write_synced"]), (temporary_files, ["_make_file"]),
):
    for name in names:
        setattr(place, name, counted(getattr(place, name)))
from querycloak.cli import main
try:
    main()
finally:
    print(len(steps))
"""


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Use folders of the test's own."""
    for name in ("temporary", "out"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.tsv"
    formats.write(made_up(users=60, seed=2), path)
    return path


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def start(log: Path, number: int, at: int) -> subprocess.Popen[str]:
    asked = ["protect", str(log), "-m", "rules", "-o", "out/o.tsv", "--truth", "out/t.parquet"]
    command = [sys.executable, "-c", RUN, str(number), str(at), *asked]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_spool_is_private_and_not_beside_the_release(log, folders):
    spool = Spool(None, bytes(32))
    spool.add(made_up(users=5, seed=1).frame)
    assert spool.folder.parent == folders / "temporary"
    assert stat.S_IMODE(spool.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in spool.folder.iterdir()} == {0o600}
    spool.close()
    assert files(folders / "temporary") == []


def test_the_named_state_folder_has_the_spool(log, folders, monkeypatch):
    seen = []
    monkeypatch.setattr(Spool, "close", lambda self: (seen.append(self.folder), self._temporary.remove()))
    qc.protect(log, "rules", source="s", state=folders / "st", output="out/o.tsv", piece_rows=1000)
    assert [folder.parent for folder in seen] == [folders / "st"]


def test_what_a_living_process_uses_is_no_leftover(folders):
    with new_folder() as folder, new_unfinished(folders / "out" / "o.csv") as file:
        assert leftovers(folders / "temporary") == leftovers(folders / "out") == []
        assert remove_leftovers(folders / "temporary") == remove_leftovers(folders / "out") == []
        assert folder.path.exists()
        assert file.path.exists()
    assert files(folders / "temporary") == files(folders / "out") == []


def test_other_names_and_links_are_never_removed(folders):
    other = folders / "other"
    other.mkdir()
    (other / "kept").touch()
    place = folders / "temporary"
    (place / ("querycloak-spool-" + "0" * 16)).symlink_to(other)
    for name in ("querycloak-spool", "querycloak-spool-demo", ".notes.unfinished", "o.12345678.unfinished"):
        (place / name).touch()
    before = files(place)
    assert remove_leftovers(place) == []
    assert files(place) == before
    assert files(other) == ["kept"]


def test_doctor_lists_leftovers_and_removes_them_on_request(folders):
    left = folders / "temporary" / ("querycloak-spool-" + "0" * 16)
    output = folders / "out" / ".o.csv.01234567.unfinished"
    left.mkdir()
    output.touch()
    assert examine()["leftovers"] == {"removed": False, "paths": [str(left)]}
    found = examine(folders=[folders / "out"])["leftovers"]["paths"]
    assert found == [str(left), str(output)]
    assert left.exists()
    assert examine(folders=[folders / "out"], remove_leftovers=True)["leftovers"]["paths"] == found
    assert not left.exists()
    assert not output.exists()


MOMENTS = [pytest.param(at, marks=[] if at in (3, 9) else pytest.mark.nightly) for at in range(1, 21, 2)]


@pytest.mark.parametrize("at", MOMENTS)
def test_after_sigterm_nothing_is_left(log, folders, at):
    found = start(log, signal.SIGTERM, at)
    words, _ = found.communicate(timeout=120)
    assert found.returncode == 143, f"the run has {words} steps"
    assert words == ""
    assert files(folders / "temporary") == []
    assert [name for name in files(folders / "out") if "unfinished" in name] == []
    assert "out/o.tsv" not in files(folders)  # the release is the last


@pytest.mark.parametrize("at", MOMENTS)
def test_after_kill_the_next_run_removes_what_is_left(log, folders, at):
    found = start(log, signal.SIGKILL, at)
    found.communicate(timeout=120)
    assert found.returncode == -signal.SIGKILL
    if at == 9:
        assert files(folders / "temporary") != []  # else this test shows nothing
    qc.protect(log, "rules", output="out/o.tsv", truth="out/t.parquet")
    assert files(folders / "temporary") == []
    names = ["o.tsv", "o.tsv.certificate.json", "o.tsv.certificate.private.json", "t.parquet"]
    assert files(folders / "out") == names


def test_an_interrupted_comparison_leaves_no_copy_of_the_log(log, folders, monkeypatch):
    """It is stopped while its workers run: once by SIGTERM, once by kill -9.

    The folder has a short name: a socket of multiprocessing is in it, and its path may have 107 characters.
    """
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setenv("TMPDIR", short)
        interrupt_comparisons(log, folders, Path(short))


def interrupt_comparisons(log, folders, place):
    for number, status in ((signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        asked = ["compare", str(log), "-m", "cohort:k=2,3", "-o", "report", "--quiet"]
        run = subprocess.Popen([sys.executable, "-m", "querycloak", *asked])
        until = time.monotonic() + 120
        while not list(place.glob("*/tmp*/*")) and time.monotonic() < until and run.poll() is None:
            time.sleep(0.02)
        assert run.poll() is None
        run.send_signal(number)
        run.wait(timeout=60)
        assert run.returncode == status
        assert [name for name in files(folders / "report") if name.endswith(".parquet")] == []
        assert number == signal.SIGKILL or list(place.glob("querycloak-*")) == []
    removed, until = False, time.monotonic() + 60
    while not (removed and not list(place.glob("querycloak-*"))) and time.monotonic() < until:
        removed = bool(remove_leftovers(place)) or removed  # the workers end by themselves, at some time
        time.sleep(0.05)
    assert removed
    assert list(place.glob("querycloak-*")) == []


@pytest.mark.parametrize("output", ["small/o.tsv", "small/o.parquet", "small/o.csv.gz"])
def test_a_full_disk_has_a_message_and_leaves_nothing(log, folders, output, monkeypatch):
    full = OSError(28, os.strerror(28))

    def write(*given, **named):
        raise full

    (folders / "small").mkdir()
    monkeypatch.setattr("querycloak.formats.output.OutputFile.write", write)
    with pytest.raises(DiskFull, match="the disk is full") as caught:
        qc.protect(log, "rules", output=output, piece_rows=1_000)
    assert caught.value.exit_status == 3
    assert files(folders / "small") == files(folders / "temporary") == []


def test_a_full_disk_of_temporary_files_has_a_message(log, folders, monkeypatch):
    import polars as pl

    def write(*given, **named):
        raise pl.exceptions.ComputeError("IO error: No space left on device (os error 28)")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", write)
    with pytest.raises(DiskFull, match="temporary copy of the log"):
        qc.protect(log, "rules", output="out/o.tsv", piece_rows=1_000)
    assert files(folders / "out") == files(folders / "temporary") == []
