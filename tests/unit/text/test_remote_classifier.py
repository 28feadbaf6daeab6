"""The operator's own classifier over HTTP, against a small server on this machine."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import polars as pl
import pytest

from querycloak.errors import DataError, ParameterError
from querycloak.text import remote_classifier as remote
from querycloak.text.classifier import Evidence
from querycloak.text.classify import classify_log
from querycloak.text.remote_classifier import RemoteClassifier
from querycloak.text.taxonomy import build

from .small_taxonomy import lexicon_of

SECRET = "planted secret query"


def tree():
    return build([-1, 0, 1], ["", "Sports", "Golf"], lexicon_of([]))


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        self.server.asked.append(asked)
        status, body = self.server.answer(asked)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    running = HTTPServer(("127.0.0.1", 0), Handler)
    running.asked = []
    running.answer = lambda asked: (200, json.dumps({"categories": ["Sports/Golf" for _ in asked]}).encode())
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def classifier(server, **settings):
    return RemoteClassifier(tree(), url=f"http://127.0.0.1:{server.server_port}/", timeout=5, **settings)


def test_each_distinct_query_is_sent_once_in_batches(server):
    queries = [f"query {i % 2500}" for i in range(5000)]
    answer = classifier(server).classify(pl.Series(queries))
    assert [len(asked) for asked in server.asked] == [1000, 1000, 500]
    assert set(answer.category.tolist()) == {2}
    assert set(answer.evidence.tolist()) == {Evidence.REMOTE}


def test_unknown_paths_fall_back_to_what_the_taxonomy_has(server):
    paths = ["Sports/Golf/Masters", "Sports/Chess", "Nonsense", None, 7, ""]
    server.answer = lambda asked: (200, json.dumps({"categories": paths}).encode())
    answer = classifier(server).classify(pl.Series(list("abcdef")))
    assert answer.category.tolist() == [2, 1, -1, -1, -1, -1]
    assert answer.confidence.tolist() == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "reply",
    [
        (500, b"planted secret query"),
        (302, b""),
        (200, b"not json planted secret query"),
        (200, b'{"other": []}'),
        (200, b"[]"),
        (200, b'{"categories": []}'),
        (200, b'{"categories": "Sports"}'),
    ],
)
def test_a_bad_answer_is_an_error_that_tells_no_query(server, reply):
    server.answer = lambda asked: reply
    with pytest.raises(DataError) as caught:
        classifier(server).classify(pl.Series([SECRET]))
    assert SECRET not in str(caught.value)


def test_an_endless_answer_is_cut_off(server, monkeypatch):
    monkeypatch.setattr(remote, "LARGEST_ANSWER", 10)
    with pytest.raises(DataError, match="larger than 10 bytes"):
        classifier(server).classify(pl.Series([SECRET]))


def test_nobody_there_is_an_error_without_the_query(server):
    port = server.server_port
    server.shutdown()
    server.server_close()
    with pytest.raises(DataError) as caught:
        RemoteClassifier(tree(), url=f"http://127.0.0.1:{port}/", timeout=1).classify(pl.Series([SECRET]))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "ftp://x/", "http://", "example"])
def test_only_web_addresses_are_taken(url):
    with pytest.raises(ParameterError, match="http"):
        RemoteClassifier(tree(), url=url)


def test_a_timeout_must_be_positive():
    with pytest.raises(ParameterError, match="timeout"):
        RemoteClassifier(tree(), url="http://127.0.0.1/", timeout=0)


def test_a_log_is_classified_by_it(server):
    import polars as pl

    log = pl.DataFrame({"query": ["putter", None, "putter"], "url": ["http://x", None, None]})
    done = classify_log(log, classifier(server))
    assert done["category"].to_list() == ["Sports/Golf", None, "Sports/Golf"]
    assert server.asked == [["putter"]]
