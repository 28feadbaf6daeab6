"""Only lines that follow the protocol are accepted."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.clients import is_query
from querycloak.clients.crowd import messages
from querycloak.clients.crowd.messages import (
    Accepted,
    Answer,
    Gone,
    Hello,
    Page,
    Query,
    Refused,
    Rejected,
    Rejection,
)

HOP = "0123456789abcdef" * 2
texts = st.text(min_size=1, max_size=300).filter(is_query)
answers = st.builds(Answer, st.just(HOP), st.sampled_from(messages.MEDIA_TYPES), st.binary(max_size=5000))


@given(texts, answers)
def test_a_message_is_read_as_it_was_written(text, answer):
    for message in (
        Query(HOP, text),
        Accepted(HOP),
        Refused(HOP),
        Gone(HOP),
        Rejection(HOP),
        answer,
        Hello(1, 4),
    ):
        line = messages.encode(message)
        assert line.count(b"\n") == 1
        read = messages.decode(line)
        assert (type(read), read) == (type(message), message)


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (Hello(1, 4), {"kind": "hello", "version": 1, "friends": 4}),
        (Query(HOP, 'jäzz "oboe"'), {"kind": "query", "hop": HOP, "text": 'jäzz "oboe"'}),
        (Accepted(HOP), {"kind": "accepted", "hop": HOP}),
        (Refused(HOP), {"kind": "refused", "hop": HOP}),
        (Gone(HOP), {"kind": "gone", "hop": HOP}),
        (Rejection(HOP), {"kind": "rejected", "hop": HOP}),
        (
            Answer(HOP, "text/html", b"hi"),
            {"kind": "answer", "hop": HOP, "type": "text/html", "body": "aGk="},
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_the_json_on_the_wire_stays_as_it_is(message, fields):
    """Peers of different versions of this program talk to each other."""
    line = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    assert messages.encode(message).rstrip() == line


def test_a_result_goes_back_as_the_message_of_its_kind():
    assert messages.reply(HOP, Page("text/plain", b"x")) == Answer(HOP, "text/plain", b"x")
    assert messages.reply(HOP, Rejected()) == Rejection(HOP)
    assert messages.reply(HOP, None) == Gone(HOP)


@given(texts)
def test_lines_are_padded_and_contain_nothing_else(text):
    line = messages.encode(Query(HOP, text))
    assert len(line) % messages.BLOCK == 0
    assert set(json.loads(line)) == {"kind", "hop", "text"}


def test_short_lines_of_all_kinds_have_the_same_length():
    short = [Query(HOP, "a"), Query(HOP, "a" * 300), Accepted(HOP), Refused(HOP), Gone(HOP), Rejection(HOP)]
    assert {len(messages.encode(one)) for one in short} == {messages.BLOCK}


FORGED = [
    b"",
    b"not json",
    b"[1, 2]",
    b"null",
    b"\xff\xfe",
    b"[" * 60_000,
    b'{"kind": ["query"]}',
    b'{"kind": "unheard of"}',
    b'{"kind": "hello", "version": 2, "friends": 2}',
    b'{"kind": "hello", "version": true, "friends": 2}',
    b'{"kind": "hello", "version": 1, "friends": 0}',
    b'{"kind": "hello", "version": 1, "friends": 1e3}',
    b'{"kind": "hello", "version": 1, "friends": ' + b"9" * 5000 + b"}",
    b'{"kind": "accepted"}',
    b'{"kind": "accepted", "hop": 5}',
    b'{"kind": "accepted", "hop": "ABCDEFABCDEFABCDEFABCDEFABCDEFAB"}',
    b'{"kind": "accepted", "hop": "%s\\n"}' % HOP.encode(),
    b'{"kind": "query", "hop": "%s", "text": ""}' % HOP.encode(),
    b'{"kind": "query", "hop": "%s", "text": 5}' % HOP.encode(),
    b'{"kind": "query", "hop": "%s", "text": "a\\u0000b"}' % HOP.encode(),
    b'{"kind": "query", "hop": "%s", "text": "a\\r\\nb"}' % HOP.encode(),
    b'{"kind": "query", "hop": "%s", "text": "\\ud800"}' % HOP.encode(),
    b'{"kind": "query", "hop": "%s", "text": "oboe", "author": 3}' % HOP.encode(),
    b'{"kind": "query", "hop": "%s", "text": "%s"}' % (HOP.encode(), b"x" * 2049),
    b'{"kind": "accepted", "hop": "%s"}' % HOP.encode() + b" " * messages.REQUEST_LIMIT,
    b'{"kind": "answer", "hop": "%s", "type": "image/png", "body": ""}' % HOP.encode(),
    b'{"kind": "answer", "hop": "%s", "type": "text/html", "body": "?"}' % HOP.encode(),
    b'{"kind": "answer", "hop": "%s", "type": "text/html", "body": null}' % HOP.encode(),
]


@pytest.mark.parametrize("line", FORGED, ids=lambda line: line[:60].decode("latin-1"))
def test_forged_lines_are_refused(line):
    with pytest.raises(messages.ProtocolError):
        messages.decode(line + b"\n")


anything = st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda x: json.dumps(x).encode())


@given(st.binary(max_size=200) | anything)
def test_no_line_does_anything_but_be_refused(line):
    with pytest.raises(messages.ProtocolError):
        messages.decode(line)


@pytest.mark.parametrize("kind", messages.MEDIA_TYPES)
def test_every_accepted_answer_can_be_forwarded(kind):
    """Otherwise a friend that pads its answer could have the member that forwards it disconnected."""
    largest = Answer(HOP, kind, b"x" * messages.ANSWER_LIMIT)
    line = messages.encode(largest)
    assert len(line) <= messages.LINE_LIMIT
    assert len(line) % messages.ANSWER_BLOCK == messages.LINE_LIMIT % messages.ANSWER_BLOCK == 0
    assert messages.decode(line) == largest
    for more in (1, 2, 3):
        body = base64.b64encode(b"x" * (messages.ANSWER_LIMIT + more)).decode()
        packed = json.dumps({"kind": "answer", "hop": HOP, "type": kind, "body": body}, separators=(",", ":"))
        assert len(packed) < messages.LINE_LIMIT  # so that the length of the line does not reveal it
        with pytest.raises(messages.ProtocolError):
            messages.decode(packed.encode() + b"\n")
