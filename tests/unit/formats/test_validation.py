"""Bad rows: counted by reason at the right row number, never passed on, and never the end of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from querycloak import formats
from querycloak.errors import DataError
from querycloak.formats import source, validation

Make = Callable[..., Path]
AOL = b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
CSV = b"user,query,time,rank,url\n"
AOL_FAULTS = {
    "too few fields": b"1\tkettle\t2006-03-01 07:17:12\t",
    "too many fields": b"1\tkettle\t2006-03-01 07:17:12\t\t\t",
    "unreadable time": b"1\tkettle\t2006-02-30 07:17:12\t\t",
    "unreadable rank": b"1\tkettle\t2006-03-01 07:17:12\tfirst\t",
    "not UTF-8": b"1\tket\xfftle\t2006-03-01 07:17:12\t\t",
    "NUL byte": b"1\tket\0tle\t2006-03-01 07:17:12\t\t",
    "no user": b"\tkettle\t2006-03-01 07:17:12\t\t",
    "no query": b"1\t\t2006-03-01 07:17:12\t\t",
    "no time": b"1\tkettle\t\t\t",
    "stray carriage return": b"1\tket\rtle\t2006-03-01 07:17:12\t\t",
}
CSV_FAULTS = {
    "too few fields": b"1,kettle,2006-03-01 07:17:12,",
    "too many fields": b'1,"kettle",2006-03-01 07:17:12,,,',
    "unreadable time": b"1,kettle,yesterday,,",
    "unreadable rank": b'1,"a ""b""",2006-03-01 07:17:12,1.5,',
    "not UTF-8": b'1,"ket\xc3",2006-03-01 07:17:12,,',
    "NUL byte": b"1,ket\0tle,2006-03-01 07:17:12,,",
    "no user": b'"",kettle,2006-03-01 07:17:12,,',
    "no query": b"1,,2006-03-01 07:17:12,,",
    "no time": b"1,kettle,,,",
    "bad quoting": b'1,"kettle,2006-03-01 07:17:12,,',
}
JSON_FAULTS = {
    "not JSON": b'{"user":"1","query":"kettle"',
    "unreadable time": b'{"user":"1","query":"kettle","time":"soon"}',
    "unreadable rank": b'{"user":"1","query":"kettle","time":1141197432,"rank":"x"}',
    "not UTF-8": b'{"user":"1","query":"ket\xfftle","time":1141197432}',
    "NUL byte": b'{"user":"1","query":"ket\\u0000tle","time":1141197432}',
    "no user": b'{"user":null,"query":"kettle","time":1141197432}',
    "no query": b'{"user":"1","query":["kettle"],"time":1141197432}',
    "no time": b'{"user":"1","query":"kettle"}',
}
GOOD = {
    "aol": b"%d\tgood kettle\t2006-03-01 07:17:12\t1\thttp://k.example",
    "csv": b'%d,"good, ""kettle""",2006-03-01 07:17:12,1,http://k.example',
    "jsonl": b'{"user":"%d","query":"good kettle","time":"2006-03-01 07:17:12","rank":1,"url":null}',
}
FORMS = {"aol": (AOL, AOL_FAULTS), "csv": (CSV, CSV_FAULTS), "jsonl": (b"", JSON_FAULTS)}
CASES = [(kind, reason) for kind, (_, faults) in FORMS.items() for reason in faults]


def small_blocks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for name in ("BLOCK", "_PLAIN_READ", "_HEAD"):
        monkeypatch.setattr(source, name, size)


@pytest.mark.parametrize(("kind", "reason"), CASES)
def test_each_fault_is_found_where_it_is(kind: str, reason: str, log_file: Make) -> None:
    header, faults = FORMS[kind]
    lines = [GOOD[kind] % 0, faults[reason], GOOD[kind] % 2, faults[reason], GOOD[kind] % 4]
    path = log_file(header + b"\n".join(lines) + b"\n", f"log.{kind}")
    log = formats.read(path, format=kind)
    assert log.skipped.counts == {reason: 2}
    assert log.skipped.first_rows == {reason: [1, 3]}
    assert log.rows_read == 5
    assert log.frame["row"].to_list() == [0, 2, 4]
    assert log.frame["user"].to_list() == ["0", "2", "4"]


