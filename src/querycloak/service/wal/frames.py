"""The bytes of a file of frames; pure, nothing here touches a disk.

    header   magic 8 | version 2 | flags 2 | first number 8 | salt 16 | key check 8 | checksum 4
    frame    marker 4 | checksum 4 | length 4 | kind 4 | number 8 | start 8 | payload

Numbers are little-endian. `marker` and the start value of the checksum come from the file's random salt:
nobody who only sends payloads can make one that looks like a frame.

`start` is the byte up to which the file was known to be durable when the frame was written. So a whole frame
is a witness: what lies before its `start` was on the disk; if it cannot be read now, that is damage and no
torn write. A mark is a frame without payload, written after a sync: it vouches for the write before it.

The checksum is CRC-32 (zlib): it finds every flipped bit and every burst of 32 bits, and costs little. It is
for accidents only. Against a forger, encrypt: then a GCM tag covers each payload and its number.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

_HEADER: Final = struct.Struct("<8sHHQ16s8s")
_CHECKSUM: Final = struct.Struct("<I")
_REST: Final = struct.Struct("<IIQQ")
_VERSION: Final = 1
HEADER_BYTES: Final = _HEADER.size + _CHECKSUM.size
FRAME_BYTES: Final = 4 + _CHECKSUM.size + _REST.size
#: An entry of a whole request must fit: as columns it is several times as large as its body.
LARGEST_PAYLOAD: Final = 512 << 20
_LARGEST_STORED: Final = LARGEST_PAYLOAD + 16  # a GCM tag is added
NO_KEY: Final = bytes(8)


class Kind(IntEnum):
    """What a frame is."""

    ENTRY = 1
    #: A mark: all frames before it are durable.
    SEALED = 2
    #: A mark: all frames before it are durable, and the next file exists.
    CONTINUED = 3


@dataclass(frozen=True)
class Header:
    """How a file begins: whose it is, the number of its first frame, and what its keys are made from."""

    magic: bytes
    first: int
    salt: bytes
    #: Tells a wrong key at once; `NO_KEY` where payloads are plain.
    key_check: bytes = NO_KEY

    def pack(self) -> bytes:
        """Write it down."""
        flags = int(self.key_check != NO_KEY)
        body = _HEADER.pack(self.magic, _VERSION, flags, self.first, self.salt, self.key_check)
        return body + _CHECKSUM.pack(zlib.crc32(body))

    @classmethod
    def unpack(cls, data: bytes, magic: bytes) -> Header | None:
        """Read it again; None if a bit of it is wrong."""
        body, checksum = data[: _HEADER.size], data[_HEADER.size : HEADER_BYTES]
        if len(checksum) != _CHECKSUM.size or checksum != _CHECKSUM.pack(zlib.crc32(body)):
            return None
        found, version, flags, first, salt, key_check = _HEADER.unpack(body)
        if found != magic or version != _VERSION or flags != (key_check != NO_KEY):
            return None
        return cls(magic, first, salt, key_check)


@dataclass(frozen=True)
class Head:
    """The fixed part of a frame, not yet checked against its payload."""

    checksum: int
    length: int
    kind: int
    number: int
    start: int


class Coder:
    """Writes and reads the frames of one file."""

    def __init__(self, salt: bytes) -> None:
        self.marker = hashlib.blake2b(salt, digest_size=4, person=b"frame marker").digest()
        self._seed = zlib.crc32(salt)

    def pack(self, kind: Kind, number: int, start: int, payload: bytes = b"") -> bytes:
        """Write the fixed part of a frame; the payload goes right behind it."""
        rest = _REST.pack(len(payload), kind, number, start)
        return self.marker + _CHECKSUM.pack(zlib.crc32(payload, zlib.crc32(rest, self._seed))) + rest

    def head(self, data: bytes | memoryview) -> Head | None:
        """Read the fixed part of a frame; None if this is none."""
        if len(data) < FRAME_BYTES or data[:4] != self.marker:
            return None
        head = Head(*_CHECKSUM.unpack(data[4:8]), *_REST.unpack(data[8:FRAME_BYTES]))
        return head if head.length <= _LARGEST_STORED else None

    def fits(self, head: Head, payload: bytes | memoryview) -> bool:
        """Whether the checksum of fixed part and payload is right."""
        rest = _REST.pack(head.length, head.kind, head.number, head.start)
        return (
            len(payload) == head.length and zlib.crc32(payload, zlib.crc32(rest, self._seed)) == head.checksum
        )

    def was_durable(self, tail: bytes, at: int) -> bool:
        """Look for a witness in what follows a bad frame: a whole frame that was written when it was durable.

        `tail` begins with the bad frame, at byte `at` of the file. A torn write can leave whole frames behind
        a bad one, since a disk writes pages in any order; but those of the same write do not vouch for it.
        """
        view, place = memoryview(tail), tail.find(self.marker, 1)
        while place >= 0:
            head = self.head(view[place : place + FRAME_BYTES])
            begin = place + FRAME_BYTES
            if head and at < head.start <= at + place and self.fits(head, view[begin : begin + head.length]):
                return True
            place = tail.find(self.marker, place + 1)
        return False
