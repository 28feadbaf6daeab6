"""State that only the key's owner can read: AES-256-GCM, with a key of its own for each file.

GCM fails when one key meets one nonce twice. So no nonce is ever drawn or remembered: each file, and each
piece, has 16 fresh random bytes (its salt) from which its key is derived, and within a file the nonce is the
frame's number. A file is written once, from front to back: after a cut or a restart the journal goes on in
another file.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any, Final

from querycloak.errors import DataError, MissingExtra, UsageError
from querycloak.keys import Secret, derive

SALT_BYTES: Final = 16
_KEY_BYTES: Final = 32


def _aes_gcm(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingExtra("service", "encryption of the state") from None
    return AESGCM(key)


class Cipher:
    """Seals pieces and files; what is sealed opens only with the same key, and only where it belongs."""

    def __init__(self, key: bytes) -> None:
        if len(key) != _KEY_BYTES:
            raise UsageError(f"a key has {_KEY_BYTES} bytes; got {len(key)}")
        _aes_gcm(key)  # a missing package is told now, not at the first record
        self._key = key

    @classmethod
    def from_file(cls, path: Path) -> Cipher:
        """Read the key from a file that nobody else may read."""
        return cls(derive(Secret.from_file(path).value, "state cipher"))

    def seal(self, data: bytes, context: bytes) -> bytes:
        """Hide a piece; `context` says where it belongs, and is needed to open it."""
        salt = secrets.token_bytes(SALT_BYTES)
        return salt + Sealer(derive(self._key, "piece", salt.hex())).seal(0, data, context)

    def open(self, data: bytes, context: bytes) -> bytes:
        """Give a piece back; refuse one that was changed, moved, or sealed with another key."""
        salt, sealed = data[:SALT_BYTES], data[SALT_BYTES:]
        return Sealer(derive(self._key, "piece", salt.hex())).open(0, sealed, context)

    def for_file(self, salt: bytes) -> Sealer:
        """Give the sealer of one file."""
        return Sealer(derive(self._key, "file", salt.hex()))


class Sealer:
    """One key, used once for each number."""

    def __init__(self, key: bytes) -> None:
        self._aes = _aes_gcm(derive(key, "payload"))
        #: Stands in the file's header, so that a wrong key is told before anything is read.
        self.key_check = derive(key, "check")[:8]

    def seal(self, number: int, data: bytes, context: bytes) -> bytes:
        """Hide the data of a number; never call it twice for one number."""
        return bytes(self._aes.encrypt(number.to_bytes(12, "little"), data, context))

    def open(self, number: int, data: bytes, context: bytes) -> bytes:
        """Give the data back, or refuse."""
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(self._aes.decrypt(number.to_bytes(12, "little"), data, context))
        except InvalidTag:
            raise DataError(
                "sealed data does not open", hint="it was changed or moved, or the key is another one"
            ) from None
