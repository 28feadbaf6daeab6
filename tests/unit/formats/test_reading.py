"""Files as they come: packed, truncated, empty, without a last line end, not there at all."""

from __future__ import annotations

import gzip
import io as stdlib_io
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import zstandard

from querycloak import formats
from querycloak.errors import DataError, UnknownName, UsageError

Make = Callable[..., Path]
CSV = b"user,query,time\nu1,kettle,2024-03-01T07:17:12Z\nu2,teapot,2024-03-01T07:17:13Z\n"
PACKERS = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor(write_checksum=True).compress}


@pytest.mark.parametrize(
    "content", [CSV, b"\xef\xbb\xbf" + CSV, CSV.replace(b"\n", b"\r\n"), CSV.rstrip(b"\n")]
)
def test_marks_and_line_ends_make_no_difference(content: bytes, log_file: Make) -> None:
    log = formats.read(log_file(content, "log.csv"))
    assert log.frame.select("row", "user", "query").rows() == [(0, "u1", "kettle"), (1, "u2", "teapot")]
    assert log.skipped.total == 0


@pytest.mark.parametrize("ending", PACKERS)
def test_packed_parts_put_together_are_one_log(ending: str, log_file: Make) -> None:
    pack = PACKERS[ending]
    log = formats.read(log_file(pack(CSV[:30]) + pack(CSV[30:]), "anything"))
    assert log.frame.height == 2
    assert log.layout.compression == ending[1:]


@pytest.mark.parametrize("ending", PACKERS)
def test_truncated_and_damaged_packed_files_are_errors(ending: str, log_file: Make) -> None:
    packed = PACKERS[ending](CSV * 50)
    with pytest.raises(DataError, match=r"`log.csv.\w+` is truncated"):
        formats.read(log_file(packed[:-9], "log.csv" + ending))
    with pytest.raises(DataError, match=r"is (damaged|truncated)"):
        formats.read(log_file(packed[:20] + b"\xff" * 40 + packed[60:], "log.csv" + ending))


