"""What friends say to each other: one JSON object a line, checked field by field before anything believes it.

No message says who wrote a query, how far it has come, or when it began. A hop id is fresh and random for
every hop, so that a query cannot be followed by it. Lines are padded, so that their length tells little.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from querycloak.clients.crowd.doings import Accept, Answer, Ask, Refuse, Rejected, Return, Said

#: Friends of another version are refused.
VERSION: Final = 1
#: The longest line that is not an answer.
REQUEST_LIMIT: Final = 64 * 1024
#: The longest answer, in bytes. The same for all: who took longer ones could not hand them on.
ANSWER_LIMIT: Final = 1 << 20
#: The longest query, in characters.
LONGEST_QUERY: Final = 2048
#: Media types that answers may have: what a browser shows, and no more.
TYPES: Final = ("text/html", "text/plain", "application/json")
#: Lines are filled up with spaces to a multiple of this; answers to a multiple of the second.
BLOCK, ANSWER_BLOCK = 512, 4096
_HOP: Final = re.compile(r"[0-9a-f]{32}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Forged(Exception):
    """A line is not what a friend who follows the protocol would send."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The first line of both sides: the number of her friends is all that the protocol needs."""

    friends: int


def is_query(text: Any) -> bool:
    """Say whether something can be sent as a query: text of a sensible length, without control characters."""
    return isinstance(text, str) and 0 < len(text) <= LONGEST_QUERY and not _CONTROL.search(text)


def hello(friends: int) -> bytes:
    """Write the first line."""
    return _line({"kind": "hello", "version": VERSION, "friends": friends})


def encode(said: Said) -> bytes:
    """Write what is said to a friend."""
    match said:
        case Ask(hop=hop, text=text):
            return _line({"kind": "query", "hop": hop, "text": text})
        case Accept(hop=hop):
            return _line({"kind": "accepted", "hop": hop})
        case Refuse(hop=hop):
            return _line({"kind": "refused", "hop": hop})
        case Return(hop=hop, answer=Answer(type=kind, body=body)):
            content = base64.b64encode(body).decode()
            return _line({"kind": "answer", "hop": hop, "type": kind, "body": content}, ANSWER_BLOCK)
        case Return(hop=hop, answer=Rejected()):
            return _line({"kind": "rejected", "hop": hop})
    return _line({"kind": "gone", "hop": said.hop})


def _line(message: dict[str, Any], block: int = BLOCK) -> bytes:
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    return text + b" " * (-(len(text) + 1) % block) + b"\n"


#: The longest line: the largest answer, with the longest type.
LINE_LIMIT: Final = len(
    encode(Return(0, "0" * 32, Answer(max(TYPES, key=len), bytes(ANSWER_LIMIT)))),
)


def decode(line: bytes, friend: int) -> Hello | Said:
    """Read a line of a friend, or refuse it."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise Forged("not JSON") from None
    if not isinstance(message, dict):
        raise Forged("not an object")
    kind = message.pop("kind", None)
    if kind != "answer" and len(line) > REQUEST_LIMIT:
        raise Forged("too long")
    known = _FIELDS.get(kind) if isinstance(kind, str) else None
    if known is None or set(message) != set(known):
        raise Forged("unknown kind or fields")
    if not all(_CHECKS[name](message[name]) for name in known):
        raise Forged("a field has a value that it cannot have")
    return _read(str(kind), message, friend)


def _read(kind: str, message: dict[str, Any], friend: int) -> Hello | Said:
    if kind == "hello":
        return Hello(message["friends"])
    hop = message["hop"]
    if kind == "query":
        return Ask(friend, hop, message["text"])
    if kind == "accepted":
        return Accept(friend, hop)
    if kind == "refused":
        return Refuse(friend, hop)
    if kind in ("gone", "rejected"):
        return Return(friend, hop, Rejected() if kind == "rejected" else None)
    try:
        body = base64.b64decode(message["body"], validate=True)
    except ValueError:
        raise Forged("a body that is not base64") from None
    if len(body) > ANSWER_LIMIT:
        raise Forged("an answer that is too long")
    return Return(friend, hop, Answer(message["type"], body))


_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "hello": ("version", "friends"),
    "query": ("hop", "text"),
    "accepted": ("hop",),
    "refused": ("hop",),
    "gone": ("hop",),
    "rejected": ("hop",),
    "answer": ("hop", "type", "body"),
}
_CHECKS: Final[dict[str, Callable[[Any], bool]]] = {
    "version": lambda value: type(value) is int and value == VERSION,
    "friends": lambda value: type(value) is int and 1 <= value <= 10**6,
    "hop": lambda value: isinstance(value, str) and _HOP.fullmatch(value) is not None,
    "text": is_query,
    "type": lambda value: isinstance(value, str) and value in TYPES,
    "body": lambda value: isinstance(value, str),
}