@pytest.mark.parametrize(("kind", "reason"), CASES)
def test_strict_stops_at_the_row_and_shows_nothing_of_it(kind: str, reason: str, log_file: Make) -> None:
    header, faults = FORMS[kind]
    path = log_file(header + b"\n".join([GOOD[kind] % 0, faults[reason], GOOD[kind] % 2]), f"log.{kind}")
    with pytest.raises(DataError, match=rf"data row 1 \(counted from 0\): {reason};") as caught:
        formats.read(path, format=kind, strict=True)
    assert "kettle" not in str(caught.value)
    assert caught.value.exit_status == 3


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("block", [256, 4096, 1 << 24])
def test_one_percent_of_broken_rows_leaves_exactly_the_good_ones(
    kind: str, block: int, log_file: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch, block)
    header, faults = FORMS[kind]
    rng = np.random.default_rng(5)
    broken = dict(zip(rng.permutation(3000)[:30].tolist(), [*faults] * 4, strict=False))
    lines = [faults[broken[n]] if n in broken else GOOD[kind] % n for n in range(3000)]
    path = log_file(header + b"\n".join(lines), f"log.{kind}")
    log = formats.read(path, format=kind)
    assert log.frame["user"].to_list() == [str(n) for n in range(3000) if n not in broken]
    assert log.frame["row"].to_list() == [n for n in range(3000) if n not in broken]
    for reason in faults:
        assert log.skipped.first_rows[reason] == sorted(n for n, r in broken.items() if r == reason)
    pieces = list(formats.pieces(path, format=kind, rows=700))
    assert [piece.rows_read for piece in pieces] == [700, 700, 700, 700, 200]
    assert_frame_equal(pl.concat(piece.frame for piece in pieces), log.frame)
    assert (
        sum((piece.skipped.counts for piece in pieces), start=type(log.skipped.counts)())
        == log.skipped.counts
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data(), kind=st.sampled_from([*FORMS]), size=st.integers(1, 7))
def test_pieces_are_the_same_as_the_whole(
    data: st.DataObject, kind: str, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    header, faults = FORMS[kind]
    line = st.one_of(st.just(GOOD[kind] % 3), st.sampled_from([*faults.values()]), st.binary(max_size=12))
    lines = data.draw(st.lists(line, max_size=12))
    path = tmp_path_factory.mktemp("pieces") / f"log.{kind}"
    path.write_bytes(header + b"\n".join(lines))
    whole = formats.read(path, format=kind)
    parts = list(formats.pieces(path, format=kind, rows=size))
    found = [part.frame for part in parts if part.frame.height]
    assert bool(found) == bool(whole.frame.height)
    if found:
        assert_frame_equal(pl.concat(found, how="diagonal"), whole.frame)
    assert (
        sum(part.rows_read for part in parts) == whole.rows_read == whole.skipped.total + whole.frame.height
    )
    merged = parts[0].skipped
    for part in parts[1:]:
        merged.merge(part.skipped)
    assert merged == whole.skipped


def test_an_unclosed_quote_does_not_swallow_the_rest(log_file: Make) -> None:
    rows = [b'0,"never closed,2006-03-01 07:17:12,,'] + [GOOD["csv"] % n for n in range(1, 50)]
    log = formats.read(log_file(CSV + b"\n".join(rows), "log.csv"))
    assert log.skipped.counts == {"bad quoting": 1}
    assert log.frame.height == 49
    plain = [b'0,"never closed,2006-03-01 07:17:12,,'] + [
        b"%d,kettle,2006-03-01 07:17:12,," % n for n in range(1, 50)
    ]
    log = formats.read(log_file(CSV + b"\n".join(plain), "log.csv"))
    assert log.frame["row"].to_list() == list(range(1, 50))


def test_a_quoted_record_may_span_lines_and_blocks(log_file: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 16)
    text = b'1,"one\ntwo, ""three""\r\nfour",1141197432,,\r\n2,5" pipe,1141197433,,\r\n3,"x",1141197434,,\r\n'
    log = formats.read(log_file(CSV + text, "log.csv"))
    assert log.frame["query"].to_list() == ['one\ntwo, "three"\r\nfour', '5" pipe', "x"]
    assert log.frame["row"].to_list() == [0, 1, 2]


@pytest.mark.parametrize("kind", FORMS)
def test_sizes_have_limits(kind: str, tmp_path: Path) -> None:
    sizes = {"ok": 1 << 20, "query": 10_000_000, "url": (4 << 20) + 1}
    queries = ["a" * sizes["ok"], "a" * sizes["query"], "a", "b"]
    urls = [None, None, "u" * sizes["url"], "u"]
    frame = pl.DataFrame({"user": ["x"] * 4, "query": queries, "rank": [1] * 4, "url": urls}).with_columns(
        time=pl.datetime(2024, 1, 1, time_zone="UTC")
    )
    path = tmp_path / "log.txt"
    formats.write(frame, path, formats.Layout.for_output(path, kind))
    log = formats.read(path, format=kind)
    assert log.frame["row"].to_list() == [0, 3]
    assert log.frame["query"].str.len_bytes().to_list() == [1 << 20, 1]
    assert log.skipped.first_rows == {"query too long": [1], "field too long": [2]}


def test_a_line_too_long_to_hold_is_one_bad_row(log_file: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 64)
    monkeypatch.setattr(source, "LONGEST_LINE", 200)
    for kind in ("aol", "jsonl"):
        header, _ = FORMS[kind]
        content = header + b"\n".join([GOOD[kind] % 0, b"x" * 1000, GOOD[kind] % 2])
        log = formats.read(log_file(content, "log.txt"), format=kind)
        assert log.skipped.first_rows == {"field too long": [1]}
        assert log.frame["row"].to_list() == [0, 2]


def test_with_nothing_required_empty_cells_are_null(log_file: Make) -> None:
    log = formats.read(log_file(AOL + b"\tkettle\t\t\t\n1\t\t2006-03-01 07:17:12\t\t\n"), required=())
    assert log.skipped.total == 0
    assert log.frame.select("user", "query").rows() == [(None, "kettle"), ("1", None)]
    assert log.frame["time"].null_count() == 1


def test_json_oddities(log_file: Make) -> None:
    lines = [
        {"user": 17, "query": "kettle", "time": 1141197432},
        {"user": 12345678901234567890123, "query": "kettle", "time": 1141197432.5},
        {"user": True, "query": "kettle", "time": 1141197432},
    ]
    raw = [json.dumps(line).encode() for line in lines]
    raw += [
        b'{"user":"a","query":"\\ud800","time":1141197432}',
        b"[1]",
        b"",
        b'{"user":"a","query":NaN,"time":1141197432}',
    ]
    log = formats.read(log_file(b"\n".join(raw) + b"\n", "log.jsonl"))
    assert log.frame["user"].to_list() == ["17", "12345678901234567890123"]
    assert log.skipped.first_rows == {"no user": [2], "not UTF-8": [3], "not JSON": [4, 5, 6]}


def test_every_reason_is_explained_and_documented() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/formats.md").read_text()
    for reason, explanation in validation.REASONS.items():
        assert explanation
        assert f"`{reason}`" in page
