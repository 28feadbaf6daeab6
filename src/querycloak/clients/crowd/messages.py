"""Messages, events and actions of the crowd protocol, and the codec of messages: one JSON object a line.

No message contains the author of a query, the number of hops or a time. A hop id is fresh and random on
every hop, so that a query cannot be followed by it. Lines are padded, so that their length reveals little.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from querycloak.clients import MAX_QUERY, QUERY_PATTERN

#: Friends with another version are refused.
VERSION: Final = 1
#: The longest line that is not an answer, in bytes.
REQUEST_LIMIT: Final = 64 * 1024
#: The longest answer, in bytes; the same for all members, so that every accepted answer can be forwarded.
ANSWER_LIMIT: Final = 1 << 20
#: Lines are padded with spaces to a multiple of this length; answers to a multiple of the second.
BLOCK, ANSWER_BLOCK = 512, 4096

MediaType = Literal["text/html", "text/plain", "application/json"]
#: Media types that an answer can have: those that a browser displays.
MEDIA_TYPES: Final[tuple[MediaType, ...]] = get_args(MediaType)
Hop = Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
QueryText = Annotated[str, Meta(max_length=MAX_QUERY, pattern=QUERY_PATTERN)]


class ProtocolError(Exception):
    """A line that does not follow the protocol."""


class Hello(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="hello"):
    """First line of both sides: version, and the number of friends that the sender has."""

    version: Literal[1]
    friends: Annotated[int, Meta(ge=1, le=10**6)]


class Message(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """A message between two friends; `hop` identifies one hop of one query."""

    hop: Hop


class Query(Message, frozen=True, tag="query"):
    """Request to submit or forward a query."""

    text: QueryText


class Accepted(Message, frozen=True, tag="accepted"):
    """The query is accepted; an answer follows."""


class Refused(Message, frozen=True, tag="refused"):
    """The query is not accepted."""


class Answer(Message, frozen=True, tag="answer"):
    """The engine's page for an accepted query."""

    type: MediaType
    body: Annotated[bytes, Meta(max_length=ANSWER_LIMIT)]


class Rejection(Message, frozen=True, tag="rejected"):
    """The engine rejected the query."""


class Gone(Message, frozen=True, tag="gone"):
    """No answer could be obtained."""


class Page(Struct, frozen=True):
    """A page of the search engine."""

    type: MediaType
    body: bytes


class Rejected(Struct, frozen=True):
    """The engine was reached and rejected the query: another attempt would not change that."""


#: Result of a query: a page, the engine's rejection, or None if the engine could not be reached.
EngineResult = Page | Rejected | None


# events: what happens to a member


class LocalQuery(Struct, frozen=True):
    """The local user searches; `number` returns with `DeliverToUser`."""

    number: int
    text: str


class Inbound(Struct, frozen=True):
    """A message of a friend; `friend` is the friend's local number."""

    friend: int
    message: Message


class EngineReply(Struct, frozen=True):
    """Result of a `SubmitToEngine`."""

    job: int
    result: EngineResult


class FriendConnected(Struct, frozen=True):
    """A friend is connected and has this number of friends, by its own statement."""

    friend: int
    friends: int


class FriendLost(Struct, frozen=True):
    """The connection to a friend has ended."""

    friend: int


class TimerFired(Struct, frozen=True):
    """The time of `Member.next_timer` has come."""


Event = LocalQuery | Inbound | EngineReply | FriendConnected | FriendLost | TimerFired


# actions: what a driver does for a member


class Send(Struct, frozen=True):
    """Send a message to a friend."""

    friend: int
    message: Message


class SubmitToEngine(Struct, frozen=True):
    """Submit a query to the search engine from this machine."""

    job: int
    text: str


class DeliverToUser(Struct, frozen=True):
    """Return the result of a local query to the user."""

    number: int
    result: EngineResult


Action = Send | SubmitToEngine | DeliverToUser


_LINES: Final = msgspec.json.Decoder(Hello | Query | Accepted | Refused | Answer | Rejection | Gone)


def reply(hop: str, result: EngineResult) -> Message:
    """Return the message that carries a result back over a hop."""
    if isinstance(result, Page):
        return Answer(hop, result.type, result.body)
    return Gone(hop) if result is None else Rejection(hop)


def encode(message: Hello | Message) -> bytes:
    """Return the padded line of a message."""
    text = msgspec.json.encode(message)
    block = ANSWER_BLOCK if isinstance(message, Answer) else BLOCK
    return text + b" " * (-(len(text) + 1) % block) + b"\n"


#: The longest line: the largest answer with the longest type.
LINE_LIMIT: Final = len(encode(Answer("0" * 32, max(MEDIA_TYPES, key=len), bytes(ANSWER_LIMIT))))


def decode(line: bytes) -> Hello | Message:
    """Parse a line of a friend; raise ProtocolError if it does not follow the protocol."""
    try:
        message: Hello | Message = _LINES.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):  # the reason may quote the line
        raise ProtocolError("not a message of the protocol") from None
    if len(line) > REQUEST_LIMIT and not isinstance(message, Answer):
        raise ProtocolError("longer than a message may be")
    return message
