"""JSON lines: which keys become columns, and that fast and careful decoding agree."""

from __future__ import annotations

import json
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import querycloak as qc
from querycloak import formats
from querycloak.engines import classify
from querycloak.formats import jsonl, source, validation

SECRET = "jane.roe@example.org"


def line(n, **more):
    return json.dumps({"user": f"u{n}", "query": "weather", "time": "2024-03-01T07:17:12Z"} | more)


def test_a_key_of_one_record_is_in_no_released_line(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join([*(line(n) for n in range(30)), line(30, **{SECRET: 1})]) + "\n")
    made = qc.protect(log, "frequent-only", k=2, output=tmp_path / "out.jsonl")
    assert made.report.released == 31
    assert SECRET not in (tmp_path / "out.jsonl").read_text()
    assert SECRET not in json.dumps(made.report.as_dict()) + json.dumps(made.certificate)
    assert made.report.dropped_columns == ["keys that few records have (1 record)"]


def test_keys_that_are_data_do_not_grow_the_layout(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(line(n, shop="x", **{f"id{n}": n}) for n in range(1000)))
    log = formats.read(path)
    assert log.layout.columns == ("user", "query", "time", "shop")
    assert log.dropped_columns == ("shop", "keys that few records have (1,000 records)")


def test_known_and_named_columns_count_even_if_few_records_have_them(tmp_path):
    path = tmp_path / "log.jsonl"
    rare = {"URL": "http://a.example", "position": 3, "shop": "x"}
    path.write_text("\n".join(line(n, **(rare if n == 7 else {})) for n in range(10)))
    log = formats.read(path, mapping={"rank": "position"}, keep=["shop", "later"])
    assert log.frame.row(7, named=True) | {"time": 0} == {
        "row": 7, "user": "u7", "query": "weather", "time": 0, "rank": 3, "url": "http://a.example",
        "shop": "x", "later": None,
    }  # fmt: skip
    assert log.layout.kept == ("shop", "later")
    assert log.dropped_columns == ()


def test_a_known_column_that_appears_late_is_reported(tmp_path, monkeypatch):
    for name in ("BLOCK", "_PLAIN_READ", "_HEAD"):
        monkeypatch.setattr(source, name, 200)
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([*(line(n) for n in range(20)), line(20, url="http://a.example")]) + "\n")
    log = formats.read(path)
    assert log.layout.columns == ("user", "query", "time")
    assert log.dropped_columns == ("url",)


@pytest.mark.parametrize("bad", [[], ["{"]])
def test_rare_keys_are_counted_wherever_they_appear(tmp_path, monkeypatch, bad):
    for name in ("BLOCK", "_PLAIN_READ", "_HEAD"):
        monkeypatch.setattr(source, name, 200)
    path = tmp_path / "log.jsonl"
    usual = [line(n, shop="x", **{'a "quoted" key': 1}) for n in range(20)]
    odd = [line(n, **{SECRET: 1, "b": None}) for n in (20, 21)] + [line(22, **{"c": {"user": 1}})]
    path.write_text("\n".join([*usual, *bad, *odd, *usual]) + "\n")
    log = formats.read(path)
    assert log.frame.height == 43
    assert log.dropped_columns == ("shop", 'a "quoted" key', "keys that few records have (3 records)")
    pieces = [piece.dropped_columns[-1] for piece in formats.pieces(path, rows=30)]
    assert pieces[-1] == log.dropped_columns[-1]


def test_a_kept_column_that_appears_late_is_classified_too(tmp_path, monkeypatch):
    for name in ("BLOCK", "_PLAIN_READ", "_HEAD"):
        monkeypatch.setattr(source, name, 200)
    monkeypatch.setattr(classify, "PIECE_ROWS", 2)
    path, out = tmp_path / "log.jsonl", tmp_path / "out.jsonl"
    path.write_text("\n".join([*(line(n) for n in range(20)), line(20, shop={"id": [1, "x"]})]) + "\n")
    classify.classify_file(str(path), str(out), keep=["shop"])
    lines = [json.loads(text) for text in out.read_text().splitlines()]
    assert [one["shop"] for one in lines] == [None] * 20 + [{"id": [1, "x"]}]


