"""No error shows a cell of a log: a user, a query and a URL are planted everywhere, and looked for."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import querycloak as qc
from querycloak.cli import main
from querycloak.errors import QueryCloakError

USER, QUERY, URL = "zzperson4711", "zzillness near zzstreet", "http://zzclinic.example/zzpage"
#: Parts of the secrets, in lower case; a message must not hold even one of them.
MARKS = ("zzperson", "4711", "zzillness", "zzstreet", "zzclinic", "zzpage")
TIME = "2006-03-01 10:00:00"
NAMES = ("user", "query", "time", "rank", "url")
ROW = (USER, QUERY, TIME, "1", URL)


def text(rows: list[tuple[str, ...]], mark: str = ",") -> bytes:
    return "".join(mark.join(row) + "\n" for row in rows).encode()


def rows_with_faults() -> list[tuple[str, ...]]:
    """Return rows with the secrets in every field, and faults of every kind."""
    moved = [(*ROW[place:], *ROW[:place]) for place in range(5)]
    return [
        *moved,
        ROW[:3],
        (*ROW, QUERY),
        ("", *ROW[1:]),
        (USER, "", *ROW[2:]),
        (USER, f'"{QUERY}', *ROW[2:]),
    ]


def json_lines(*records: Any) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


RECORD = dict(zip(NAMES, ROW, strict=True))
JSON_FAULTS = [
    *({**RECORD, name: QUERY} for name in ("time", "rank", QUERY)),
    *({**RECORD, name: {USER: QUERY}} for name in NAMES),
    *({**RECORD, name: [QUERY, URL]} for name in NAMES),
    {QUERY: USER},
    {USER: {QUERY: URL}},
    [USER, QUERY],
    QUERY,
]
UBI = {"application": "a", "client_id": USER, "user_query": QUERY, "query_id": "q1", "timestamp": TIME}


def logs() -> dict[str, bytes]:
    """Return files with planted secrets by name; names of columns beside `user` and `query` are no cells."""
    faulty = rows_with_faults()
    ubi = [UBI, UBI | {"timestamp": QUERY}, UBI | {"user_query": {QUERY: 1}}, UBI | {QUERY: URL}]
    activity = {"title": f"Searched for {QUERY}", "time": USER, "header": URL}
    return {
        "good.csv": text([NAMES, ROW, ROW]),
        "faulty.csv": text([NAMES, *faulty]),
        "headless.csv": text([ROW, ROW]),
        "headless-faulty.csv": text(faulty),
        "headless.tsv": text([ROW, ROW], "\t"),
        "text-only.csv": text([(USER, QUERY, URL)] * 2),
        "user-only.csv": text([("user", QUERY, URL), ROW[:3]]),
        "twice.csv": text([("user", "user", QUERY, USER), ROW[:4]]),
        "wrong.csv": text([(f"{USER}-id", QUERY, URL), ROW[:3]]),
        "aol.tsv": text([("AnonID", "Query", "QueryTime", "ItemRank", "ClickURL"), *faulty], "\t"),
        "excite.tsv": text([(USER, "970916105432", QUERY), (USER, QUERY, URL), (QUERY, USER)], "\t"),
        "keys.jsonl": json_lines({QUERY: USER, URL: QUERY}),
        "faulty.jsonl": json_lines(RECORD, *JSON_FAULTS) + f'{{"user": "{USER}", "query": "{QUERY}'.encode(),
        "nested.jsonl": json_lines({"user": {USER: 1}, "query": {QUERY: 1}, "time": {URL: 1}}),
        "list.json": json.dumps([USER, QUERY, {URL: QUERY}]).encode(),
        "ubi.ndjson": json_lines(*ubi),
        "bytes.csv": text([NAMES, ROW]) + USER.encode() + b"\xff\x00," + QUERY.encode() + b",\n",
        "utf16.csv": text([NAMES, ROW]).decode().encode("utf-16"),
        "plain.txt": f"{QUERY}\n{USER}\n".encode(),
        "cut.csv.gz": gzip.compress(text([NAMES, ROW] * 50))[:-20],
        "not-a-table.parquet": b"PAR1" + QUERY.encode() + USER.encode() + b"PAR1",
        "MyActivity.json": json.dumps([activity, USER]).encode(),
    }


TABLES: dict[str, Callable[[], pl.DataFrame]] = {
    "columns.parquet": lambda: pl.DataFrame({USER: [1], QUERY: [2], URL: [3]}),
    "types.parquet": lambda: pl.DataFrame({"user": [[USER]], "query": [{"a": QUERY}], "time": [URL]}),
    "times.parquet": lambda: pl.DataFrame({"user": [USER], "query": [QUERY], "time": [QUERY], "rank": [URL]}),
    "no-time.parquet": lambda: pl.DataFrame({"user": [USER], QUERY: [QUERY]}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("planted")
    for name, content in logs().items():
        (place / name).write_bytes(content)
    for name, make in TABLES.items():
        make().write_parquet(place / name)
    return place


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    """Work in the folder of the logs."""
    monkeypatch.chdir(folder)


#: Logs that are given in place of other files.
MISTAKEN = ("headless.csv", "keys.jsonl", "plain.txt", "columns.parquet")


def assert_clean(said: str) -> None:
    found = [mark for mark in MARKS if mark in said.lower()]
    assert not found, said


def asked_of(log: str) -> Iterator[tuple[str, ...]]:
    """Yield commands that read this log, as its kind of file and as every other kind of file that is read."""
    yield "protect", log, "-m", "rules", "-o", "out.csv", "--explain"
    yield "protect", log, "-m", "rules", "-o", "out.csv", "--strict"
    yield "protect", log, "-m", "cohort", "-s", "k=2", "-o", "out.jsonl", "--keep", "shelf"
    yield "protect", log, "-m", "rules", "-o", "out.parquet", "--map", "user=client", "--allow-bad"
    yield (
        "protect",
        log,
        "-m",
        "km",
        "-s",
        "k=2",
        "-o",
        "out.csv",
        "--marketing",
        log,
        "--allow-bad",
        "--explain",
    )
    yield "classify", log, "-o", "classified.csv"
    yield "measure", log, "--original", log
    yield "measure", "--own", log
    yield "verify", log, "--certificate", log
    yield "obfuscate", log, "-m", "usr", "-o", "covered.csv"
    yield "crowd", "simulate", "--log", log, "--edges", log


def other_uses(log: str) -> Iterator[tuple[str, ...]]:
    """Yield commands to which the log is given by mistake, in place of another file."""
    yield "attack", "good.csv", "--original", log, "--truth", log, "--certificate", log
    yield "protect", "good.csv", "-m", "rules", "-o", "out.csv", "--secret-file", log
    yield "protect", "good.csv", "-m", "rules", "-o", "out.csv", "--sign", log
    yield "protect", "good.csv", "-m", "rules", "-s", f"phrases={log}", "-o", "out.csv"
    yield "classify", "good.csv", "-o", "classified.csv", "--taxonomy", log
    yield "compare", "good.csv", "-m", "rules", "-o", "report", "--gate", log
    yield "assess", log, "--findings", log, "-o", "page.md"
    yield "verify", "--diff", log, log
    yield "serve", "--config", log
    yield "crowd", "peer", "--config", log


@pytest.mark.parametrize("log", [*logs(), *TABLES])
def test_no_command_shows_a_cell(log, caplog, monkeypatch):
    monkeypatch.setenv("QUERYCLOAK_DEBUG", "")
    caplog.set_level(logging.DEBUG)
    mistaken = (
        other_uses(log) if log in ("headless.csv", "keys.jsonl", "plain.txt", "columns.parquet") else ()
    )
    for asked in (*asked_of(log), *mistaken):
        found = CliRunner().invoke(main, asked)
        assert_clean(found.output + found.stderr + caplog.text)
        assert found.exit_code in (0, 2, 3, 4), (asked, found.output)
        for path in Path().glob("*.certificate*.json"):
            assert_clean(path.read_text())


def calls(log: Any) -> Iterator[Callable[[], Any]]:
    yield lambda: qc.protect(log, "rules")
    yield lambda: qc.protect(log, "rules", strict=True)
    yield lambda: qc.protect(log, "rules", mapping={"user": "client"})
    yield lambda: qc.protect(log, "rules", keep=["shelf"])
    yield lambda: qc.measure(log, log)
    yield lambda: qc.read(log)
    yield lambda: qc.compare(log, "rules")


class Table:
    """Something that is no log, and whose text is its content."""

    def __repr__(self) -> str:
        return f"{USER} {QUERY} {URL}"

    __str__ = __repr__


def wrong_logs() -> dict[str, Callable[[], Any]]:
    """Return what can be given in place of a log, with the secrets as content or as names of columns."""
    import pandas as pd
    import pyarrow as pa

    columns = {"user": [USER], "query": [QUERY], "time": [URL]}
    return {
        "table": Table,
        "list": lambda: [USER, QUERY],
        "dict": lambda: columns,
        "number": lambda: 4711,
        "none": lambda: None,
        "pandas": lambda: pd.DataFrame(columns),
        "pandas-columns": lambda: pd.DataFrame({USER: [QUERY], QUERY: [URL]}),
        "series": lambda: pl.Series(USER, [QUERY]),
        "arrow": lambda: pa.table(columns),
        "bytes": lambda: text([ROW]),
        "polars": lambda: pl.DataFrame(columns),
        "polars-columns": lambda: pl.DataFrame({USER: [QUERY], QUERY: [URL]}),
        "polars-types": lambda: pl.DataFrame({"user": [[USER]], "query": [[QUERY]], "time": [[URL]]}),
        "polars-objects": lambda: pl.DataFrame(
            {"user": pl.Series([Table()], dtype=pl.Object), "query": [QUERY], "time": [TIME]}
        ),
        "lazy": lambda: pl.LazyFrame(columns).with_columns(time=pl.col("query").str.to_datetime(strict=True)),
    }


@pytest.mark.parametrize("name", wrong_logs())
def test_no_exception_shows_a_cell_of_what_is_no_log(name):
    """The text of the whole chain of exceptions counts, as a traceback prints it; so do its causes."""
    for call in calls(wrong_logs()[name]()):
        error = raised_by(call)
        assert_clean(chain(error))
        assert error is None or isinstance(error, QueryCloakError), repr(type(error))


@pytest.mark.parametrize("name", [*logs(), *TABLES])
def test_no_exception_shows_a_cell_of_a_file(name):
    for call in calls(name):
        assert_clean(chain(raised_by(call)))


def raised_by(call: Callable[[], Any]) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def chain(error: BaseException | None) -> str:
    """Return the texts of an error and of all that a traceback would print with it."""
    said = []
    while error is not None:
        said.append(str(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(said)
