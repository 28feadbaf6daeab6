"""The ASGI application of a running service: its routes, its faults, its page."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, FastAPI, Request

from querycloak._version import __version__
from querycloak.service.service import Service
from querycloak.service.web import answers, faults, gate, page, records, rights, ubi, watching
from querycloak.service.web.bodies import Room
from querycloak.service.web.guard import Guard
from querycloak.service.web.news import News
from querycloak.service.web.pace import Pace

health = APIRouter()
_FAILED: Final = "the service has failed; see its log"
_NOT_NOW: Final = "records are not taken in or handed out right now; `GET /v1/overview` says why"


def make_app(service: Service, guard: Guard) -> FastAPI:
    """Make the application; what routes need is in its state."""
    app = FastAPI(
        title="QueryCloak",
        version=__version__,
        summary="Takes a search log in and gives out what may be shown.",
        docs_url=None,  # both pages would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # the address to go to would be made of what the client calls us
    )
    app.state.service, app.state.guard = service, guard
    app.state.news, app.state.pace = News(service), Pace(service.settings.rate)
    app.state.room = Room()
    faults.install(app)
    for router in (records.router, ubi.router, rights.router, health):
        app.include_router(router)
    page.install(app)
    gate.install(app, guard)
    watching.install(app, service.watch)
    return app


@health.get("/healthz", responses=answers.DOWN)
async def healthy(request: Request) -> answers.Health:
    """Say whether the service works at all."""
    service: Service = request.app.state.service
    return faults.unless(_FAILED if service.failure() else "", answers.Health(status="ok"))


@health.get("/readyz", responses=answers.DOWN)
async def ready(request: Request) -> answers.Health:
    """Say whether the service takes records now."""
    service: Service = request.app.state.service
    return faults.unless(_in_brief(service), answers.Health(status="ok"))


def _in_brief(service: Service) -> str:
    """Say what kind of trouble there is. Anybody may ask: names of files and hosts are for who may watch."""
    if not service.trouble():
        return ""
    if not service.ready:
        return "the service is starting or stopping"
    if service.failure():
        return _FAILED
    return _NOT_NOW
