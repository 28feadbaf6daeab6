"""Request bodies: the fast path yields what the slow path yields, or leaves the records to it."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.errors import DataError
from querycloak.service.ingest import parse as parsing
from querycloak.service.ingest.parse import parse, to_columns

NOW = 1_700_000_000_000_000
TIMES = [
    "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:06Z",
    "2026-13-02T03:04:05Z",
    "2026-01-02 03:04:05",
    "noon",
    "",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "2026-01-02T03:04:05.000Z",
    "2026-02-30T03:04:05.000Z",
    "2026-01-02T03:04:05Z\n2026-01-02T03:04:05Z",
]
TEXTS = st.sampled_from(["a", "b", "", "é", "x\0y", "q" * 300, "x\ud800", "\U0001f600"])
NUMBERS = st.one_of(
    st.integers(-5, 2**70), st.just(10**400), st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.one_of(TEXTS, st.none(), NUMBERS, st.booleans())
RECORD = st.fixed_dictionaries(
    {},
    optional={
        "user": VALUES, "query": VALUES, "url": VALUES, "category": VALUES, "rank": VALUES,
        "time": st.one_of(st.sampled_from(TIMES), st.none(), st.integers(0, 2_000_000_000)),
        "other": st.just([1]),
    },
)  # fmt: skip
PLAIN = st.fixed_dictionaries(
    {"user": st.sampled_from("ab"), "query": st.sampled_from("qr")},
    optional={
        "time": st.sampled_from([*TIMES[:2], None]), "rank": st.integers(0, 5),
        "url": st.sampled_from(["", "u"]),
    },
)  # fmt: skip
BODIES = st.lists(st.lists(st.one_of(PLAIN, RECORD), max_size=4), min_size=1, max_size=3)


def bodies(requests):
    return [parse(json.dumps(records).encode(), lines=False) for records in requests]


def one_by_one(requests):
    """Read every record as a line of its own, one after another: the way of whatever is odd."""
    return [
        parsing._parse_one_by_one(
            parsing.objects(b"".join(json.dumps(one).encode() + b"\n" for one in records), lines=True)
        )
        for records in requests
    ]


def same(one, other):
    assert one.frame.equals(other.frame)
    assert (one.row.tolist(), one.accepted, one.skipped) == (
        other.row.tolist(),
        other.accepted,
        other.skipped,
    )


def slowly(parsed):
    """Take the slow path, whatever the records are."""
    records = [record for request in parsed for record in request.records]
    return parsing._slow_path(records, parsed, parsing._messages(parsed), parsing._arrivals(parsed, NOW))


@given(BODIES)
def test_both_paths_agree(requests):
    parsed = bodies(requests)
    same(to_columns(parsed, NOW), slowly(parsed))
    same(to_columns(parsed, NOW), to_columns(one_by_one(requests), NOW))


@given(st.lists(st.lists(PLAIN, min_size=1, max_size=5), min_size=1, max_size=3))
def test_plain_records_take_the_fast_path(requests):
    parsed = bodies(requests)
    records = [record for request in parsed for record in request.records]
    part = np.repeat(np.arange(len(parsed)), [len(one.records) for one in parsed])
    assert parsing._fast_path(records, part, np.full(len(records), NOW)) is not None
    same(to_columns(parsed, NOW), slowly(parsed))


@pytest.mark.parametrize("zone", ["Z", "+00:00"])
@pytest.mark.parametrize("fraction", ["", ".120", ".123456"])
def test_times_of_one_form_take_the_fast_path(fraction, zone):
    when = [f"2026-01-02T03:04:0{second}{fraction}{zone}" for second in (5, 6)]
    parsed = bodies([[{"user": "u", "query": "q", "time": text} for text in (when[0], None, *when, when[1])]])
    records = parsed[0].records
    assert parsing._fast_path(records, np.zeros(5, int), np.full(len(records), NOW)) is not None
    same(to_columns(parsed, NOW), slowly(parsed))


@pytest.mark.parametrize("body", [b"", b"\n\n", b" \n"])
def test_an_empty_body_is_no_record(body):
    assert to_columns([parse(body, lines=True)], NOW).accepted == [0]


@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b'{"user": NaN, "query": "q"}', b"[" * 100_000, b'{"user": "u"', b"\xff\xfe"]
)
def test_a_body_that_is_no_json_is_refused(body):
    with pytest.raises(DataError, match="not JSON"):
        parse(body, lines=False)


def test_lines_that_are_no_records_are_counted():
    body = (
        b'[1]\n"text"\n7\nnull\n{"user": 5, "query": 6}\n{"user": {"a": 1}, "query": "q"}\n'
        + b"[" * 5000
        + b"\n"
    )
    found = to_columns([parse(body, lines=True)], NOW)
    assert found.frame.select("user", "query").rows() == [("5", "6")]
    assert found.skipped == [{"not JSON": [0, 1, 2, 3, 6], "no user": [5]}]


def test_a_number_too_large_for_any_is_no_text():
    found = to_columns([parse(b'{"user": 1e999999, "query": "q"}', lines=False)], NOW)
    assert (found.accepted, found.skipped) == ([0], [{"no user": [0]}])


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"user": "\\ud800", "query": "q"}', "not UTF-8"),
        ('{"user": "u", "query": "q", "other": ["\\uDFFF"]}', "not UTF-8"),
        ('{"user": "u", "query": "q", "time": "0000-01-01T00:00:00Z"}', "unreadable time"),
        ('{"user": "u", "query": "q", "rank": 1%s}' % ("0" * 400), "unreadable rank"),
    ],
    ids=["half a character", "half a character elsewhere", "the year 0", "a huge rank"],
)
def test_what_no_table_can_hold_is_counted(record, reason, lines):
    found = to_columns([parse(record.encode(), lines=lines)], NOW)
    assert (found.accepted, found.skipped) == ([0], [{reason: [0]}])


@pytest.mark.parametrize("depth", range(970, 1000))
@pytest.mark.parametrize("lines", [True, False])
def test_depth_that_can_be_read_but_not_written_is_no_record(depth, lines):
    body = b'{"user": "\\ud800", "query": "q", "x": ' + b"[" * depth + b"]" * depth + b"}"
    try:
        found = parse(body, lines=lines)
    except DataError:
        return
    assert not found.records


def test_many_bad_lines_cost_little_each():
    """Eight times as many lines took sixty times as long; now they take about eight times as long."""

    def seconds(lines):
        start = time.process_time()
        assert parse(b"x\n" * lines, lines=True).bad["not JSON"].tolist() == list(range(lines))
        return time.process_time() - start

    seconds(100)
    assert seconds(40_000) < 32 * max(seconds(5000), 0.005)


def test_a_shortened_answer_can_be_shortened_again():
    once = parsing.shortened({"accepted": 1, "skipped": {"not JSON": list(range(500)), "no user": [7]}})
    assert once == {
        "accepted": 1,
        "skipped": {"not JSON": list(range(parsing.LISTED)), "no user": [7]},
        "skipped_total": 501,
    }
    assert parsing.shortened(once) == once
    few = {"accepted": 1, "skipped": {"no user": [7]}}
    assert parsing.shortened(few) == few
