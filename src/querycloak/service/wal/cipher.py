"""State that only the key's owner can read: AES-256-GCM, with a key of its own for each file.

GCM is broken if a key is used twice with one nonce. So no nonce is drawn or stored: each file
has 16 fresh random bytes (its salt) from which its key is derived, and within a file the nonce is the
frame's number. A file is written once, from front to back: after a cut or a restart the log continues in
another file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from querycloak.errors import DataError, UsageError, import_extra
from querycloak.keys import Secret, derive

SALT_BYTES: Final = 16
_KEY_BYTES: Final = 32


def _aes_gcm(key: bytes) -> Any:
    module = "cryptography.hazmat.primitives.ciphers.aead"
    return import_extra(module, "service", "encryption of the state").AESGCM(key)


class Cipher:
    """The key of a state folder, from which the keys of its files are derived."""

    def __init__(self, key: bytes) -> None:
        if len(key) != _KEY_BYTES:
            raise UsageError(f"a key has {_KEY_BYTES} bytes; got {len(key)}")
        _aes_gcm(key)  # a missing package is reported now, not at the first record
        self._key = key

    @classmethod
    def from_file(cls, path: Path) -> Cipher:
        """Read the key from a file that only its owner can read."""
        return cls(derive(Secret.from_file(path).value, "state cipher"))

    def for_file(self, salt: bytes) -> FileCipher:
        """Return the cipher of one file."""
        return FileCipher(derive(self._key, "file", salt.hex()))


class FileCipher:
    """One key, used once for each number."""

    def __init__(self, key: bytes) -> None:
        self._aes = _aes_gcm(derive(key, "payload"))
        #: Part of the file's header: a wrong key is found before anything is read.
        self.key_check = derive(key, "check")[:8]

    def seal(self, number: int, data: bytes, context: bytes) -> bytes:
        """Encrypt the data of a number; never call it twice for one number."""
        return bytes(self._aes.encrypt(number.to_bytes(12, "little"), data, context))

    def open(self, number: int, data: bytes, context: bytes) -> bytes:
        """Decrypt the data of a number. Raise DataError if they were changed or moved."""
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(self._aes.decrypt(number.to_bytes(12, "little"), data, context))
        except InvalidTag:
            raise DataError(
                "sealed data does not open", hint="it was changed or moved, or the key is another one"
            ) from None
