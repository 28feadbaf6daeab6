"""Connections: a response that the client does not read is aborted."""

from __future__ import annotations

import math
from typing import Any

import pytest

from querycloak.service.web.connection_limits import LimitedConnection


class _Clogged:
    """A transport whose other side takes so much of an answer between two looks."""

    def __init__(self, unsent: int, taken: int) -> None:
        self.unsent, self.taken, self.ended = unsent, taken, ""

    def get_write_buffer_size(self) -> int:
        self.unsent = max(0, self.unsent - self.taken)
        return self.unsent

    def is_closing(self) -> bool:
        return bool(self.ended)

    def abort(self) -> None:
        self.ended = "cut"

    def close(self) -> None:
        self.ended = "closed"


class _Clock:
    """A loop that knows one timer, which has always run out."""

    looks = 0

    def call_later(self, seconds: float, again: Any) -> None:
        self.looks += 1
        again()


@pytest.mark.parametrize(
    ("unsent", "taken", "looks", "ended"),
    [(0, 0, 0, "closed"), (1000, 100, 9, "closed"), (1000, 0, 1, "cut")],
    ids=["idle", "slow", "stuck"],
)
def test_an_answer_that_nobody_takes_is_cut(unsent: int, taken: int, looks: int, ended: str) -> None:
    connection = object.__new__(LimitedConnection)
    connection.transport, connection.loop = _Clogged(unsent, taken), _Clock()  # type: ignore[assignment]
    connection.timeout_keep_alive, connection._unsent = 15, math.inf
    connection.timeout_keep_alive_handler()
    assert (connection.loop.looks, connection.transport.ended) == (looks, ended)  # type: ignore[attr-defined]
