"""Ledger of releases: an append-only file in which each entry holds the hash of the one before.

The chain shows a changed or missing entry in the middle. It does not show entries cut off at the end.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from querycloak.errors import DataError
from querycloak.files import FolderLock

Entry = dict[str, Any]
_GENESIS = "0" * 64


def default_state() -> Path:
    """Return the folder of state when none is given."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "querycloak"


class Ledger:
    """An append-only file of releases; each entry holds the hash of the one before."""

    def __init__(self, state: Path) -> None:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = state / "ledger.jsonl"
        self._checked: list[Entry] = []
        self._checked_bytes = b""

    def entries(self) -> list[Entry]:
        """Read all entries and check the chain; entries that were checked before are only compared."""
        content = self.path.read_bytes() if self.path.exists() else b""
        if not content.startswith(self._checked_bytes):
            self._checked, self._checked_bytes = [], b""
        lines = content[len(self._checked_bytes) :].decode("utf-8", "replace").splitlines()
        for number, line in enumerate(lines, start=len(self._checked) + 1):
            self._check(_parse(line, number), number)
        self._checked_bytes = content
        return list(self._checked)

    def _check(self, entry: Entry, number: int) -> None:
        previous = self._checked[-1]["hash"] if self._checked else _GENESIS
        if entry["previous"] != previous or entry["hash"] != _hash(entry):
            self._checked, self._checked_bytes = [], b""
            raise DataError(f"the ledger was changed: entry {number} does not fit the chain")
        self._checked.append(entry)

    def of_source(self, source: str) -> list[Entry]:
        """Return the earlier releases of one source."""
        return [entry for entry in self.entries() if entry["source"] == source]

    def append(self, entry: Entry) -> Entry:
        """Add an entry to the chain and force it to disk."""
        with FolderLock(self.path.with_suffix(".lock"), wait=True):  # two releases need different places
            known = self.entries()
            previous = known[-1]["hash"] if known else _GENESIS
            at = datetime.now(UTC).isoformat(timespec="seconds")
            full = entry | {"number": len(known) + 1, "at": at, "previous": previous}
            full["hash"] = _hash(full)
            self._write_line(json.dumps(full, sort_keys=True, ensure_ascii=False))
        return full

    def _write_line(self, line: str) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())


def _parse(line: str, number: int) -> Entry:
    try:
        entry = json.loads(line)
        if {"previous", "hash", "source", "number"} <= set(entry):
            return dict(entry)
    except (ValueError, TypeError):
        pass
    raise DataError(f"the ledger cannot be read: entry {number} is not an entry")


def _hash(entry: Entry) -> str:
    content = {name: value for name, value in entry.items() if name != "hash"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
