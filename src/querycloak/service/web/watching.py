"""Routes for whoever watches a service: overview, certificates and metrics; and a count of all answers."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from querycloak.service.monitor.metrics import Metrics
from querycloak.service.monitor.overview import overview
from querycloak.service.monitor.watch import Watch
from querycloak.service.web import answers, guard, sights

router = APIRouter()
#: What requests are counted under that fit no route: their addresses could hold anything.
NO_ROUTE = "none"


class Counted:
    """Counts every answer by the template of its route, and notes how long it took."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and look at the status of its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            self._metrics.answered(route, scope["method"], status, time.perf_counter() - start)


def install(app: FastAPI, watch: Watch) -> None:
    """Add the routes, all of which need the right to watch, and count every answer from now on."""
    app.state.watch, app.state.metrics = watch, Metrics(watch)
    app.add_middleware(Counted, metrics=app.state.metrics)
    app.include_router(router)


@router.get("/v1/overview", responses=answers.GUARDED)
async def show_overview(request: Request, holder: guard.Watch) -> sights.Overview:
    """Give what the page shows: counts, delays, what is held, the last estimate and certificates."""
    found = await asyncio.to_thread(overview, request.app.state.watch)
    if not holder.may("read"):
        found["buffers"] = _coarse(found["buffers"])
    return sights.Overview(**found)


def _coarse(buffers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Round what is held down to tens, without parts: one record more or less would tell of one person."""
    return [{"category": one["category"], "held": one["held"] // 10 * 10, "parts": []} for one in buffers]


@router.get("/v1/certificates", responses=answers.GUARDED)
async def list_certificates(request: Request, _: guard.Watch) -> list[sights.CertificateLine]:
    """List the newest certificates: which lines, when, and the verdict."""
    watch: Watch = request.app.state.watch
    return [sights.CertificateLine(**line) for line in watch.certificates.newest()]


@router.get("/v1/certificates/{number}", responses=sights.CERTIFICATE, response_class=Response)
async def show_certificate(
    number: Annotated[int, Path(ge=1, le=1 << 62)], request: Request, _: guard.Watch
) -> Response:
    """Give a certificate as it was written."""
    watch: Watch = request.app.state.watch
    content = await asyncio.to_thread(watch.certificates.read, number)
    return Response(content, media_type="application/json")


@router.get("/metrics", responses=sights.METRICS, response_class=Response)
async def show_metrics(request: Request, _: guard.Watch) -> Response:
    """Give metrics in Prometheus' text format."""
    text = await asyncio.to_thread(request.app.state.metrics.text)
    return Response(text, media_type=CONTENT_TYPE_LATEST)
