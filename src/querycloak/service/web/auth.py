"""Bearer tokens with roles: stored as hashes, compared in constant time, checked before each route."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from fastapi import Depends, Security
from fastapi.security import HTTPBearer
from starlette.requests import Request

from querycloak.errors import Forbidden, UnknownToken, UsageError
from querycloak.keys import others_can_read, write_private

#: Rights of each role.
ROLES: Final = {
    "ingest": frozenset({"ingest", "status"}),
    "read": frozenset({"read", "status", "watch"}),
    "research": frozenset({"status", "watch"}),
    "admin": frozenset({"ingest", "read", "status", "watch", "admin"}),
}


@dataclass(frozen=True)
class TokenHolder:
    """An authenticated caller: a name for rate limits and idempotency keys, and a role."""

    name: str
    role: str

    def may(self, right: str) -> bool:
        """Whether the role has this right."""
        return right in ROLES[self.role]


#: The caller of a service without tokens, which is reachable from its own machine only.
LOCAL: Final = TokenHolder("local", "admin")


class Tokens:
    """Tokens of a file with one JSON object per line: `{"name": …, "role": …, "hash": …}`."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: list[tuple[bytes, TokenHolder]] = []
        self.reload()

    def reload(self) -> None:
        """Read the file again; tokens that were removed from it are refused from now on."""
        if self._path is None:
            return
        known = _parse(_read(self._path))
        if others_can_read(self._path):
            mode = f"{self._path.stat().st_mode & 0o777:04o}"
            raise UsageError(
                f"token file is readable by other users: {self._path.name} (mode {mode})",
                hint=f"chmod 600 {self._path}",
            )
        self._known = known

    @property
    def required(self) -> bool:
        """Whether requests need a token."""
        return self._path is not None

    def holder(self, token: str) -> TokenHolder | None:
        """Return the holder of a token; every hash is compared, so the time reveals nothing."""
        shown, found = digest(token), None
        for known, holder in self._known:
            if hmac.compare_digest(known, shown):
                found = holder
        return found

    def authenticate(self, request: Request) -> TokenHolder:
        """Return the holder of the request's token. Raise UnknownToken without a valid one."""
        if not self.required:
            return LOCAL
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        holder = self.holder(token.strip()) if scheme.lower() == "bearer" else None
        if holder is None:
            raise UnknownToken("a known token is needed", hint="send `Authorization: Bearer TOKEN`")
        return holder


def digest(token: str) -> bytes:
    """Return the hash of a token. It has 256 random bits, so a fast hash is sufficient."""
    return hashlib.sha256(token.encode()).hexdigest().encode()


def add_token(path: Path, name: str, role: str) -> str:
    """Create a token, store its hash in the file and return the token, which is shown only once."""
    if role not in ROLES:
        raise UsageError("unknown role", hint=f"roles are {', '.join(ROLES)}")
    text = _read(path) if path.exists() else ""
    if any(holder.name == name for _, holder in _parse(text)):
        raise UsageError("a token with this name exists already", hint="remove its line, or use another name")
    token = f"qc_{secrets.token_urlsafe(32)}"
    line = json.dumps({"name": name, "role": role, "hash": digest(token).decode()})
    if text and not text.endswith("\n"):
        text += "\n"
    write_private(path, f"{text}{line}\n".encode())
    return token


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read the token file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError("the token file is not UTF-8 text") from None


def _parse(text: str) -> list[tuple[bytes, TokenHolder]]:
    return [_token(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]


def _token(number: int, line: str) -> tuple[bytes, TokenHolder]:
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        known = json.loads(line)
        holder = TokenHolder(str(known["name"]), str(known["role"]))
        if holder.role in ROLES and len(known["hash"]) == 64:
            return known["hash"].encode(), holder
    raise UsageError(
        f"line {number} of the token file is not a token",
        hint="create tokens with `querycloak serve --new-token`",
    )


#: Describes bearer tokens in OpenAPI; `Tokens.authenticate` checks them.
_Bearer = Annotated[object, Security(HTTPBearer(auto_error=False))]


def requires(right: str) -> Callable[[Request], TokenHolder]:
    """Return the dependency of routes that need this right."""

    async def check(request: Request, _: _Bearer) -> TokenHolder:
        tokens: Tokens = request.app.state.tokens
        holder = tokens.authenticate(request)
        if not holder.may(right):
            raise Forbidden("the token's role does not allow this")
        return holder

    return check  # type: ignore[return-value]


Ingest = Annotated[TokenHolder, Depends(requires("ingest"))]
Read = Annotated[TokenHolder, Depends(requires("read"))]
Status = Annotated[TokenHolder, Depends(requires("status"))]
Watch = Annotated[TokenHolder, Depends(requires("watch"))]
Admin = Annotated[TokenHolder, Depends(requires("admin"))]
