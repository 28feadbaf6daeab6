"""What a peer keeps over restarts: trust, the vector's draws, counters and keyed hashes; never a text."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any, Final

from querycloak.errors import DataError, Refused, UsageError
from querycloak.keys import Secret, derive, write_private

SCHEMA: Final = "querycloak/crowd-member/1"


class State:
    """A folder that only its owner can read, and that one peer at a time may use."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused("another peer uses this state folder", hint="each peer needs its own") from None
        except OSError as error:
            raise UsageError(f"the state folder cannot be used: {error.strerror}") from None
        self._path = folder / "member.json"
        self.key = derive(Secret.kept_in(folder / "key").value, "crowd", "exposure")

    def read(self) -> dict[str, Any]:
        """Read what was kept; nothing at the first start."""
        try:
            kept = json.loads(self._path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise DataError("the state file cannot be read", hint="move it away to begin anew") from None
        if not isinstance(kept, dict) or kept.get("schema") != SCHEMA:
            raise DataError("the state file is of another version", hint="move it away to begin anew")
        return kept

    def write(self, kept: dict[str, Any]) -> None:
        """Keep it, whole or not at all."""
        write_private(self._path, json.dumps({"schema": SCHEMA, **kept}).encode())

    def close(self) -> None:
        """Let another peer use the folder."""
        os.close(self._lock)
