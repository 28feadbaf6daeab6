"""What is written is read back, value for value, in every format, packed or not, whole or in pieces."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from querycloak import formats
from querycloak.errors import DataError

TIME = pl.Datetime("us", "UTC")
SCHEMA = {"user": pl.String, "query": pl.String, "time": TIME, "rank": pl.Int64, "url": pl.String}
NAMES = {
    "aol": "log.txt",
    "csv": "log.csv",
    "tsv": "log.tsv",
    "jsonl": "log.jsonl",
    "parquet": "log.parquet",
    "ubi": "dump",
}
NASTY = st.sampled_from(
    ['"', '""', ",", ";", "\t", "\n", "\r\n", "\r", "\\", "🦜", "אב", "\u202e", "\u2028", " ", "{", "'"]
)
ANY_TEXT = st.lists(st.one_of(NASTY, st.text(max_size=3)), min_size=1, max_size=6).map("".join)
PLAIN_TEXT = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\r\n\0"), min_size=1, max_size=8
)
MOMENTS = st.datetimes(datetime(1975, 1, 1), datetime(2060, 1, 1)).map(lambda t: t.replace(tzinfo=UTC))


def texts(alphabet: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return alphabet.filter(lambda text: "\0" not in text and text != "")


def frames(
    text: st.SearchStrategy[str], moments: st.SearchStrategy[datetime] = MOMENTS
) -> st.SearchStrategy[pl.DataFrame]:
    clean = texts(text)
    row = st.tuples(clean, clean, moments, st.none() | st.integers(-(2**40), 2**40), st.none() | clean)
    return st.lists(row, max_size=8).map(lambda rows: pl.DataFrame(rows, schema=SCHEMA, orient="row"))


def there_and_back(frame: pl.DataFrame, kind: str, ending: str, rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / (NAMES.get(kind, "log.txt") + ("" if kind == "ubi" else ending))
        layout = formats.Layout.for_output(path, kind)
        with formats.Writer(path, layout) as writer:
            for piece in frame.iter_slices(max(rows, 1)):
                writer.write(piece)
            writer.commit()
        assert writer.sha256 == formats.sha256(path)
        log = formats.read(path)
        assert log.layout.format == kind
        assert log.skipped.total == 0
        assert log.frame["row"].to_list() == list(range(frame.height))
        assert_frame_equal(log.frame.drop("row"), frame.select(log.frame.drop("row").columns))
        in_pieces = list(formats.pieces(path, rows=rows))
        assert all(piece.rows_read == rows for piece in in_pieces[:-1])
        assert_frame_equal(pl.concat(piece.frame for piece in in_pieces), log.frame)


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "ubi"])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(frame=frames(ANY_TEXT), rows=st.integers(1, 9))
def test_any_text_survives(kind: str, ending: str, frame: pl.DataFrame, rows: int) -> None:
    there_and_back(frame, kind, ending, rows)


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(frame=frames(PLAIN_TEXT), rows=st.integers(1, 9))
def test_aol_holds_all_but_tabs_and_line_ends(ending: str, frame: pl.DataFrame, rows: int) -> None:
    there_and_back(frame, "aol", ending, rows)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(frame=frames(PLAIN_TEXT, MOMENTS.map(lambda t: t.replace(microsecond=0))), rows=st.integers(1, 9))
def test_excite_holds_user_time_and_query(frame: pl.DataFrame, rows: int) -> None:
    frame = frame.select("user", "query", "time")
    if frame.height:
        there_and_back(frame, "excite", "", rows)


@pytest.mark.parametrize("kind", ["aol", "csv", "tsv", "jsonl", "parquet", "ubi"])
def test_a_query_of_a_megabyte_survives(kind: str, small: pl.DataFrame) -> None:
    long = small.with_columns(query=pl.lit("ab ç" * 200_000))
    there_and_back(long, kind, "", 2)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_category_and_kept_columns_survive(kind: str, small: pl.DataFrame, tmp_path: Path) -> None:
    frame = small.with_columns(
        category=pl.Series(["Home/Kitchen", None, "News/Weather"]), shop=pl.Series(["a", "5", '"x" y'])
    )
    path = tmp_path / NAMES[kind]
    formats.write(frame, path)
    log = formats.read(path, keep=["shop"])
    assert log.dropped_columns == ()
    kept = log.frame["shop"].to_list()
    assert kept == ["a", "5", '"x" y']
    assert log.frame["category"].to_list() == ["Home/Kitchen", None, "News/Weather"]
    formats.write(log, tmp_path / f"again-{NAMES[kind]}")
    assert (tmp_path / f"again-{NAMES[kind]}").read_bytes() == path.read_bytes()


def test_aol_comes_back_byte_for_byte(tmp_path: Path) -> None:
    content = (
        "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
        '7\t"half quoted\t2006-03-01 07:17:12\t\t\n'
        "7\tblue  kettle \t2006-03-01 07:17:12\t3\thttp://kettles.example\n"
        "9\tα \\ ,\t2006-05-31 23:59:59\t\t\n"
    ).encode()
    for ends in (b"\n", b"\r\n"):
        (tmp_path / "in.txt").write_bytes(content.replace(b"\n", ends))
        formats.write(formats.read(tmp_path / "in.txt"), tmp_path / "out.txt")
        assert (tmp_path / "out.txt").read_bytes() == content.replace(b"\n", ends)


@pytest.mark.parametrize("kind", ["aol", "excite"])
@pytest.mark.parametrize("mark", ["\t", "\n", "\r"])
def test_what_a_format_cannot_hold_is_refused_without_showing_it(
    kind: str, mark: str, small: pl.DataFrame, tmp_path: Path
) -> None:
    frame = small.with_columns(query=pl.Series(["fine", f"secret{mark}words", "fine"]))
    with pytest.raises(DataError, match=r"output row 1: the column `[Qq]uery`") as caught:
        formats.write(frame, tmp_path / "o.txt", formats.Layout.for_output(tmp_path / "o.txt", kind))
    assert "secret" not in str(caught.value)
    assert "hint: choose another format" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
