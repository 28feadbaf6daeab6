"""Routes that return released lines, counts and profiles."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from querycloak.service.service import Service
from querycloak.service.web import auth, bodies, schemas
from querycloak.service.web.long_poll import ReleaseWaiter

router = APIRouter()


@router.get("/v1/released", responses=schemas.RELEASED, response_class=Response)
async def released(
    request: Request, _: auth.Read, query: Annotated[schemas.ReleasedQuery, Query()]
) -> Response:
    """Return released records after an offset, one JSON object a line; wait if there are none."""
    service: Service = request.app.state.service
    waiter: ReleaseWaiter = request.app.state.release_waiter
    if query.wait:
        await waiter.wait_beyond(query.after, min(query.wait, service.settings.wait_seconds))
    lines = await asyncio.to_thread(service.released.read, query.after, query.limit)
    return Response(lines, media_type="application/x-ndjson")


@router.get("/v1/status", responses=schemas.AUTHENTICATED)
async def status(request: Request, _: auth.Status) -> schemas.Status:
    """Return the counts of records; at rest, accepted = released + held + dropped."""
    service: Service = request.app.state.service
    return schemas.Status(**service.state().status())


@router.post("/v1/profiles", responses=schemas.PROFILE, openapi_extra=schemas.json_body(schemas.Label))
async def profile(request: Request, _: auth.Watch) -> dict[str, int]:
    """Return the number of a label's released records by category."""
    service: Service = request.app.state.service
    label = await bodies.read_json(request, schemas.Label, service.settings.body_seconds)
    return await asyncio.to_thread(service.profile, label.label)
