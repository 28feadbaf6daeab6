"""All routes: records in, released lines out, rights of users, monitoring, health.

User ids are in bodies, never in addresses.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from querycloak.errors import Unavailable
from querycloak.service.ingest import parse, ubi
from querycloak.service.ingest.group_commit import PendingRequest
from querycloak.service.monitor.monitor import overview
from querycloak.service.service import Service
from querycloak.service.stream.stream import Output, StreamObserver
from querycloak.service.web import auth, bodies, schemas
from querycloak.service.web.bodies import BodyBudget, RateLimiter

router = APIRouter()
_PERSON = schemas.json_body(schemas.Person)
_LABEL = schemas.json_body(schemas.Label)


async def _running(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Running = Annotated[Service, Depends(_running)]


async def _accept(
    request: Request, holder: auth.TokenHolder, read: Callable[[bytes, bool], PendingRequest]
) -> dict[str, Any]:
    """Read, parse and submit a body within the token's rate; return when its records are on disk."""
    service: Service = request.app.state.service
    limiter: RateLimiter = request.app.state.rate_limiter
    budget: BodyBudget = request.app.state.body_budget
    settings, lines = service.settings, bodies.is_lines(request)
    async with budget.body(request, settings.body_bytes, settings.body_seconds) as body:
        pending = await bodies.off_loop(body, lambda: read(body, lines))
        limiter.take(holder.name, len(pending))
        if key := request.headers.get("idempotency-key", ""):
            # Each token has keys of its own, for each route.
            pending.key = service.keys.digest(f"{request.url.path}\n{holder.name}\n{key}", body)
        return await asyncio.wrap_future(service.submit(pending))


@router.post("/v1/records", status_code=202, openapi_extra=schemas.RECORDS_IN, responses=schemas.INGEST)
async def accept_records(request: Request, holder: auth.Ingest) -> schemas.Accepted:
    """Accept records. The response means that they are on disk; bad rows are counted by reason."""

    def read(body: bytes, lines: bool) -> PendingRequest:
        return PendingRequest("records", parse.parse(body, lines=lines))

    return schemas.Accepted.of(await _accept(request, holder, read))


@router.post("/v1/ubi/queries", status_code=202, openapi_extra=schemas.UBI_QUERIES, responses=schemas.INGEST)
async def accept_queries(request: Request, holder: auth.Ingest, service: Running) -> schemas.Accepted:
    """Accept documents of `ubi_queries`. Each is held for its clicks for a stated time."""

    def read(body: bytes, lines: bool) -> PendingRequest:
        return PendingRequest("queries", ubi.queries(body, service.join_key, lines=lines))

    return schemas.Accepted.of(await _accept(request, holder, read))


@router.post("/v1/ubi/events", status_code=202, openapi_extra=schemas.UBI_EVENTS, responses=schemas.INGEST)
async def accept_events(request: Request, holder: auth.Ingest, service: Running) -> schemas.Clicked:
    """Accept documents of `ubi_events`; clicks are stored, other actions are not."""
    ignored = 0

    def read(body: bytes, lines: bool) -> PendingRequest:
        nonlocal ignored
        clicks, ignored = ubi.events(body, service.join_key, lines=lines)
        return PendingRequest("events", frame=clicks)

    answer = await _accept(request, holder, read)
    return schemas.Clicked(accepted=answer["accepted"], ignored=ignored)


class ReleaseWaiter(StreamObserver):
    """Wakes all waiting requests when sinks have new lines."""

    def __init__(self, last_offset: Callable[[], int]) -> None:
        self._last_offset = last_offset
        self._loop: asyncio.AbstractEventLoop | None = None
        self._new_lines = asyncio.Event()

    def on_delivery(self, output: Output) -> None:
        """Wake the requests; runs in the worker's thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        new_lines, self._new_lines = self._new_lines, asyncio.Event()
        new_lines.set()

    async def wait_beyond(self, offset: int, seconds: float) -> None:
        """Return when a line after `offset` is released, or after so many seconds."""
        self._loop = asyncio.get_running_loop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._last_offset() <= offset:
                    await self._new_lines.wait()


@router.get("/v1/released", responses=schemas.RELEASED, response_class=Response)
async def released(
    request: Request, _: auth.Read, service: Running, query: Annotated[schemas.ReleasedQuery, Query()]
) -> Response:
    """Return released records after an offset, one JSON object a line; wait if there are none."""
    waiter: ReleaseWaiter = request.app.state.release_waiter
    if query.wait:
        await waiter.wait_beyond(query.after, min(query.wait, service.settings.wait_seconds))
    lines = await asyncio.to_thread(service.released.read, query.after, query.limit)
    return Response(lines, media_type="application/x-ndjson")


@router.get("/v1/status", responses=schemas.AUTHENTICATED)
async def status(_: auth.Status, service: Running) -> schemas.Status:
    """Return the counts of records; at rest, accepted = released + held + dropped."""
    return schemas.Status(**service.state().status())


@router.post("/v1/profiles", responses=schemas.PROFILE, openapi_extra=_LABEL)
async def profile(request: Request, _: auth.Watch, service: Running) -> dict[str, int]:
    """Return the number of a label's released records by category."""
    label = await bodies.read_json(request, schemas.Label, service.settings.body_seconds)
    return await asyncio.to_thread(service.profile, label.label)