VALUES = [
    b"1", b"-0", b"1.0", b"1e2", b"1e400", b"12345678901234567890123", b"01", b"1.", b"NaN", b"tru", b"null",
    b"true", b"[1, 2]", b'{"a":1}', b'""', b'"x"', b'"\\u0000"', b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\\x"',
    b'"a\tb"', b'"\xff"', b'"a\0b"', b'"5"', b'"{}"', b'"[1"', b"" , b"1}\n{", b"1}{",
]  # fmt: skip
KEYS = st.sampled_from([b"user", b"query", b"shop", b"x", b"rank"])
ITEM = st.tuples(KEYS, st.sampled_from(VALUES)).map(lambda item: b'"%b":%b' % item)
LINE = st.one_of(
    st.lists(ITEM, max_size=4).map(lambda items: b"{" + b",".join(items) + b"}"),
    st.sampled_from([b"", b" ", b"[1]", b"{} ", b"{}\r", b'{"a":', b"1}", b"\xff{}"]),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(lines=st.lists(LINE, max_size=5), before=st.integers(0, 2), size=st.sampled_from([1, 60, 1 << 20]))
def test_fast_and_careful_parsing_agree(lines, before, size):
    """With and without msgspec: the same rows, values, reasons and layout."""
    first = b'{"user":"a","query":"b","shop":1,"rank":2}'
    data = b"".join(one + b"\n" for one in [first] * before + lines)
    options = formats.ReadOptions(required=(), keep=["shop"])
    results = []
    for fast in (True, False):
        parser = jsonl.JsonLines().parser(b"", options)
        with (
            mock.patch.object(jsonl, "_SLICE", size),
            mock.patch.object(jsonl, "_decode", jsonl._decode if fast else lambda decoder, block: None),
        ):
            table = validation.validate(parser.parse(source.Block(data, final=True), 7), options)
        bad = {reason: rows.tolist() for reason, rows in table.bad.items()}
        results.append((table.frame.to_dicts(), table.first, table.rows, bad, parser.layout, parser.dropped))
    assert results[0] == results[1]


def test_regular_blocks_are_decoded_by_msgspec(monkeypatch):
    """Blocks of usual logs never take the slow path, also with kept columns, escapes and other letters."""
    monkeypatch.setattr(jsonl, "read_objects", None)
    items = [
        {"user": n, "query": "caf\u00e9 \U0001f9c0", "shop": {"a": [n]}, "time": "2024-03-01"}
        for n in range(9)
    ]
    for ascii_only in (True, False):
        data = "".join(json.dumps(item, ensure_ascii=ascii_only) + "\r\n" for item in items).encode()
        table = jsonl.JsonLines().parser(b"", formats.ReadOptions(keep=["shop"])).parse(source.Block(data))
        assert table.frame["shop"].to_list() == [f'{{"a":[{n}]}}' for n in range(9)]
        assert table.frame["query"].to_list() == [item["query"] for item in items]


def test_a_known_column_behind_the_sample_is_found(monkeypatch):
    monkeypatch.setattr(jsonl, "_SAMPLE", 300)
    for name in ("url", "Shop"):
        data = "".join(
            line(n, **({name: "x", "rare": 1} if n == 19 else {})) + "\n" for n in range(20)
        ).encode()
        parser = jsonl.JsonLines().parser(b"", formats.ReadOptions(keep=["Shop"]))
        found = parser.parse(source.Block(data)).frame
        assert found["Shop" if name == "Shop" else "url"].to_list() == [None] * 19 + ["x"]
        assert "rare" not in (*parser.layout.columns, *parser.dropped)


def test_objects_that_span_lines_or_share_one_are_bad_rows_of_their_own():
    """Three objects on three lines, but not one on each: msgspec alone would count three good rows."""
    one = b'{"user":"a","query":"q","x":{}}'
    for lines in (
        [b'{"user":"a","query":"q","x":', b'{"b":1}}', one + one],
        [b'{"user":"a","query":"q","x":{}', b"}", one + b" " + one],
    ):
        parser = jsonl.JsonLines().parser(b"", formats.ReadOptions())
        parser.parse(source.Block(one + b"\n"))
        table = parser.parse(source.Block(b"\n".join(lines) + b"\n"), 1)
        assert (table.rows, table.frame["row"].to_list()) in [(3, []), (3, [2])]
        assert 3 in table.bad["not JSON"].tolist()
        assert 1 in table.bad["not JSON"].tolist()
