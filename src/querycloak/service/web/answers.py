"""What the routes answer, in the words of the OpenAPI description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field

from querycloak.service.intake import shortened


class Wanted(BaseModel):
    """Which released lines to give, and how long to wait for some."""

    model_config = ConfigDict(extra="forbid")  # a misspelled name would give lines that nobody asked for
    after: int = Field(0, ge=0, le=1 << 62)
    limit: int = Field(1000, ge=1, le=100_000)
    wait: float = Field(0, ge=0, le=3600)


class Accepted(BaseModel):
    """How many records are on disk now, how many were not taken, and the first rows of these, by reason."""

    accepted: int
    skipped: dict[str, list[int]]
    skipped_total: int
    repeated: bool = False

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """Write what the door answers; one that was remembered is short already, and has its own count."""
        short = shortened(answer)
        return cls(**{"skipped_total": sum(map(len, short["skipped"].values())), **short})


class Clicked(BaseModel):
    """How many clicks are on disk now, and how many documents were none or belong to no search."""

    accepted: int
    ignored: int


class Status(BaseModel):
    """What came and what became of it. `queued` is durable and not looked at yet."""

    accepted: int
    released: int
    held: int
    dropped: int
    queued: int
    epoch: int


class Erased(BaseModel):
    """How many records of the person waited, how many had left before, how many were dropped in all."""

    held: int
    released: int
    dropped: int


class Exported(BaseModel):
    """What is held of a person, and how many records of hers have left."""

    held: list[dict[str, Any]]
    released: int


class Rotated(BaseModel):
    """The number of the new epoch, and how many records were dropped with the old one."""

    epoch: int
    dropped: int


class Health(BaseModel):
    """All is well."""

    status: str


class Fault(BaseModel):
    """What is wrong."""

    code: str
    message: str
    hint: str = ""


class Failed(BaseModel):
    """Every error looks like this."""

    error: Fault


_RECORD: Final = {
    "type": "object",
    "required": ["user", "query"],
    "properties": {
        "user": {"type": "string", "minLength": 1},
        "query": {"type": "string", "minLength": 1},
        "time": {"type": "string", "format": "date-time"},
        "rank": {"type": "integer"},
        "url": {"type": "string"},
        "category": {"type": "string"},
    },
}
_QUERY: Final = {
    "type": "object",
    "required": ["user_query", "client_id"],
    "properties": {
        "user_query": {"type": "string", "minLength": 1},
        "client_id": {"type": "string", "minLength": 1},
        "query_id": {"type": "string"},
        "timestamp": {"type": "string", "format": "date-time"},
    },
}
_EVENT: Final = {
    "type": "object",
    "required": ["action_name", "query_id"],
    "properties": {
        "action_name": {"type": "string"},
        "query_id": {"type": "string"},
        "event_attributes": {"type": "object"},
    },
}


def _body(item: dict[str, Any]) -> dict[str, Any]:
    """Describe a body of such objects: one, several, or a line for each."""
    return {
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "schema": {"type": "string", "maxLength": 255},
                "description": "Makes a retry safe: the same key and body are taken once.",
            }
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"anyOf": [item, {"type": "array", "items": item}]}},
                "application/x-ndjson": {"schema": {"type": "string", "description": "One object a line."}},
            },
        },
    }


RECORDS_IN: Final = _body(_RECORD)
UBI_QUERIES: Final = _body(_QUERY)
UBI_EVENTS: Final = _body(_EVENT)


def _faults(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Failed} for status in statuses}


GUARDED: Final = _faults(401, 403, 503)
DOWN: Final = _faults(503)
INGEST: Final = _faults(400, 401, 403, 408, 413, 415, 422, 429, 503)
_LINES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
}
RELEASED: Final = _LINES | _faults(401, 403, 404, 410, 422)
PROFILE: Final = _faults(400, 401, 403, 404, 408, 413, 415, 422)
RIGHTS: Final = _faults(400, 401, 403, 408, 413, 415, 422, 503)
