"""Stored state of a peer: trust, the draws of the vector and counters; no text and no hash of a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from querycloak.errors import DataError, Refused, UsageError
from querycloak.files import FolderLock
from querycloak.keys import write_private

SCHEMA: Final = "querycloak/crowd-member/2"
#: Earlier versions had other counters, and keyed hashes of queries that are deleted when they are read.
_EARLIER: Final = "querycloak/crowd-member/1"
_COUNTERS: Final = {
    "searched": "searches_started",
    "answered": "searches_answered",
    "failed": "searches_failed",
    "asked": "queries_sent",
    "asked of her own": "queries_sent_own",
    "taken": "queries_accepted",
    "replayed": "queries_replayed",
    "too many": "rate_limited",
    "full": "queries_over_capacity",
    "declined": "queries_declined",
    "refused": "refusals_received",
    "gone": "gone_received",
    "lost": "queries_lost",
    "silent": "timeouts",
    "alone": "no_friend_left",
    "kept back": "own_held_back",
    "absent": "friend_absent",
    "late": "late_replies",
    "forged": "protocol_errors",
    "submitted": "queries_submitted",
    "engine failed": "engine_unavailable",
    "engine rejected": "engine_rejected",
    "nobody waits": "answers_dropped",
    "brought back": "answers_returned",
    "cut off": "disconnected",
    "faults": "internal_errors",
}
_Count = Annotated[int, Meta(ge=0, le=1 << 62)]
_Draw = Annotated[float, Meta(ge=0, lt=1)]


class _Friend(Struct):
    trust: Annotated[float, Meta(ge=0, le=1)] = 1.0
    friends: _Count = 1
    own: _Count = 0
    passed: _Count = 0


class _Member(Struct):
    friends: dict[str, _Friend] = {}
    vector: tuple[_Draw, _Draw, _Draw] | None = None
    searched: _Count = 0
    counts: dict[str, _Count] = {}


class State:
    """A folder that only its owner can read, and that one peer at a time may use."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = FolderLock(folder / "lock")
        except BlockingIOError:
            raise Refused("another peer uses this state folder", hint="each peer needs its own") from None
        except OSError as error:
            raise UsageError(f"the state folder cannot be used: {error.strerror}") from None
        self._path = folder / "member.json"

    def read(self) -> dict[str, Any]:
        """Return the stored state; empty at the first start."""
        try:
            stored = json.loads(self._path.read_text("utf-8"), parse_constant=str)  # NaN is no JSON
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError):
            raise DataError("the state file cannot be read", hint="move it away to begin anew") from None
        if not isinstance(stored, dict) or stored.get("schema") not in (SCHEMA, _EARLIER):
            raise DataError("the state file is of another version", hint="move it away to begin anew")
        try:
            msgspec.convert(stored, _Member)
        except msgspec.ValidationError:
            raise DataError("the state file is damaged", hint="move it away to begin anew") from None
        return stored if stored["schema"] == SCHEMA else self._migrate(stored)

    def _migrate(self, stored: dict[str, Any]) -> dict[str, Any]:
        """Rename the counters of an earlier version, and delete its hashes of queries and their key."""
        names = ("friends", "vector", "searched")
        state: dict[str, Any] = {name: stored[name] for name in names if name in stored}
        state["counts"] = {_COUNTERS.get(name, name): n for name, n in stored.get("counts", {}).items()}
        self.write(state)
        self._path.with_name("key").unlink(missing_ok=True)
        return state

    def write(self, state: dict[str, Any]) -> None:
        """Replace the stored state as a whole."""
        write_private(self._path, json.dumps({"schema": SCHEMA, **state}).encode())

    def close(self) -> None:
        """Release the folder for another peer."""
        self._lock.release()
