"""The ASGI application of a running service: routes, and the files of the web page."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Final

from fastapi import FastAPI, Request, Response
from starlette.types import ASGIApp

from querycloak._version import __version__
from querycloak.errors import NotFound
from querycloak.service.monitor.metrics import Metrics
from querycloak.service.service import Service
from querycloak.service.web import errors, routes
from querycloak.service.web.auth import Tokens
from querycloak.service.web.bodies import BodyBudget, RateLimiter
from querycloak.service.web.middleware import Middleware

_TYPES: Final = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
_INDEX: Final = "index.html"


class Application(FastAPI):
    """An application in which `Middleware` also wraps the handler of unforeseen errors."""

    def build_middleware_stack(self) -> ASGIApp:
        """Return the application with the wrapper around it; `add_middleware` would be inside."""
        metrics: Metrics = self.state.metrics
        return Middleware(super().build_middleware_stack(), self.state.tokens, metrics.observe_response)


def make_app(service: Service, tokens: Tokens) -> Application:
    """Build the application; its state holds what routes need."""
    app = Application(
        title="QueryCloak",
        version=__version__,
        summary="Protects a search log while it is written.",
        docs_url=None,  # both pages would load scripts from other hosts
        redoc_url=None,
        redirect_slashes=False,  # the target would be built from the client's Host header
    )
    app.state.service, app.state.tokens = service, tokens
    app.state.metrics = Metrics(service.state, service.monitor)
    app.state.release_waiter = routes.ReleaseWaiter(lambda: service.released.last)
    service.observers.append(app.state.release_waiter)
    app.state.rate_limiter = RateLimiter(service.settings.rate)
    app.state.body_budget = BodyBudget()
    errors.install(app)
    app.include_router(routes.router)
    _serve_page(app)
    return app


def _serve_page(app: FastAPI) -> None:
    shipped = page_files()

    async def index(request: Request) -> Response:
        return _unless_cached(shipped[_INDEX], request)

    async def part(name: str, request: Request) -> Response:
        if name not in shipped or name == _INDEX:
            raise NotFound("the page has no such part")
        return _unless_cached(shipped[name], request)

    for path, route in (("/", index), ("/static/{name}", part)):
        app.add_api_route(path, route, methods=["GET", "HEAD"], include_in_schema=False)


def _unless_cached(file: Response, request: Request) -> Response:
    """Return a file, or status 304 if the browser has it."""
    if file.headers["ETag"] not in request.headers.get("if-none-match", ""):
        return file
    kept = {name: file.headers[name] for name in ("ETag", "Cache-Control")}
    return Response(status_code=304, headers=kept)


def page_files() -> dict[str, Response]:
    """Read all files of the page; a requested name is looked up here and never opened."""
    found = {}
    for entry in files("querycloak.service.web").joinpath("page").iterdir():
        _, dot, ending = entry.name.rpartition(".")
        if kind := _TYPES.get(dot + ending):
            body = entry.read_bytes()
            etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            known = {"ETag": etag, "Cache-Control": "no-cache"}
            found[entry.name] = Response(body, media_type=kind, headers=known)
    return found
