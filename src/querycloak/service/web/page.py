"""The web page: files of this package, read once, with nothing in them that a caller sent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from fastapi import FastAPI, Request, Response

from querycloak.errors import NotFound
from querycloak.service.web import headers

_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_INDEX: Final = "index.html"


@dataclass(frozen=True)
class _File:
    body: bytes
    kind: str
    tag: str

    def answer(self, request: Request) -> Response:
        """Give the file, or say that what the browser has is still the same."""
        known = {"ETag": self.tag, "Cache-Control": "no-cache"}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=known)
        return Response(self.body, media_type=self.kind, headers=known)


def install(app: FastAPI) -> None:
    """Serve the page at `/` and its parts at `/static/…`; all answers get the security headers."""
    headers.install(app)
    shipped = _shipped()

    async def show(request: Request) -> Response:
        return shipped[_INDEX].answer(request)

    async def part(name: str, request: Request) -> Response:
        if name not in shipped or name == _INDEX:
            raise NotFound("the page has no such part")
        return shipped[name].answer(request)

    for path, route in (("/", show), ("/static/{name}", part)):
        app.add_api_route(path, route, methods=["GET", "HEAD"], include_in_schema=False)


def _shipped() -> dict[str, _File]:
    """Read all files of the page: a name that is asked for is looked up, never opened."""
    found = {}
    for entry in files("querycloak.service.web").joinpath("page").iterdir():
        _, dot, ending = entry.name.rpartition(".")
        if kind := _TYPES.get(dot + ending):
            body = entry.read_bytes()
            found[entry.name] = _File(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
    return found
