"""Outputs: hidden until they are committed, gone if they are not, and in the layout asked for."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from querycloak import formats
from querycloak.errors import UsageError
from querycloak.log import Log

FORMATS = {"csv": "log.csv", "jsonl": "log.jsonl.gz", "parquet": "log.parquet", "ubi": "log.ubi"}


@pytest.mark.parametrize("kind", FORMATS)
def test_nothing_exists_before_commit_and_nothing_remains_without(
    kind: str, small: pl.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / FORMATS[kind]
    with formats.Writer(path, formats.Layout.for_output(path)) as writer:
        writer.write(small)
        writer.write(small)
        writer.close()
        assert not path.exists()
        assert writer.temporary_path.stat().st_mode & 0o077 == 0
        assert formats.read(writer.temporary_path, layout=writer.layout).frame.height == 6
    assert list(tmp_path.iterdir()) == []
    with suppress(RuntimeError), formats.Writer(path, formats.Layout.for_output(path)) as writer:
        writer.write(small)
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", FORMATS)
def test_commit_replaces_what_was_there(kind: str, small: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / FORMATS[kind]
    formats.write(pl.concat([small, small]), path)
    digest = formats.write(small, path)
    assert digest == formats.sha256(path)
    assert formats.read(path).frame.height == 3
    others = sorted(part.name for part in tmp_path.iterdir() if part.name != path.name)
    assert len(others) == (kind == "ubi")  # a folder is kept beside the new one
    assert not others or formats.read(tmp_path / others[0]).frame.height == 6


def test_private_files_stay_private(small: pl.DataFrame, tmp_path: Path) -> None:
    formats.write(small, tmp_path / "a.csv", private=True)
    assert (tmp_path / "a.csv").stat().st_mode & 0o777 == 0o600
    formats.write(small, tmp_path / "b.csv")
    assert (tmp_path / "b.csv").stat().st_mode & 0o400


def test_a_target_that_cannot_be(small: pl.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        formats.write(small, tmp_path / "no/such/folder.csv")
    with pytest.raises(UsageError, match="does not say its format"):
        formats.write(small, tmp_path / "log.xyz")


def test_columns_a_frame_lacks_are_empty_and_in_place(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"shop,TIME,User,query,note\ns,2024-03-01T07:17:12Z,u,kettle,n\n")
    log = formats.read(tmp_path / "in.csv", keep=["shop"])
    assert log.dropped_columns == ("note",)
    formats.write(log.with_frame(log.frame.drop("time", "user")), tmp_path / "out.csv", log.layout)
    assert (tmp_path / "out.csv").read_bytes() == b"shop,TIME,User,query,note\ns,,,kettle,\n"


def test_numbers_stay_numbers_in_json(tmp_path: Path) -> None:
    line = {
        "user": 7,
        "query": "kettle",
        "time": 1141197432123,
        "rank": 2,
        "tags": ["a"],
        "code": "5",
        "x": None,
    }
    (tmp_path / "in.jsonl").write_text(json.dumps(line) + "\n")
    log = formats.read(tmp_path / "in.jsonl", keep=["tags", "code", "x"])
    formats.write(log, tmp_path / "out.jsonl")
    assert json.loads((tmp_path / "out.jsonl").read_text()) == line
    renamed = log.with_frame(log.frame.with_columns(user=pl.lit("p-1")))
    formats.write(renamed, tmp_path / "out.jsonl")
    assert json.loads((tmp_path / "out.jsonl").read_text()) == {**line, "user": "p-1"}


def test_layouts_survive_json() -> None:
    layout = formats.Layout.default("csv", ["user", "query", "shop"])
    assert formats.Layout.from_dict(json.loads(json.dumps(layout.as_dict()))) == layout


def test_the_output_looks_like_the_input_where_its_name_allows() -> None:
    aol = formats.Layout.default("aol")
    assert formats.Layout.for_output("x.tsv", like=aol) == aol
    assert formats.Layout.for_output("-", like=aol) == aol
    assert formats.Layout.for_output("x.txt.zst", like=aol).compression == "zst"
    other = formats.Layout.for_output("x.parquet", like=aol)
    assert (other.format, other.columns) == ("parquet", ("user", "query", "time", "rank", "url"))
    wider = formats.Layout.for_output("x.tsv", like=aol, columns=["user", "query", "category"])
    assert (wider.format, wider.columns[-1], wider.columns[0]) == ("tsv", "category", "AnonID")


def test_a_classified_aol_log_can_be_read_again(small: pl.DataFrame, tmp_path: Path) -> None:
    formats.write(small, tmp_path / "in.tsv", formats.Layout.default("aol"))
    log = formats.read(tmp_path / "in.tsv")
    classified = log.frame.with_columns(category=pl.lit("Home/Kitchen"))
    formats.write(Log(classified, log.layout), tmp_path / "out.tsv")
    assert formats.read(tmp_path / "out.tsv").frame.equals(classified)
