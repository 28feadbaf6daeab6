"""Only what a friend who follows the protocol would send is believed."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.clients.crowd import wire
from querycloak.clients.crowd.doings import Accept, Answer, Ask, Refuse, Rejected, Return

HOP = "0123456789abcdef" * 2
texts = st.text(min_size=1, max_size=300).filter(wire.is_query)
answers = st.builds(Answer, st.sampled_from(wire.TYPES), st.binary(max_size=5000))


@given(texts, answers)
def test_what_is_written_is_read(text, answer):
    for said in (
        Ask(1, HOP, text),
        Accept(1, HOP),
        Refuse(1, HOP),
        Return(1, HOP, None),
        Return(1, HOP, Rejected()),
        Return(1, HOP, answer),
    ):
        line = wire.encode(said)
        assert line.count(b"\n") == 1
        heard = wire.decode(line, 1)
        assert (type(heard), heard) == (type(said), said)
        assert wire.decode(line, 2).friend == 2
    assert wire.decode(wire.hello(4), 1) == wire.Hello(4)


@given(texts)
def test_length_tells_little_and_nothing_else_is_said(text):
    line = wire.encode(Ask(7, HOP, text))
    assert len(line) % wire.BLOCK == 0
    assert set(json.loads(line)) == {"kind", "hop", "text"}


def test_short_lines_of_all_kinds_look_alike():
    said = [Ask(1, HOP, "a"), Ask(1, HOP, "a" * 300), Accept(1, HOP), Refuse(1, HOP), Return(1, HOP, None)]
    said.append(Return(1, HOP, Rejected()))
    assert {len(wire.encode(one)) for one in said} == {wire.BLOCK}


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
    b'{"kind": "accepted", "hop": "%s"}' % HOP.encode() + b" " * wire.REQUEST_LIMIT,
    b'{"kind": "answer", "hop": "%s", "type": "image/png", "body": ""}' % HOP.encode(),
    b'{"kind": "answer", "hop": "%s", "type": "text/html", "body": "?"}' % HOP.encode(),
    b'{"kind": "answer", "hop": "%s", "type": "text/html", "body": null}' % HOP.encode(),
]


@pytest.mark.parametrize("line", FORGED, ids=lambda line: line[:60].decode("latin-1"))
def test_forged_lines_are_refused(line):
    with pytest.raises(wire.Forged):
        wire.decode(line + b"\n", 1)


anything = st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda x: json.dumps(x).encode())


@given(st.binary(max_size=200) | anything)
def test_no_line_does_anything_but_be_refused(line):
    with pytest.raises(wire.Forged):
        wire.decode(line, 1)


@pytest.mark.parametrize("kind", wire.TYPES)
def test_whatever_answer_is_taken_can_be_handed_on(kind):
    """Else a friend who pads her answer could have whoever hands it on cut off by the next one."""
    largest = Answer(kind, b"x" * wire.ANSWER_LIMIT)
    line = wire.encode(Return(1, HOP, largest))
    assert len(line) <= wire.LINE_LIMIT
    assert len(line) % wire.ANSWER_BLOCK == wire.LINE_LIMIT % wire.ANSWER_BLOCK == 0
    assert wire.decode(line, 1).answer == largest
    for more in (1, 2, 3):
        body = base64.b64encode(b"x" * (wire.ANSWER_LIMIT + more)).decode()
        packed = json.dumps({"kind": "answer", "hop": HOP, "type": kind, "body": body}, separators=(",", ":"))
        assert len(packed) < wire.LINE_LIMIT  # so that the line alone does not tell
        with pytest.raises(wire.Forged, match="too long"):
            wire.decode(packed.encode() + b"\n", 1)
