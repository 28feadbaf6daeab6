"""Routes for monitoring: overview, certificates, metrics."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from querycloak.service.monitor.overview import overview
from querycloak.service.service import Service
from querycloak.service.web import schemas
from querycloak.service.web.auth import Watch

router = APIRouter()


@router.get("/v1/overview", responses=schemas.AUTHENTICATED)
async def show_overview(request: Request, holder: Watch) -> schemas.Overview:
    """Return what the page shows: counts, delays, held records, the last attack, certificates."""
    service: Service = request.app.state.service
    content = await asyncio.to_thread(overview, service.state(), service.monitor)
    if not holder.may("read"):
        content["buffers"] = _coarse(content["buffers"])
    return schemas.Overview(**content)


def _coarse(buffers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Round held records down to tens, without parts: a difference of one would be about one user."""
    return [{"category": one["category"], "held": one["held"] // 10 * 10, "parts": []} for one in buffers]


@router.get("/v1/certificates", responses=schemas.AUTHENTICATED)
async def list_certificates(request: Request, _: Watch) -> list[schemas.CertificateLine]:
    """Return the newest certificates: lines covered, times, verdicts."""
    service: Service = request.app.state.service
    return [schemas.CertificateLine(**line) for line in service.monitor.certificates.newest()]


@router.get("/v1/certificates/{number}", responses=schemas.CERTIFICATE, response_class=Response)
async def show_certificate(
    number: Annotated[int, Path(ge=1, le=1 << 62)], request: Request, _: Watch
) -> Response:
    """Return a certificate as it was written."""
    service: Service = request.app.state.service
    content = await asyncio.to_thread(service.monitor.certificates.read, number)
    return Response(content, media_type="application/json")


@router.get("/metrics", responses=schemas.METRICS, response_class=Response)
async def show_metrics(request: Request, _: Watch) -> Response:
    """Return metrics in the Prometheus text format."""
    text = await asyncio.to_thread(request.app.state.metrics.text)
    return Response(text, media_type=CONTENT_TYPE_LATEST)
