"""People's rights: to be forgotten, and to know what is held; ids stand in bodies, never in addresses."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from querycloak.service.service import Service
from querycloak.service.web import answers, bodies, guard

router = APIRouter()


class Person(BaseModel):
    """Whose records a request is about."""

    model_config = ConfigDict(extra="forbid")
    user: str = Field(min_length=1, max_length=4096)


class Label(BaseModel):
    """Which label's profile is asked for."""

    model_config = ConfigDict(extra="forbid")
    label: str = Field(min_length=1, max_length=4096)


def _in(kind: type[BaseModel]) -> dict[str, Any]:
    """Describe a body that routes read themselves: only after they know who asks, and within limits."""
    schema = kind.model_json_schema()
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


@router.post("/v1/erasures", responses=answers.RIGHTS, openapi_extra=_in(Person))
async def erase(request: Request, _: guard.Admin) -> answers.Erased:
    """Forget a person: what of hers waits is dropped, and her label is never drawn again."""
    service: Service = request.app.state.service
    person = await bodies.asked(request, Person, service.settings.body_seconds)
    return answers.Erased(**await asyncio.to_thread(service.erase, person.user))


@router.post("/v1/exports", responses=answers.RIGHTS, openapi_extra=_in(Person))
async def export(request: Request, _: guard.Admin) -> answers.Exported:
    """Give what is held of a person, and how many of her records have left."""
    service: Service = request.app.state.service
    person = await bodies.asked(request, Person, service.settings.body_seconds)
    return answers.Exported(**await asyncio.to_thread(service.export, person.user))


@router.post("/v1/epochs", responses=answers.GUARDED)
async def rotate(request: Request, _: guard.Admin) -> answers.Rotated:
    """Start a new epoch: what waits leaves or is dropped, and everybody gets a new pseudonym."""
    service: Service = request.app.state.service
    return answers.Rotated(**await asyncio.to_thread(service.rotate))


@router.post("/v1/profiles", responses=answers.PROFILE, openapi_extra=_in(Label))
async def profile(request: Request, _: guard.Watch) -> dict[str, int]:
    """Give how often a label's released records fell into each category."""
    service: Service = request.app.state.service
    label = await bodies.asked(request, Label, service.settings.body_seconds)
    return await asyncio.to_thread(service.profile, label.label)
