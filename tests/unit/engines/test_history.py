"""One person's own searches: Google's export, a plain list, or any log."""

from __future__ import annotations

import gzip
import json

import pytest

from querycloak.engines.own_history import read_history
from querycloak.errors import DataError, UnknownName, UsageError


def searched(text, **more):
    return {"header": "Search", "title": f"Searched for {text}", "time": "2024-03-01T09:30:00.123Z"} | more


def queries(history):
    return history.frame["query"].to_list()


@pytest.fixture
def put(tmp_path):
    def write(content, name="history.txt"):
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return write


def test_a_takeout_gives_its_searches_and_counts_the_rest(put):
    items = [
        searched("red shoes"),
        searched("blue shoes", time="not a time"),
        {
            "header": "Search",
            "title": "Visited a page",
            "titleUrl": "https://www.google.com/url?q=http://a.b/",
        },
        {"title": "Nach Wetter gesucht", "titleUrl": "https://www.google.com/search?q=wetter+bern"},
        {"title": "x", "titleUrl": "https://www.youtube.com/results?search_query=slow+song"},
        {"title": "x", "titleUrl": "http://[broken"},
        {"title": 3, "titleUrl": ["a"]},
        "text",
        searched(""),
        searched("a\0b"),
        searched("half \ud800 letter"),
    ]
    found = read_history(put(json.dumps(items), "MyActivity.json"))
    expected = ["red shoes", "blue shoes", "wetter bern", "slow song", "half  letter"]
    assert (found.layout.format, queries(found)) == ("takeout", expected)
    assert found.frame["time"].null_count() == 3
    assert dict(found.skipped.counts) == {"not a search": 5, "NUL byte": 1}


def test_a_list_has_queries_with_or_without_times(put):
    lines = (
        "2024-03-01 09:30:00\tred shoes",
        "2024-03-01T09:31:00Z, blue shoes",
        "green shoes\t2024-03-01 09:32:00+01:00",
        "just words",
        "",
        "911",
        "2024-99-01 09:30:00 odd",
        "flight 2024-03-01",
    )
    found = read_history(put("\r\n".join(lines)))
    expected = ["red shoes", "blue shoes", "green shoes", "just words", "911", "odd", "flight 2024-03-01"]
    assert (found.layout.format, queries(found)) == ("list", expected)
    times = [time and f"{time:%H:%M}" for time in found.frame["time"]]
    assert times == ["09:30", "09:31", "08:32", None, None, None, None]
    assert dict(found.skipped.counts) == {"no query": 1}


def test_bad_lines_are_counted(put):
    found = read_history(put(b"good\n\xff\xfe bad\nnul\0\n" + b"x" * (1 << 20) + b"yy\n"))
    assert queries(found) == ["good"]
    assert set(found.skipped.counts) == {"not UTF-8", "NUL byte", "query too long"}


def test_a_log_needs_no_user_column(put):
    found = read_history(put("query,time\nred shoes,2024-03-01 09:30:00\n", "own.csv"))
    assert (found.layout.format, queries(found)) == ("csv", ["red shoes"])
    mapped = read_history(put("q,t\nred shoes,2024-03-01 09:30:00\n", "own.csv"), mapping={"query": "q"})
    assert queries(mapped) == ["red shoes"]
    lines = read_history(put('{"query": "red shoes"}\n', "own.jsonl"))
    assert (lines.layout.format, queries(lines)) == ("jsonl", ["red shoes"])


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
def test_a_table_with_any_delimiter_is_no_list(put, delimiter):
    lines = ["user,query,time", "u1,asthma inhaler,2024-03-01 09:30:00", 'u1,"red, blue",2024-03-01 09:31:00']
    found = read_history(put("\n".join(line.replace(",", delimiter) for line in lines[:2]), "own.txt"))
    assert queries(found) == ["asthma inhaler"]
    assert found.layout.format in ("csv", "tsv")


def test_several_clicks_are_one_search_and_untimed_repeats_are_several(put):
    head = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
    rows = [f"7\tshoes\t2006-03-01 09:30:00\t{rank}\thttp://a.b" for rank in (1, 2)]
    assert queries(read_history(put(head + "\n".join(rows)))) == ["shoes"]
    assert queries(read_history(put("shoes\nshoes\n"))) == ["shoes", "shoes"]


def test_a_packed_file_is_unpacked(put):
    packed = gzip.compress(json.dumps([searched("red shoes")]).encode())
    assert queries(read_history(put(packed, "MyActivity.json.gz"))) == ["red shoes"]


def test_a_log_of_many_is_refused_without_naming_anybody(put):
    with pytest.raises(DataError, match="of 2 users") as told:
        read_history(put("user,query\nanna,a\nbert,b\n", "log.csv"))
    assert "anna" not in str(told.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("<!doctype html><p>MyActivity", "web page"),
        ("PK\x03\x04zip", "archive"),
    ],
)
def test_what_cannot_be_read_is_said_in_words(put, content, words):
    with pytest.raises(DataError, match=words):
        read_history(put(content))


def test_options_that_cannot_be_meant(put):
    path = put("a\n\nb\n")
    with pytest.raises(UnknownName, match="no format is called `pdf`"):
        read_history(path, format="pdf")
    with pytest.raises(UsageError, match="standard input"):
        read_history("-")
    with pytest.raises(UsageError, match="no file"):
        read_history(path.with_name("missing"))
    with pytest.raises(DataError, match=r"data row 1 \(counted from 0\): no query"):
        read_history(path, strict=True)
    with pytest.raises(DataError, match="not a list"):
        read_history(put("{}"), format="takeout")
    assert queries(read_history(put("[a]\n"), format="list")) == ["[a]"]
