"""The folders of a query: private ones, those that fit together, and what a checkpoint was started with."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from querycloak.errors import DataError, Refused
from querycloak.spark.checkpoint import Folder, check_note, check_settled, check_sink, make_private


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def test_a_folder_for_raw_records_is_private(tmp_path):
    make_private(tmp_path / "some" / "new")
    assert mode(tmp_path / "some" / "new") == 0o700
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o755)
    make_private(there)
    assert mode(there) == 0o700
    (there / "metadata").touch()
    make_private(there)
    there.chmod(0o750)
    with pytest.raises(Refused, match="other users of this machine can read the folder"):
        make_private(there)
    assert mode(there) == 0o750, "somebody else's folder was changed"


def test_what_a_checkpoint_was_begun_with():
    was = {"marks": ["a1"], "partitions": 2, "writers": 1}
    check_note(was, dict(was))
    with pytest.raises(Refused, match="another secret"):
        check_note(was, was | {"marks": ["b2"], "partitions": 3})
    with pytest.raises(Refused, match="`writers=1`, and now it is `2`") as told:
        check_note(was, was | {"writers": 2})
    assert "another folder" in told.value.hint
    with pytest.raises(Refused, match="`writers=1`, and now it is `None`"):
        check_note(was, {"marks": ["a1"], "partitions": 2})


def log_of(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()


def test_folders_as_spark_sees_them(spark, tmp_path):
    """On this machine in every spelling; its logs by number; what is not there; what cannot be."""
    for name in (str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}"):
        assert Folder(spark, name).local == tmp_path
    assert Folder(spark, "hdfs-like").local == Path.cwd() / "hdfs-like"
    with pytest.raises(DataError, match="Spark gave up"):
        Folder(spark, "nowhere://at/all")
    here = Folder(spark, str(tmp_path))
    assert here.read("querycloak.json") is None
    here.write("querycloak.json", "ä")
    assert here.read("querycloak.json") == "ä"
    assert here.newest("offsets") == -1
    log_of(tmp_path / "offsets", "9", "10", ".11.crc", "12.tmp")
    assert here.newest("offsets") == 10


def test_folders_that_do_not_fit_together(spark, tmp_path):
    checkpoint, out = Folder(spark, str(tmp_path / "checkpoint")), Folder(spark, str(tmp_path / "out"))
    check_sink(out, checkpoint)
    with pytest.raises(DataError, match="holds no records"):
        check_settled(checkpoint)
    log_of(tmp_path / "out" / "_spark_metadata", "0", "9.compact", "10")
    with pytest.raises(Refused, match="another checkpoint"):
        check_sink(out, checkpoint)
    log_of(tmp_path / "checkpoint" / "offsets", *map(str, range(11)))
    log_of(tmp_path / "checkpoint" / "commits", *map(str, range(10)))
    check_sink(out, checkpoint)
    with pytest.raises(Refused, match="within micro-batch 10") as told:
        check_settled(checkpoint)
    assert "availableNow" in told.value.hint
    log_of(tmp_path / "checkpoint" / "commits", "10")
    check_settled(checkpoint)
