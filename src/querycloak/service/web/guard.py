"""Stands before every route: finds out who comes, and whether the role allows what is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Security
from fastapi.security import HTTPBearer
from starlette.requests import Request

from querycloak.errors import Forbidden, UnknownToken
from querycloak.service.web.tokens import LOCAL, Holder, Tokens


class Guard:
    """Checks tokens; without any, whoever reaches the service is on this machine and may do all."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    def holder(self, request: Request) -> Holder:
        """Find out who sends a request."""
        if not self.tokens.required:
            return LOCAL
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        holder = self.tokens.holder(token.strip()) if scheme.lower() == "bearer" else None
        if holder is None:
            raise UnknownToken("a known token is needed", hint="send `Authorization: Bearer TOKEN`")
        return holder


#: Says in the OpenAPI description how a token is shown; the check itself is the guard's.
_Bearer = Annotated[object, Security(HTTPBearer(auto_error=False))]


def wants(act: str) -> Callable[[Request], Holder]:
    """Make the check for routes that need this right."""

    async def check(request: Request, _: _Bearer) -> Holder:
        guard: Guard = request.app.state.guard
        holder = guard.holder(request)
        if not holder.may(act):
            raise Forbidden("the token's role does not allow this")
        return holder

    return check  # type: ignore[return-value]


Ingest = Annotated[Holder, Depends(wants("ingest"))]
Read = Annotated[Holder, Depends(wants("read"))]
Status = Annotated[Holder, Depends(wants("status"))]
Watch = Annotated[Holder, Depends(wants("watch"))]
Admin = Annotated[Holder, Depends(wants("admin"))]