@pytest.mark.parametrize("cut", [4, 100, -4])
def test_a_truncated_parquet_file_is_an_error(cut: int, small: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    formats.write(small, path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError, match="not a complete Parquet file"):
        formats.read(path)


def test_packed_output_depends_on_the_records_alone(small: pl.DataFrame, tmp_path: Path) -> None:
    for name in ("log.csv.gz", "log.csv.zst", "log.parquet", "log.jsonl"):
        hashes = {formats.write(small, tmp_path / f"{part}-{name}") for part in ("a", "b")}
        assert len(hashes) == 1


@pytest.mark.parametrize(
    ("name", "what"), [("log.csv", "is empty"), ("log", "is empty"), ("log.tsv", "is empty")]
)
def test_an_empty_file_with_a_header_due_is_an_error(name: str, what: str, log_file: Make) -> None:
    with pytest.raises(DataError, match=what):
        formats.read(log_file(b"", name))


@pytest.mark.parametrize(
    ("name", "content"), [("log.jsonl", b""), ("log.csv", CSV[:16]), ("log.csv", CSV[:15])]
)
def test_a_log_without_rows_has_columns(name: str, content: bytes, log_file: Make) -> None:
    log = formats.read(log_file(content, name))
    assert (log.rows_read, log.frame.height) == (0, 0)
    assert log.frame.columns[:4] == ["row", "user", "query", "time"]
    assert log.frame.schema["time"] == pl.Datetime("us", "UTC")
    assert [piece.frame.columns for piece in formats.pieces(log_file(content, name))] == [log.frame.columns]


def test_what_is_not_there_or_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file `none\.csv`"):
        formats.read(tmp_path / "none.csv")
    with pytest.raises(UsageError, match="is a folder"):
        formats.read(tmp_path)
    path = tmp_path / "log.csv"
    path.write_bytes(CSV)
    with pytest.raises(UnknownName, match="no format is called `xml`"):
        formats.read(path, format="xml")


def test_other_encodings_and_arrays_are_named(log_file: Make) -> None:
    with pytest.raises(DataError, match="UTF-16"):
        formats.read(log_file("user,query\n".encode("utf-16"), "log.csv"))
    with pytest.raises(DataError, match="JSON array"):
        formats.read(log_file(b"[{}]", "log.json"))


def test_a_missing_column_is_named_with_the_way_out(log_file: Make) -> None:
    path = log_file(b"client,query,time\nc,kettle,2024-03-01 07:17:12\n", "log.csv")
    with pytest.raises(DataError, match="has no column `user`, but 3 others") as caught:
        formats.read(path)
    assert "--map user=COLUMN" in str(caught.value)
    log = formats.read(path, mapping={"user": "client"})
    assert log.frame["user"].to_list() == ["c"]
    assert log.layout.mapping["user"] == "client"
    with pytest.raises(DataError, match="no column `id`"):
        formats.read(path, mapping={"user": "id"})
    with pytest.raises(UnknownName, match="no column of a record is called `who`"):
        formats.read(path, mapping={"who": "client"})


def test_a_file_without_a_header_does_not_leak_its_first_row(log_file: Make) -> None:
    with pytest.raises(DataError, match="does not look like a header") as caught:
        formats.read(log_file(b"c77,secretkettle,2024-03-01 07:17:12\n", "log.csv"))
    assert "secret" not in str(caught.value)


def test_columns_twice(log_file: Make) -> None:
    with pytest.raises(DataError, match="2 columns called `query`"):
        formats.read(log_file(b"user,query,query\na,b,c\n", "log.csv"))
    log = formats.read(log_file(b"user,query,x,x\na,b,c,d\n", "log.csv"))
    assert log.dropped_columns == ("x",)
    assert "time" not in log.frame.columns
    path = log_file(b"", "out.csv")
    formats.write(log, path)
    assert path.read_bytes() == b"user,query,x,x\na,b,,\n"


def test_formats_are_told_by_content(log_file: Make) -> None:
    cases = {
        b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n": "aol",
        b"c1\t970916071543\tkettle\n": "excite",
        b"user\tquery\tx\n": "tsv",
        b"user;query\na;b\n": "csv",
        b'{"user":"a","query":"b"}\n': "jsonl",
        b'{"query_id":"a","user_query":"b","client_id":"c"}\n': "ubi",
    }
    for content, kind in cases.items():
        assert formats.read(log_file(content, "log")).layout.format == kind


def test_typed_parquet_comes_back_typed(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "user": [3, 4],
            "query": ["a", "b"],
            "time": [1, None],
            "rank": [1.0, None],
            "extra": [[1], [2]],
            "n": [1, 2],
        }
    ).with_columns(
        pl.from_epoch("time", time_unit="ms").dt.replace_time_zone("Asia/Tokyo"), pl.col("n").cast(pl.UInt8)
    )
    frame.write_parquet(tmp_path / "in.parquet")
    log = formats.read(tmp_path / "in.parquet", keep=["n"], required=())
    assert log.frame.schema["user"] == pl.String
    assert log.dropped_columns == ("extra",)
    for size in (1, 2):
        with formats.Writer(
            tmp_path / "out.parquet", formats.Layout.for_output(tmp_path / "out.parquet", like=log.layout)
        ) as writer:
            for piece in log.frame.iter_slices(size):
                writer.write(piece)
            writer.commit()
        back = pl.read_parquet(tmp_path / "out.parquet")
        assert back.drop("extra").equals(frame.drop("extra"))
        assert back.drop("extra").schema == frame.drop("extra").schema
        assert back["extra"].null_count() == 2


def test_standard_input_and_output(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for content in (CSV, gzip.compress(CSV)):
        monkeypatch.setattr(sys, "stdin", stdlib_io.TextIOWrapper(stdlib_io.BytesIO(content)))
        log = formats.read("-")
        formats.write(log, "-")
        assert capsysbinary.readouterr().out == CSV


def test_progress_tells_bytes(log_file: Make) -> None:
    seen: list[tuple[int, int]] = []
    formats.read(log_file(CSV, "log.csv"), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(CSV), len(CSV))
