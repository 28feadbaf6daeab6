"""Ledger of releases: an append-only file in which each entry holds a keyed hash of the one before.

Only with the key beside the file can an entry be made that fits. The chain shows a changed or missing entry
in the middle. It does not show entries cut off at the end: a later certificate, which holds the head, does.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from querycloak.errors import DataError
from querycloak.files import FolderLock, sync_folder
from querycloak.keys import others_can_read, write_private

Entry = dict[str, Any]
_GENESIS = "0" * 64
#: The file of the key, beside the ledger.
KEY: Final = "ledger.key"


def default_state() -> Path:
    """Return the folder of state when none is given."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "querycloak"


@dataclass(frozen=True)
class LedgerKey:
    """The key of a chain; `after` is the hash of the last entry that was made without a key."""

    value: bytes = field(repr=False)
    after: str

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read the key of a ledger; None if it has none."""
        try:
            content, exposed = path.read_text("ascii"), others_can_read(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError):
            raise DataError(f"the key of the ledger cannot be read: {path.name}", hint=_RESTORE) from None
        if exposed:
            raise DataError(
                f"the key of the ledger is readable by other users: {path.name}", hint=f"chmod 600 {path}"
            )
        try:
            value, after = content.split()
            return cls(bytes.fromhex(value), after)
        except ValueError:
            raise DataError(f"the key of the ledger is damaged: {path.name}", hint=_RESTORE) from None

    @classmethod
    def create(cls, path: Path, after: str) -> Self:
        """Draw a key for entries that follow this one, and write it, mode 0600."""
        key = cls(secrets.token_bytes(32), after)
        write_private(path, f"{key.value.hex()}\n{after}\n".encode())
        return key

    def digest(self, purpose: str, *parts: bytes) -> str:
        """Return the keyed hash of parts, which never run together."""
        state = hashlib.blake2b(key=self.value, digest_size=32, person=purpose.encode())
        for part in parts:
            state.update(len(part).to_bytes(8, "little") + part)
        return state.hexdigest()


_RESTORE: Final = f"put `{KEY}` back from the backup that holds this ledger"


class Chain:
    """The entries of a ledger, each checked against the one before.

    Without a key the links are checked, but not who made them, and `authentic` is false. Entries of a version
    that had no key are accepted in front of all others, if the key was made after exactly these.
    """

    def __init__(self, key: LedgerKey | None) -> None:
        self.key = key
        self.entries: list[Entry] = []
        self.content = b""

    @property
    def head(self) -> str:
        """The hash of the last entry."""
        return self.entries[-1]["hash"] if self.entries else _GENESIS

    @property
    def keyed(self) -> bool:
        """Whether the last entry was made with a key."""
        return bool(self.entries) and bool(self.entries[-1].get("keyed"))

    @property
    def authentic(self) -> bool:
        """Whether the hashes of all entries were checked."""
        return self.key is not None or not self.keyed

    def extend(self, content: bytes) -> None:
        """Check the entries that `content` adds. An unfinished last line is an entry that was never made."""
        content = content[: content.rfind(b"\n") + 1]
        lines = content[len(self.content) :].decode("utf-8", "replace").splitlines()
        for number, line in enumerate(lines, start=len(self.entries) + 1):
            self._check(_parse(line, number), number)
        if self.key is not None and not self.keyed and self.head != self.key.after:
            raise DataError("the ledger was changed: its key was made for other entries", hint=_BACKUP)
        self.content = content

    def _check(self, entry: Entry, number: int) -> None:
        first_keyed = bool(entry.get("keyed")) and not self.keyed
        fits = entry["previous"] == self.head and (bool(entry.get("keyed")) or not self.keyed)
        if first_keyed and self.key is not None:
            fits = fits and self.key.after == self.head
        if not fits or not self._is_whole(entry):
            raise DataError(f"the ledger was changed: entry {number} does not fit the chain", hint=_BACKUP)
        self.entries.append(entry)

    def _is_whole(self, entry: Entry) -> bool:
        if entry.get("keyed") and self.key is None:
            return True
        return hmac.compare_digest(str(entry["hash"]), _hash(entry, self.key))


_BACKUP: Final = "put the ledger and its key back from the newest backup"


class Ledger:
    """An append-only file of releases; each entry holds the hash of the one before."""

    def __init__(self, state: Path) -> None:
        self.path = state / "ledger.jsonl"
        self._key_path = state / KEY
        self._chain = Chain(None)

    def _lock(self) -> FolderLock:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return FolderLock(self.path.with_suffix(".lock"), wait=True)

    def entries(self) -> list[Entry]:
        """Read all entries and check the chain; entries that were checked before are only compared."""
        key = LedgerKey.read(self._key_path)
        content = self.path.read_bytes() if self.path.exists() else b""
        if not content.startswith(self._chain.content) or key != self._chain.key:
            self._chain = Chain(key)
        try:
            self._chain.extend(content)
            if not self._chain.authentic:
                raise DataError(f"the key of the ledger is missing: {KEY}", hint=_RESTORE)
        except DataError:
            self._chain = Chain(None)
            raise
        return list(self._chain.entries)

    def of_source(self, source: str) -> list[Entry]:
        """Return the earlier releases of one source."""
        return [entry for entry in self.entries() if entry["source"] == source]

    def of_input(self, sha256: str) -> list[Entry]:
        """Return the earlier releases of an input file."""
        entries = self.entries()
        key = self._chain.key
        wanted = None if key is None else key.digest("input", sha256.encode())
        return [entry for entry in entries if wanted is not None and entry.get("input") == wanted]

    def digest(self, purpose: str, *parts: bytes) -> str:
        """Return a keyed hash for an entry: without the key, no guess of the parts can be tested."""
        with self._lock():
            return self._key().digest(purpose, *parts)

    def append(self, entry: Entry, sha256: str | None = None) -> Entry:
        """Add an entry to the chain and force it to disk; `sha256` is that of the input file."""
        with self._lock():  # two releases need different places
            key = self._key()
            known = self.entries()
            at = datetime.now(UTC).isoformat(timespec="seconds")
            full = entry | {"number": len(known) + 1, "at": at, "previous": self._chain.head, "keyed": True}
            if sha256 is not None:
                full["input"] = key.digest("input", sha256.encode())
            full["hash"] = _hash(full, key)
            self._write_line(json.dumps(full, sort_keys=True, ensure_ascii=False))
        return full

    def _key(self) -> LedgerKey:
        """Return the key; if there is none yet, make one for the entries that follow. Needs the lock."""
        self.entries()
        if self._chain.key is None:
            LedgerKey.create(self._key_path, self._chain.head)
            self.entries()
        assert self._chain.key is not None
        return self._chain.key

    def _write_line(self, line: str) -> None:
        is_new = not self.path.exists()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.truncate(len(self._chain.content))  # of an entry that a power cut left unfinished
            file.seek(0, os.SEEK_END)
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_folder(self.path.absolute().parent)


def read_chain(path: Path) -> Chain:
    """Read a ledger file, or a copy of one; its key is used if it lies beside."""
    try:
        content = path.read_bytes()
    except OSError:
        raise DataError(f"the ledger cannot be read: {path.name}") from None
    chain = Chain(LedgerKey.read(path.with_name(KEY)))
    chain.extend(content)
    return chain


def _parse(line: str, number: int) -> Entry:
    try:
        entry = json.loads(line)
        if {"previous", "hash", "source", "number"} <= set(entry):
            return dict(entry)
    except (ValueError, TypeError):
        pass
    raise DataError(f"the ledger cannot be read: entry {number} is not an entry", hint=_BACKUP)


def _hash(entry: Entry, key: LedgerKey | None) -> str:
    """Return the hash of an entry: keyed, if the entry states it, which only works with the key."""
    content = {name: value for name, value in entry.items() if name != "hash"}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False).encode()
    if entry.get("keyed"):
        assert key is not None
        return key.digest("entry", text)
    return hashlib.sha256(text).hexdigest()
