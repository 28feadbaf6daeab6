"""Parquet is written while frames come; types settle even when a late frame cannot have the first ones'."""

from __future__ import annotations

import hashlib
import stat
from dataclasses import replace

import polars as pl
import pytest

from querycloak import formats
from querycloak.errors import DiskFull

TYPES = {"user": "Int64", "query": "String"}
LAYOUT = replace(
    formats.Layout.default("parquet"),
    columns=("user", "query"),
    mapping={"user": "user", "query": "query"},
    types=TYPES,
)


def frames(*users):
    return [pl.DataFrame({"user": part, "query": [f"q{u}" for u in part]}) for part in users]


def written(path, parts, layout=LAYOUT):
    with formats.Writer(path, layout) as writer:
        for part in parts:
            writer.write(part)
        assert stat.S_IMODE(writer.temporary_path.stat().st_mode) == 0o600
        writer.commit()
        return writer.sha256


@pytest.mark.parametrize("users", [[["1"]], [["1"], ["2"]], [["1", "2"], ["3"], ["4"], ["5", "6"]], []])
def test_any_number_of_frames_is_one_file(tmp_path, users):
    path = tmp_path / "out.parquet"
    sha256 = written(path, frames(*users))
    found = pl.read_parquet(path)
    assert found["user"].cast(pl.String).to_list() == [user for part in users for user in part]
    assert found.schema["user"] == pl.Int64
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [one.name for one in tmp_path.iterdir()] == ["out.parquet"]


@pytest.mark.parametrize("late", [1, 2, 3])
def test_a_late_frame_with_other_types_changes_the_column(tmp_path, late):
    users = [["1"], ["2"], ["3"], ["4"]]
    users[late] = ["x"]
    path = tmp_path / "out.parquet"
    sha256 = written(path, frames(*users))
    assert pl.read_parquet(path)["user"].to_list() == [part[0] for part in users]
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [one.name for one in tmp_path.iterdir()] == ["out.parquet"]


def test_the_same_frames_give_the_same_bytes_however_long_they_take(tmp_path):
    parts = frames(*[[str(10 * i + j) for j in range(10)] for i in range(20)])
    assert written(tmp_path / "a.parquet", parts) == written(tmp_path / "b.parquet", parts)


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path, monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

        def __getattr__(self, name):
            return lambda *_: None

    def fill():
        with formats.Writer(tmp_path / "out.parquet", LAYOUT) as writer:
            monkeypatch.setattr(writer._output, "_file", Full())
            for part in frames(["1"], ["2"], ["3"]):
                writer.write(part)
            writer.commit()

    with pytest.raises(DiskFull, match=r"`out.parquet`: the disk is full"):
        fill()
    assert not list(tmp_path.iterdir())


def test_a_broken_off_writer_leaves_nothing(tmp_path):
    def break_off():
        with formats.Writer(tmp_path / "out.parquet", LAYOUT) as writer:
            for part in frames(["1"], ["2"], ["3"]):
                writer.write(part)
            raise KeyError

    with pytest.raises(KeyError):
        break_off()
    assert not list(tmp_path.iterdir())


def test_bytes_of_a_table_that_are_not_utf8_are_a_bad_row(tmp_path):
    table = pl.DataFrame({"user": ["a", "b", "c"], "query": [b"tea", b"\xff", b"caf\xc3\xa9"]})
    table.write_parquet(tmp_path / "log.parquet")
    log = formats.read(tmp_path / "log.parquet")
    assert log.frame["query"].to_list() == ["tea", "café"]
    assert log.skipped.counts == {"not UTF-8": 1}
    assert log.skipped.first_rows == {"not UTF-8": [1]}
