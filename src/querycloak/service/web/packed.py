"""Unpacks gzip as it comes, without ever holding more than the stated limit."""

from __future__ import annotations

import zlib
from typing import Final

from querycloak.errors import DataError, TooLarge

_GZIP: Final = 16 + zlib.MAX_WBITS
#: Parts that one body may be packed in; each costs time even when nothing comes out of it.
_MEMBERS: Final = 1000


def too_large(most: int) -> TooLarge:
    """Make the error for a body that is larger than allowed."""
    return TooLarge(f"the body has more than {most:,} bytes", hint="send several smaller ones")


class Unpacking:
    """One body: any number of gzip members behind each other, and nothing else."""

    def __init__(self, most: int) -> None:
        self._most, self._size, self._members = most, 0, 0
        self._member = zlib.decompressobj(_GZIP)
        self._begun = False

    def feed(self, chunk: bytes) -> bytes:
        """Unpack what came; a bomb is refused before it is let out."""
        parts = []
        while chunk:
            if self._member.eof:
                self._next_member()
            self._begun = True
            parts.append(self._unpack(chunk))
            chunk = self._member.unused_data
        return b"".join(parts)

    def _unpack(self, chunk: bytes) -> bytes:
        try:
            part = self._member.decompress(chunk, self._most - self._size + 1)
        except zlib.error:
            raise DataError("the body is not gzip, although it says so") from None
        self._size += len(part)
        if self._size > self._most or self._member.unconsumed_tail:
            raise too_large(self._most)
        return part

    def _next_member(self) -> None:
        self._members += 1
        if self._members >= _MEMBERS:
            raise TooLarge("the body is packed in too many parts", hint="pack it in one")
        self._member = zlib.decompressobj(_GZIP)

    def end(self) -> None:
        """See that the body was complete; a part of it would be taken for the whole."""
        if self._begun and not self._member.eof:
            raise DataError("the packed body ends too early")
