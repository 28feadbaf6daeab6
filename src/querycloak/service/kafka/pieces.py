"""Bytes of any size as messages of a compacted topic: cut, sealed, and bound to the place where they lie."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final

import msgspec

from querycloak.errors import DataError
from querycloak.service.wal import Cipher

#: Bytes of one message, sealed: below the limit that brokers and clients have when nobody sets one.
PIECE: Final = 900_000


class _Head(msgspec.Struct, array_like=True):
    """What stands under a name: the data itself or, if it is large, how many parts lie beside it."""

    mark: str
    parts: int
    data: bytes


class Pieces:
    """Writes and reads things by name in one partition of a topic.

    A large thing has its parts under `name/0`, `name/1`, … and a head under its name that lists them. All are
    sealed with the head's random mark, so parts of two versions never make one thing.
    """

    def __init__(self, cipher: Cipher, topic: str, partition: int) -> None:
        self._cipher, self._where = cipher, f"{topic}/{partition}"

    def cut(self, name: str, data: bytes) -> dict[str, bytes]:
        """Give the messages of a thing by their keys; the head comes last."""
        mark = secrets.token_hex(8)
        parts = [data[i : i + PIECE] for i in range(0, len(data), PIECE)] if len(data) > PIECE else []
        found = {
            f"{name}/{number}": self._cipher.seal(part, self._context(name, mark, number))
            for number, part in enumerate(parts)
        }
        head = msgspec.msgpack.encode(_Head(mark, len(parts), b"" if parts else data))
        return found | {name: self._cipher.seal(head, self._context(name))}

    def join(self, name: str, messages: Mapping[str, bytes]) -> bytes | None:
        """Put a thing together again; None if there is none of that name."""
        if name not in messages:
            return None
        opened = self._cipher.open(messages[name], self._context(name))
        head = msgspec.msgpack.decode(opened, type=_Head)  # it was sealed, so it is as it was written
        if not head.parts:
            return head.data
        keys = [f"{name}/{number}" for number in range(head.parts)]
        if not set(keys) <= set(messages):
            raise DataError(
                f"`{name}` in {self._where} is not whole",
                hint="is the topic compacted, and nothing else done to it?",
            )
        return b"".join(
            self._cipher.open(messages[key], self._context(name, head.mark, number))
            for number, key in enumerate(keys)
        )

    def _context(self, name: str, mark: str = "", number: int = -1) -> bytes:
        return f"{self._where} {name} {mark} {number}".encode()
