"""Routes that accept records and OpenSearch UBI documents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from fastapi import APIRouter, Request

from querycloak.service.ingest import parse, ubi
from querycloak.service.service import Service
from querycloak.service.web import bodies, schemas
from querycloak.service.web.auth import Ingest, TokenHolder
from querycloak.service.web.bodies import BodyBudget
from querycloak.service.web.rate_limit import RateLimiter

router = APIRouter()
Batch = TypeVar("Batch")


async def _accept(
    request: Request,
    holder: TokenHolder,
    read: Callable[[bytes, bool], Batch],
    size: Callable[[Batch], int],
    submit: Callable[[Batch, bytes], Future[dict[str, Any]]],
) -> tuple[Batch, dict[str, Any]]:
    """Read, parse and submit a body within the token's rate; return when its records are on disk."""
    service: Service = request.app.state.service
    limiter: RateLimiter = request.app.state.rate_limiter
    budget: BodyBudget = request.app.state.body_budget
    settings, lines = service.settings, bodies.is_lines(request)
    async with budget.body(request, settings.body_bytes, settings.body_seconds) as body:
        batch = await bodies.off_loop(body, lambda: read(body, lines))
        limiter.take(holder.name, size(batch))
        key = request.headers.get("idempotency-key", "")
        # Each token has keys of its own, for each route.
        digest = service.idempotency_digest(f"{request.url.path}\n{holder.name}\n{key}", body) if key else b""
        return batch, await asyncio.wrap_future(submit(batch, digest))


@router.post("/v1/records", status_code=202, openapi_extra=schemas.RECORDS_IN, responses=schemas.INGEST)
async def accept_records(request: Request, holder: Ingest) -> schemas.Accepted:
    """Accept records. The response means that they are on disk; bad rows are counted by reason."""
    service: Service = request.app.state.service
    _, answer = await _accept(
        request,
        holder,
        lambda body, lines: parse.parse(body, lines=lines),
        lambda batch: len(batch.records),
        service.submit_records,
    )
    return schemas.Accepted.of(answer)


@router.post("/v1/ubi/queries", status_code=202, openapi_extra=schemas.UBI_QUERIES, responses=schemas.INGEST)
async def accept_queries(request: Request, holder: Ingest) -> schemas.Accepted:
    """Accept documents of `ubi_queries`. Each is held for its clicks for a stated time."""
    service: Service = request.app.state.service
    _, answer = await _accept(
        request,
        holder,
        lambda body, lines: ubi.queries(body, service.join_key, lines=lines),
        lambda batch: len(batch.records),
        service.submit_queries,
    )
    return schemas.Accepted.of(answer)


@router.post("/v1/ubi/events", status_code=202, openapi_extra=schemas.UBI_EVENTS, responses=schemas.INGEST)
async def accept_events(request: Request, holder: Ingest) -> schemas.Clicked:
    """Accept documents of `ubi_events`; clicks are stored, other actions are not."""
    service: Service = request.app.state.service
    (_, ignored), answer = await _accept(
        request,
        holder,
        lambda body, lines: ubi.events(body, service.join_key, lines=lines),
        lambda batch: batch[0].height,
        lambda batch, key: service.submit_events(batch[0], key),
    )
    return schemas.Clicked(accepted=answer["accepted"], ignored=ignored)
