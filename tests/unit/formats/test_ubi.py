"""OpenSearch UBI: joined on query_id, which no release ever carries."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from querycloak import formats
from querycloak.errors import DataError, Refused, UsageError

QUERIES = [
    {
        "query_id": "q-a",
        "client_id": "c-1",
        "user_query": "red kettle",
        "timestamp": "2024-03-01T07:17:12.5Z",
        "application": "shop",
        "query": "{secret dsl}",
        "query_attributes": {"page": 1},
    },
    {
        "query_id": "q-b",
        "client_id": "c-2",
        "user_query": "blue\tkettle",
        "timestamp": "2024-03-01T07:18:00.0Z",
    },
    {"query_id": "q-c", "client_id": "c-3", "user_query": "", "timestamp": "2024-03-01T07:18:00.0Z"},
]


def click(query_id: str, url: str, rank: Any, action: str = "click") -> dict[str, Any]:
    attributes = {"object": {"object_id": url}, "position": {"ordinal": rank}}
    return {
        "action_name": action,
        "query_id": query_id,
        "session_id": "s-1",
        "client_id": "c-1",
        "user_id": "login-1",
        "message": "hello",
        "timestamp": "2024-03-01T07:17:20Z",
        "event_attributes": attributes,
    }


EVENTS = [
    click("q-a", "sku-1", 1),
    click("q-a", "sku-9", 4),
    click("q-a", "sku-2", 2, "hover"),
    click("q-b", "sku-3", "x"),
]


def dump(folder: Path, queries: list[Any], events: list[Any]) -> Path:
    folder.mkdir()
    for name, lines in (("queries", queries), ("events", events)):
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        (folder / f"ubi_{name}.ndjson").write_text(text)
    return folder


def test_one_row_for_each_click_and_for_each_query_without(tmp_path: Path) -> None:
    log = formats.read(dump(tmp_path / "in", QUERIES, EVENTS))
    assert log.layout.format == "ubi"
    assert log.frame.select("row", "user", "query", "rank", "url").rows() == [
        (0, "c-1", "red kettle", 1, "sku-1"),
        (1, "c-1", "red kettle", 4, "sku-9"),
    ]
    assert log.rows_read == 4
    assert log.skipped.first_rows == {"unreadable rank": [2], "no query": [3]}
    assert {"query_id", "query", "query_attributes", "session_id", "message", "application"} <= {
        *log.dropped_columns
    }


def test_a_release_has_new_ids_and_nothing_of_the_old(tmp_path: Path) -> None:
    log = formats.read(dump(tmp_path / "in", QUERIES, EVENTS))
    formats.write(
        log.with_frame(log.frame.with_columns(user=formats.read(tmp_path / "in").frame["rank"].cast(str))),
        tmp_path / "out/",
    )
    text = "".join(part.read_text() for part in sorted((tmp_path / "out").iterdir()))
    for secret in ("q-a", "c-1", "s-1", "hello", "secret dsl", "application", "session_id", "login-1"):
        assert secret not in text
    first = json.loads((tmp_path / "out/ubi_queries.ndjson").read_text().splitlines()[0])
    assert first == {
        "query_id": "1",
        "client_id": "1",
        "user_query": "red kettle",
        "timestamp": "2024-03-01T07:17:12.5Z",
    }


@pytest.mark.parametrize("size", [1, 2, 5])
def test_clicks_of_one_search_share_its_query(tmp_path: Path, size: int) -> None:
    log = formats.read(dump(tmp_path / "in", QUERIES[:1], EVENTS[:2]))
    with formats.Writer(tmp_path / "out", log.layout) as writer:
        for piece in log.frame.iter_slices(size):
            writer.write(piece)
        writer.commit()
    assert len((tmp_path / "out/ubi_queries.ndjson").read_text().splitlines()) == 1
    assert formats.read(tmp_path / "out").frame.equals(log.frame)


def test_envelopes_and_separate_files(tmp_path: Path) -> None:
    hits = [{"_index": "ubi_queries", "_id": "1", "_source": QUERIES[0]}]
    bulk = [line for event in EVENTS[:2] for line in ({"index": {"_id": "7"}}, event)]
    folder = dump(tmp_path / "in", hits, bulk)
    plain = formats.read(dump(tmp_path / "plain", QUERIES[:1], EVENTS[:2]))
    assert formats.read(folder).frame.equals(plain.frame)
    named = formats.read(folder / "ubi_queries.ndjson", events=folder / "ubi_events.ndjson")
    assert named.frame.equals(plain.frame)
    assert named.rows_read == 2
    assert formats.read(folder / "ubi_queries.ndjson").frame["url"].to_list() == [None]


def test_the_user_may_be_in_the_events(tmp_path: Path) -> None:
    log = formats.read(dump(tmp_path / "in", QUERIES[:1], EVENTS[:2]), mapping={"user": "user_id"})
    assert log.frame["user"].to_list() == ["login-1", "login-1"]
    with pytest.raises(DataError, match="no column `client_id`"):
        formats.read(dump(tmp_path / "none", [{"query_id": "1", "user_query": "a"}], []))


def test_broken_and_orphaned_events_are_counted_after_the_queries(tmp_path: Path) -> None:
    folder = dump(tmp_path / "in", [QUERIES[0], "{"], ["oops", click("q-z", "sku", 1), EVENTS[0]])
    log = formats.read(folder)
    assert log.rows_read == 4
    assert log.skipped.first_rows == {"not JSON": [1, 2], "click without its query": [3]}
    pieces = list(formats.pieces(folder, rows=1))
    assert [piece.rows_read for piece in pieces] == [1, 1, 1, 1]
    assert [piece.skipped.total for piece in pieces] == [0, 1, 1, 1]


@pytest.mark.parametrize("name", ["query_id", "session_id", "client_id", "message", "query_attributes.page"])
def test_identity_cannot_be_kept(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match=f"`{name}` is never passed on"):
        formats.read(dump(tmp_path / "in", QUERIES, EVENTS), keep=[name])


def test_other_fields_can_be_kept(tmp_path: Path) -> None:
    log = formats.read(dump(tmp_path / "in", QUERIES[:2], EVENTS[:2]), keep=["application"])
    assert log.frame["application"].to_list() == ["shop", "shop", None]
    formats.write(log, tmp_path / "out/")
    assert formats.read(tmp_path / "out", keep=["application"]).frame.equals(log.frame)


def test_a_folder_must_be_a_dump(tmp_path: Path, small: Any) -> None:
    with pytest.raises(UsageError, match=r"without `ubi_queries\.ndjson`"):
        formats.read(tmp_path)
    (tmp_path / "other.txt").write_text("keep me")
    with pytest.raises(UsageError, match="holds other files"):
        formats.Writer(tmp_path, formats.Layout.default("ubi"))
    with pytest.raises(UsageError, match="standard output"):
        formats.Writer("-", formats.Layout.default("ubi"))
    assert (tmp_path / "other.txt").read_text() == "keep me"


@pytest.mark.parametrize("name", ["ubi_notes.txt", "ubi_queries_original.ndjson"])
def test_no_file_of_anybody_else_is_deleted(tmp_path: Path, small: pl.DataFrame, name: str) -> None:
    out = tmp_path / "out"
    formats.write(small, out, formats.Layout.default("ubi"))
    (out / name).write_text("keep me")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(UsageError, match="holds other files"):
        formats.write(small.head(1), out, formats.Layout.default("ubi"))
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_an_earlier_dump_is_kept_beside_the_new_one(tmp_path: Path, small: pl.DataFrame) -> None:
    out = tmp_path / "out"
    formats.write(small, out, formats.Layout.default("ubi", compression="gz"))
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    formats.write(small.head(1), out, formats.Layout.default("ubi"))
    assert sorted(path.name for path in out.iterdir()) == ["ubi_events.ndjson", "ubi_queries.ndjson"]
    (aside,) = tmp_path.glob("out.replaced-*")
    assert {path.name: path.read_bytes() for path in aside.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name, aside.name]


def test_a_crash_never_leaves_files_of_two_dumps_in_one_folder(
    tmp_path: Path, small: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop before each rename in turn; each folder that is left holds one whole dump, under any name."""
    dumps = {}
    for name, rows in {"old": small, "new": small.head(1)}.items():
        formats.write(rows, tmp_path / name, formats.Layout.default("ubi"))
        dumps[name] = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
    renames = ("rename", "replace")

    class Crash(BaseException):
        pass

    for stop in range(1, 6):
        folder = tmp_path / f"crash{stop}"
        folder.mkdir()
        formats.write(small, folder / "out", formats.Layout.default("ubi"))
        left = [stop]

        def counted(real: Any, left: list[int] = left) -> Any:
            def call(*given: Any, **more: Any) -> Any:
                left[0] -= 1
                if not left[0]:
                    raise Crash
                return real(*given, **more)

            return call

        with monkeypatch.context() as patched:
            for rename in renames:
                patched.setattr(os, rename, counted(getattr(os, rename)))
            patched.setattr(
                formats.AtomicFolder, "discard", lambda self: [f._file.close() for f in self._files.values()]
            )
            try:
                formats.write(small.head(1), folder / "out", formats.Layout.default("ubi"))
            except Crash:
                assert stop < 5
        whole = [{p.name: p.read_bytes() for p in path.iterdir()} for path in folder.glob("[!.]*")]
        assert whole
        assert all(found in dumps.values() for found in whole)
        assert dumps["old"] in whole  # never lost
