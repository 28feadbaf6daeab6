"""Routes for erasure, export and key rotation; user ids are in bodies, never in addresses."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request

from querycloak.service.service import Service
from querycloak.service.web import bodies, schemas
from querycloak.service.web.auth import Admin

router = APIRouter()
_PERSON = schemas.json_body(schemas.Person)


@router.post("/v1/erasures", responses=schemas.RIGHTS, openapi_extra=_PERSON)
async def erase(request: Request, _: Admin) -> schemas.Erased:
    """Erase a user: held records are deleted, and the label is never used again."""
    service: Service = request.app.state.service
    person = await bodies.read_json(request, schemas.Person, service.settings.body_seconds)
    return schemas.Erased(**await asyncio.to_thread(service.erase, person.user))


@router.post("/v1/exports", responses=schemas.RIGHTS, openapi_extra=_PERSON)
async def export(request: Request, _: Admin) -> schemas.Exported:
    """Return the held records of a user, and the number of released ones."""
    service: Service = request.app.state.service
    person = await bodies.read_json(request, schemas.Person, service.settings.body_seconds)
    return schemas.Exported(**await asyncio.to_thread(service.export, person.user))


@router.post("/v1/epochs", responses=schemas.AUTHENTICATED)
async def rotate(request: Request, _: Admin) -> schemas.Rotated:
    """Start a new epoch: held records are released or dropped, and all users get new pseudonyms."""
    service: Service = request.app.state.service
    return schemas.Rotated(**await asyncio.to_thread(service.rotate))
