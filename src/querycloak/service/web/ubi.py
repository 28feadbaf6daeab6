"""OpenSearch UBI in: searches and clicks come apart, and are joined inside."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request

from querycloak.service import ubi
from querycloak.service.service import Service
from querycloak.service.web import answers, bodies, guard
from querycloak.service.web.pace import Pace

router = APIRouter()


@router.post("/v1/ubi/queries", status_code=202, openapi_extra=answers.UBI_QUERIES, responses=answers.INGEST)
async def take_queries(request: Request, holder: guard.Ingest) -> answers.Accepted:
    """Take documents of `ubi_queries` in. Each waits for its clicks for a stated time."""
    service: Service = request.app.state.service
    pace: Pace = request.app.state.pace
    lines = bodies.is_lines(request)
    async with bodies.records_of(request) as body:
        parsed = await bodies.off_loop(body, lambda: ubi.queries(body, service.join_key, lines=lines))
        pace.take(holder.name, len(parsed.records))
        known = bodies.retry_key(request, holder, body)
        answer = await asyncio.wrap_future(service.submit_searches(parsed, known))
    return answers.Accepted.of(answer)


@router.post("/v1/ubi/events", status_code=202, openapi_extra=answers.UBI_EVENTS, responses=answers.INGEST)
async def take_events(request: Request, holder: guard.Ingest) -> answers.Clicked:
    """Take documents of `ubi_events` in; clicks are kept, whatever else people did is not."""
    service: Service = request.app.state.service
    pace: Pace = request.app.state.pace
    lines = bodies.is_lines(request)
    async with bodies.records_of(request) as body:
        clicks, ignored = await bodies.off_loop(body, lambda: ubi.events(body, service.join_key, lines=lines))
        pace.take(holder.name, clicks.height)
        known = bodies.retry_key(request, holder, body)
        answer = await asyncio.wrap_future(service.submit_clicks(clicks, known))
    return answers.Clicked(accepted=answer["accepted"], ignored=ignored)
