"""Who may do what: bearer tokens with roles, kept as hashes and compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from querycloak.errors import UsageError
from querycloak.keys import others_can_read, write_private

#: What each role may do.
ROLES: Final = {
    "ingest": frozenset({"ingest", "status"}),
    "read": frozenset({"read", "status", "watch"}),
    "research": frozenset({"status", "watch"}),
    "admin": frozenset({"ingest", "read", "status", "watch", "admin"}),
}


@dataclass(frozen=True)
class Holder:
    """Whoever came in: a name for logs and limits, and what the role allows."""

    name: str
    role: str

    def may(self, act: str) -> bool:
        """Say whether the role allows this."""
        return act in ROLES[self.role]


#: Without tokens the service is reachable from this machine alone, and whoever is on it may do all.
LOCAL: Final = Holder("local", "admin")


class Tokens:
    """The tokens of a file: one JSON object a line, `{"name": …, "role": …, "hash": …}`."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: list[tuple[bytes, Holder]] = []
        self.reload()

    def reload(self) -> None:
        """Read the file again; tokens that are gone from it are refused from now on."""
        self._known = _read(self._path) if self._path is not None else []

    @property
    def required(self) -> bool:
        """Say whether callers must show a token."""
        return self._path is not None

    def holder(self, token: str) -> Holder | None:
        """Find who holds this token; all hashes are compared, so that time tells nothing."""
        shown, found = digest(token), None
        for known, holder in self._known:
            if hmac.compare_digest(known, shown):
                found = holder
        return found


def digest(token: str) -> bytes:
    """Hash a token. It holds 256 random bits, so a fast hash is enough."""
    return hashlib.sha256(token.encode()).hexdigest().encode()


def add_token(path: Path, name: str, role: str) -> str:
    """Make a token, keep its hash in the file, and give the token: this is the only time it can be seen."""
    if role not in ROLES:
        raise UsageError("there is no such role", hint=f"roles are {', '.join(ROLES)}")
    known = path.read_text("utf-8") if path.exists() else ""
    if any(json.loads(line)["name"] == name for line in known.splitlines() if line.strip()):
        raise UsageError("a token of this name is there already", hint="remove its line, or use another name")
    token = f"qc_{secrets.token_urlsafe(32)}"
    line = json.dumps({"name": name, "role": role, "hash": digest(token).decode()})
    write_private(path, f"{known}{line}\n".encode())
    return token


def _read(path: Path) -> list[tuple[bytes, Holder]]:
    try:
        lines = path.read_text("utf-8").splitlines()
        exposed = others_can_read(path)
    except OSError as error:
        raise UsageError(f"the file of tokens cannot be read: {error.strerror}") from None
    if exposed:
        raise UsageError("others can read the file of tokens", hint="run `chmod 600` on it first")
    return [_token(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def _token(number: int, line: str) -> tuple[bytes, Holder]:
    try:
        known = json.loads(line)
        holder = Holder(str(known["name"]), str(known["role"]))
        if holder.role in ROLES and len(known["hash"]) == 64:
            return known["hash"].encode(), holder
    except (ValueError, KeyError, TypeError):
        pass
    raise UsageError(
        f"line {number} of the file of tokens is no token", hint="`querycloak serve --new-token` makes them"
    )
