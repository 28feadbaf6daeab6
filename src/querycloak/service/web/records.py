"""Records in and out, and how many there are."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from querycloak.service.intake import parse
from querycloak.service.service import Service
from querycloak.service.web import answers, bodies, guard
from querycloak.service.web.news import News
from querycloak.service.web.pace import Pace

router = APIRouter()


@router.post("/v1/records", status_code=202, openapi_extra=answers.RECORDS_IN, responses=answers.INGEST)
async def take_records(request: Request, holder: guard.Ingest) -> answers.Accepted:
    """Take records in. The answer comes when they are on disk; bad ones are counted, by row."""
    service: Service = request.app.state.service
    pace: Pace = request.app.state.pace
    lines = bodies.is_lines(request)
    async with bodies.records_of(request) as body:
        parsed = await bodies.off_loop(body, lambda: parse(body, lines=lines))
        pace.take(holder.name, len(parsed.records))
        known = bodies.retry_key(request, holder, body)
        answer = await asyncio.wrap_future(service.submit(parsed, known))
    return answers.Accepted.of(answer)


@router.get("/v1/released", responses=answers.RELEASED, response_class=Response)
async def give_released(
    request: Request,
    _: guard.Read,
    wanted: Annotated[answers.Wanted, Query()],
) -> Response:
    """Give released records behind an offset, one JSON object a line; wait for some if there are none."""
    service: Service = request.app.state.service
    news: News = request.app.state.news
    if wanted.wait:
        await news.beyond(wanted.after, min(wanted.wait, service.settings.wait_seconds))
    lines = await asyncio.to_thread(service.released.read, wanted.after, wanted.limit)
    return Response(lines, media_type="application/x-ndjson")


@router.get("/v1/status", responses=answers.GUARDED)
async def status(request: Request, _: guard.Status) -> answers.Status:
    """Count what came and what became of it; at rest, accepted = released + held + dropped."""
    service: Service = request.app.state.service
    return answers.Status(**service.status())
