"""UBI documents: searches and clicks, with ranks as files are read."""

from __future__ import annotations

import json

import pytest

from querycloak.errors import DataError
from querycloak.service.ingest import ubi

KEY = b"k" * 32


def test_ubi_documents_are_sorted_out_like_lines():
    body = b'x\n{"client_id": "c", "user_query": "q"}\n[1]\n{"client_id": "\\ud800", "user_query": "q"}\n'
    found = ubi.queries(body, b"key", lines=True)
    assert {reason: rows.tolist() for reason, rows in found.bad.items()} == {
        "not JSON": [0, 2],
        "not UTF-8": [3],
    }
    assert (found.rows, found.size, len(found.records), found.join_ids) == ([1], 4, 1, [""])


@pytest.mark.parametrize(
    ("rank", "read"),
    [(2, 2), ("2", 2), (2.0, 2), ("2.0", 2), (2.5, None), ("two", None), (True, None), (10**30, None)],
)
def test_a_rank_is_read_as_in_files(rank, read):
    position = {"position": {"ordinal": rank}}
    event = {"action_name": "click", "query_id": "1", "event_attributes": position}
    frame, ignored = ubi.events(json.dumps(event).encode(), b"key", lines=False)
    assert (frame["rank"].to_list(), ignored) == ([read], 0)


def test_documents_are_read_out_of_their_envelopes():
    line = {
        "_source": {
            "client_id": "c",
            "user_query": "shoes",
            "query_id": "7",
            "timestamp": "2026-01-01T00:00:00Z",
        }
    }
    body = b'{"index": {}}\n' + json.dumps(line).encode() + b"\nnonsense\n"
    found = ubi.queries(body, KEY, lines=True)
    assert [(r.user, r.query) for r in found.records] == [("c", "shoes")]
    assert {reason: rows.tolist() for reason, rows in found.bad.items()} == {"not JSON": [1]}
    click = {
        "action_name": "click", "query_id": "7",
        "event_attributes": {"object": {"object_id": "sku-1"}, "position": {"ordinal": 4}},
    }  # fmt: skip
    other = {"action_name": "view", "query_id": "7"}
    frame, ignored = ubi.events(json.dumps([click, other]).encode(), KEY, lines=False)
    assert (frame.rows(), ignored) == ([(found.join_ids[0], 4, "sku-1")], 1)
    assert "7" not in found.join_ids


def test_a_body_without_any_document_is_refused():
    with pytest.raises(DataError):
        ubi.events(b"nonsense\n", KEY, lines=True)
    with pytest.raises(DataError):
        ubi.queries(b"nonsense", KEY, lines=False)
