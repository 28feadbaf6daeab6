"""The ledger of a source: every release that was ever made of it, in a chain that nobody can cut."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from querycloak.errors import DataError

Entry = dict[str, Any]
_GENESIS = "0" * 64


def default_state() -> Path:
    """Say where state lies when nobody says otherwise."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "querycloak"


class Ledger:
    """An append-only file of releases; each entry holds the hash of the one before."""

    def __init__(self, state: Path) -> None:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = state / "ledger.jsonl"

    def entries(self) -> list[Entry]:
        """Read all entries and check the chain."""
        if not self.path.exists():
            return []
        entries, head = [], _GENESIS
        for number, line in enumerate(self.path.read_text("utf-8").splitlines(), start=1):
            entry = _parse(line, number)
            if entry["previous"] != head or entry["hash"] != _hash(entry):
                raise DataError(f"the ledger was changed: entry {number} does not fit the chain")
            head = entry["hash"]
            entries.append(entry)
        return entries

    def of_source(self, source: str) -> list[Entry]:
        """Give the earlier releases of one source."""
        return [entry for entry in self.entries() if entry["source"] == source]

    def append(self, entry: Entry) -> Entry:
        """Add an entry to the chain and force it to disk."""
        with self._locked():
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

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep two releases from taking the same place in the chain."""
        descriptor = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


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
