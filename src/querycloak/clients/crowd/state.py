"""What a peer keeps over restarts: trust, the vector's draws, counters and keyed hashes; never a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from querycloak.errors import DataError, Refused, UsageError
from querycloak.files import FolderLock
from querycloak.keys import Secret, derive, write_private

SCHEMA: Final = "querycloak/crowd-member/1"
#: No count is larger; a number beyond it was not written by a peer.
_MOST: Final = 1 << 62


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
        self.key = derive(Secret.load_or_create(folder / "key").value, "crowd", "exposure")

    def read(self) -> dict[str, Any]:
        """Read what was kept; nothing at the first start."""
        try:
            kept = json.loads(self._path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError):
            raise DataError("the state file cannot be read", hint="move it away to begin anew") from None
        if not isinstance(kept, dict) or kept.get("schema") != SCHEMA:
            raise DataError("the state file is of another version", hint="move it away to begin anew")
        if not _is_sound(kept):
            raise DataError("the state file is damaged", hint="move it away to begin anew")
        return kept

    def write(self, kept: dict[str, Any]) -> None:
        """Keep it, whole or not at all."""
        write_private(self._path, json.dumps({"schema": SCHEMA, **kept}).encode())

    def close(self) -> None:
        """Let another peer use the folder."""
        self._lock.release()


def _is_sound(kept: dict[str, Any]) -> bool:
    """Say whether everything that was kept is of the kind that is written."""
    exposure, friends, vector = kept.get("exposure", {}), kept.get("friends", {}), kept.get("vector")
    return (
        _is_count(kept.get("searched", 0))
        and _are_counts(kept.get("counts", {}))
        and (vector is None or (isinstance(vector, list) and len(vector) == 3 and all(map(_is_draw, vector))))
        and isinstance(friends, dict)
        and all(isinstance(one, dict) and _is_friend(one) for one in friends.values())
        and isinstance(exposure, dict)
        and all(_are_counts(exposure.get(name, {})) for name in ("own", "submitted"))
        and _is_count(exposure.get("beyond", 0))
    )


def _is_friend(one: dict[str, Any]) -> bool:
    trust = one.get("trust", 1.0)
    return (trust in (0, 1) or _is_draw(trust)) and all(
        _is_count(one.get(name, 1)) for name in ("friends", "own", "passed")
    )


def _is_draw(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _are_counts(values: Any) -> bool:
    return isinstance(values, dict) and all(map(_is_count, values.values()))
