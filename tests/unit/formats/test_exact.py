"""A released file holds its records and nothing else, in every format."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from tests.support.logs import made_up

from querycloak import formats

LAYOUT_OF = {
    "log.tsv": "tsv", "log.csv": "csv", "log.jsonl": "jsonl", "log.parquet": "parquet", "log.tsv.gz": "tsv",
    "log.csv.zst": "csv", "log.txt": "aol", "excite.txt": "excite", "log.ubi": "ubi",
}  # fmt: skip


def written(path, format_name):
    """Write a synthetic log and return what a reader of its layout finds."""
    log = made_up(12, seed=4)
    frame = log.frame.drop("rank", "url") if format_name == "excite" else log.frame
    compression = {".gz": "gz", ".zst": "zst"}.get(path.suffix, "")
    layout = formats.Layout.default(format_name, frame.drop("row").columns, compression)
    formats.write(frame, path, layout)
    return formats.read(path, layout=layout, required=()), layout


def fault(path, layout):
    return formats.layout_fault(path, formats.read(path, layout=layout, required=()), layout)


@pytest.mark.parametrize(("name", "format_name"), LAYOUT_OF.items())
def test_a_file_as_it_was_written_has_no_fault(tmp_path, name, format_name):
    log, layout = written(tmp_path / name, format_name)
    assert len(log) > 50
    assert formats.layout_fault(tmp_path / name, log, layout) == ""


def edit(path, change):
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    lines = change(text.decode().splitlines())
    changed = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(changed) if path.suffix == ".gz" else changed)


@pytest.mark.parametrize("name", ["log.tsv", "log.csv", "log.tsv.gz", "log.txt"])
def test_a_further_column_is_a_fault(tmp_path, name):
    _, layout = written(tmp_path / name, LAYOUT_OF[name])
    edit(tmp_path / name, lambda lines: [line + layout.delimiter + "u1" for line in lines])
    assert fault(tmp_path / name, layout) != ""


@pytest.mark.parametrize(
    "change",
    [
        lambda item: item | {"client": "u1"},
        lambda item: item | {"query_attributes": {"client": "u1"}},
    ],
)
@pytest.mark.parametrize("file", ["log.jsonl", "log.ubi/ubi_queries.ndjson", "log.ubi/ubi_events.ndjson"])
def test_a_further_key_of_one_record_is_a_fault(tmp_path, file, change):
    path = tmp_path / file.split("/")[0]
    _, layout = written(path, LAYOUT_OF[path.name])
    edit(tmp_path / file, lambda lines: [json.dumps(change(json.loads(lines[0]))), *lines[1:]])
    assert fault(path, layout) != ""


def test_a_second_value_of_one_key_is_a_fault(tmp_path):
    _, layout = written(tmp_path / "log.jsonl", "jsonl")
    edit(tmp_path / "log.jsonl", lambda lines: ['{"user":"u1",' + lines[0][1:], *lines[1:]])
    assert fault(tmp_path / "log.jsonl", layout) != ""


def test_a_fault_at_the_end_of_a_large_file_is_found(tmp_path):
    path = tmp_path / "log.jsonl"
    frame = pl.concat([made_up(12, seed=4).frame] * 40)
    layout = formats.Layout.default("jsonl", frame.drop("row").columns)
    formats.write(frame, path, layout)
    assert path.stat().st_size > 2 << 20
    assert fault(path, layout) == ""
    edit(path, lambda lines: [*lines[:-1], '{"user":"u1",' + lines[-1][1:]])
    assert fault(path, layout) != ""


def test_a_further_file_of_a_folder_is_a_fault(tmp_path):
    _, layout = written(tmp_path / "log.ubi", "ubi")
    Path(tmp_path, "log.ubi", "notes.txt").write_text("u1")
    assert fault(tmp_path / "log.ubi", layout) != ""


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_a_value_in_a_column_that_is_not_released_is_a_fault(tmp_path, name):
    path = tmp_path / name
    table = made_up(12, seed=4).frame.drop("row").with_columns(client=pl.lit("u1"))
    table.write_parquet(path) if path.suffix == ".parquet" else table.write_csv(path)
    log = formats.read(path)
    assert log.dropped_columns == ("client",)
    assert formats.layout_fault(path, log, log.layout) != ""


def test_a_further_column_of_a_table_is_a_fault(tmp_path):
    _, layout = written(tmp_path / "log.parquet", "parquet")
    table = pl.read_parquet(tmp_path / "log.parquet")
    table.with_columns(client=pl.lit("u1")).write_parquet(tmp_path / "log.parquet")
    assert fault(tmp_path / "log.parquet", layout) != ""
