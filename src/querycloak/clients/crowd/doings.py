"""What a member does: her answers to what she is told, for somebody else to carry out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine said: a media type and a body."""

    type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Rejected:
    """The engine was there, but would not answer this query: asking again, or by others, changes nothing."""


#: What becomes of a query: an answer, the engine's no, or nothing, because nobody could ask the engine.
Found = Answer | Rejected | None


@dataclass(frozen=True, slots=True)
class Said:
    """Something that goes from one friend to the other; each hop of a query has an id of its own.

    For who says it, `friend` is who hears it, and the other way round.
    """

    friend: int
    hop: str


@dataclass(frozen=True, slots=True)
class Ask(Said):
    """Hand over a query."""

    text: str


class Accept(Said):
    """Say that a query is taken."""

    __slots__ = ()


class Refuse(Said):
    """Say that a query is not taken."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Return(Said):
    """Give what became of a query that was taken."""

    answer: Found


@dataclass(frozen=True, slots=True)
class Submit:
    """Send a query to the engine under one's own name."""

    job: int
    text: str


@dataclass(frozen=True, slots=True)
class Deliver:
    """Give the searcher the answer to her own query; without one, say that it failed."""

    job: int
    answer: Found


Doing = Said | Submit | Deliver