# Rights of users


@router.post("/v1/erasures", responses=schemas.RIGHTS, openapi_extra=_PERSON)
async def erase(request: Request, _: auth.Admin, service: Running) -> schemas.Erased:
    """Erase a user: held records are deleted, and the label is never used again."""
    person = await bodies.read_json(request, schemas.Person, service.settings.body_seconds)
    return schemas.Erased(**await asyncio.to_thread(service.erase, person.user))


@router.post("/v1/exports", responses=schemas.RIGHTS, openapi_extra=_PERSON)
async def export(request: Request, _: auth.Admin, service: Running) -> schemas.Exported:
    """Return the held records of a user, and the number of released ones."""
    person = await bodies.read_json(request, schemas.Person, service.settings.body_seconds)
    return schemas.Exported(**await asyncio.to_thread(service.export, person.user))


@router.post("/v1/epochs", responses=schemas.AUTHENTICATED)
async def rotate(_: auth.Admin, service: Running) -> schemas.Rotated:
    """Start a new epoch: held records are released or dropped, and all users get new pseudonyms."""
    return schemas.Rotated(**await asyncio.to_thread(service.rotate))


@router.get("/v1/overview", responses=schemas.AUTHENTICATED)
async def show_overview(holder: auth.Watch, service: Running) -> schemas.Overview:
    """Return what the page shows: counts, delays, held records, the last attack, certificates."""
    content = await asyncio.to_thread(overview, service.state(), service.monitor)
    if not holder.may("read"):  # tens without parts: a difference of one would be about one user
        content["buffers"] = [
            {"category": one["category"], "held": one["held"] // 10 * 10, "parts": []}
            for one in content["buffers"]
        ]
    return schemas.Overview(**content)


@router.get("/v1/certificates", responses=schemas.AUTHENTICATED)
async def list_certificates(_: auth.Watch, service: Running) -> list[schemas.CertificateLine]:
    """Return the newest certificates: lines covered, times, verdicts."""
    return [schemas.CertificateLine(**line) for line in service.monitor.certificates.newest()]


@router.get("/v1/certificates/{number}", responses=schemas.CERTIFICATE, response_class=Response)
async def show_certificate(
    number: Annotated[int, Path(ge=1, le=1 << 62)], _: auth.Watch, service: Running
) -> Response:
    """Return a certificate as it was written."""
    content = await asyncio.to_thread(service.monitor.certificates.read, number)
    return Response(content, media_type="application/json")


@router.get("/metrics", responses=schemas.METRICS, response_class=Response)
async def show_metrics(request: Request, _: auth.Watch) -> Response:
    """Return metrics in the Prometheus text format."""
    text = await asyncio.to_thread(request.app.state.metrics.text)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


@router.get("/healthz", responses=schemas.DOWN)
async def healthy(service: Running) -> schemas.HealthOk:
    """Whether the service works at all."""
    if service.worker.failure is not None:
        raise Unavailable("the service has failed; its log has the reason")
    return schemas.HealthOk(status="ok")


@router.get("/readyz", responses=schemas.DOWN)
async def ready(service: Running) -> schemas.HealthOk:
    """Whether the service accepts and delivers records now."""
    codes = service.state().health.codes  # needs no token, so no texts: they can name files and hosts
    if codes:
        raise Unavailable(f"not ready: {', '.join(codes)}", hint="`GET /v1/overview` has the details")
    return schemas.HealthOk(status="ok")
