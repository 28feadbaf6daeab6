"""Looks on while records come and leave: what a stream tells, in the worker's thread and in exact order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from querycloak.service.stream import Output, Stream


class Onlooker:
    """Is told everything and does nothing; whoever wants to know more overrides what it needs."""

    def came(self, stream: Stream, rows: pl.DataFrame) -> None:
        """Records with their `row` and `_head` come in; those before are all dealt with."""

    def left(self, output: Output) -> None:
        """Records leave, with the truth about them."""

    def erased(self, stream: Stream, name: str) -> None:
        """Somebody is forgotten."""

    def turned(self, stream: Stream) -> None:
        """Nobody who came before is known any more: a new epoch."""

    def changed(self, stream: Stream) -> None:
        """A setting has just been changed."""
