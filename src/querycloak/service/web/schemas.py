"""Request and response models of the routes, and what OpenAPI states about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict, Field

from querycloak.service.ingest.parse import shortened

# Requests


class ReleasedQuery(BaseModel):
    """Which released lines to return, and how long to wait for some."""

    model_config = ConfigDict(extra="forbid")  # a misspelled name would return other lines
    after: int = Field(0, ge=0, le=1 << 62)
    limit: int = Field(1000, ge=1, le=100_000)
    wait: float = Field(0, ge=0, le=3600)


class Person(BaseModel):
    """The user that a request is about."""

    model_config = ConfigDict(extra="forbid")
    user: str = Field(min_length=1, max_length=4096)


class Label(BaseModel):
    """The label whose profile is requested."""

    model_config = ConfigDict(extra="forbid")
    label: str = Field(min_length=1, max_length=4096)


# Responses


class Accepted(BaseModel):
    """Number of records on disk, number of skipped ones, and the first skipped rows by reason."""

    accepted: int
    skipped: dict[str, list[int]]
    skipped_total: int
    repeated: bool = False

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """Build the response; a stored answer is short already and has its own count."""
        short = shortened(answer)
        return cls(**{"skipped_total": sum(map(len, short["skipped"].values())), **short})


class Clicked(BaseModel):
    """Number of clicks on disk, and number of documents that are no click or belong to no search."""

    accepted: int
    ignored: int


class Status(BaseModel):
    """Counts of records. `queued` records are on disk and not applied yet."""

    accepted: int
    released: int
    held: int
    dropped: int
    queued: int
    epoch: int


class Erased(BaseModel):
    """Number of the user's held records, of those released before, and of all dropped records."""

    held: int
    released: int
    dropped: int


class Exported(BaseModel):
    """The user's held records, and the number of released ones."""

    held: list[dict[str, Any]]
    released: int


class Rotated(BaseModel):
    """Number of the new epoch, and number of records dropped with the old one."""

    epoch: int
    dropped: int


class HealthOk(BaseModel):
    """The service works."""

    status: str


class Method(BaseModel):
    """A method with its present settings, its guarantee, and the limits of that."""

    name: str
    settings: dict[str, Any]
    promise: str
    does_not_protect_against: list[str]


class Delay(BaseModel):
    """Records accepted between a record's arrival and its release, over the last released rows."""

    unit: str
    median: int
    p95: int
    worst: int


class Age(BaseModel):
    """Age of the held records."""

    unit: str
    oldest: float
    median: float


class Part(BaseModel):
    """Held records of a level-2 category."""

    category: str
    held: int


class Buffer(BaseModel):
    """Held records of a level-1 category, and of its parts."""

    category: str
    held: int
    parts: list[Part]


class Linkage(BaseModel):
    """Success of an attack on the last released rows: a 95 % interval, beside the bound."""

    attack: str
    success: float
    low: float
    high: float
    bound: float
    n: int
    at: float


class CertificateLine(BaseModel):
    """Lines that a certificate covers, when they were released, and the verdict."""

    number: int
    began: float = Field(alias="from")
    to: float
    first: int
    last: int
    verdict: str


class Overview(BaseModel):
    """Everything that the page shows. A sample is [time, accepted, released, held, queued]."""

    version: str
    started: float
    now: float
    ready: bool
    trouble: str
    reproducible: bool
    source: str
    sink: str
    methods: list[Method]
    counts: Status
    dropped: dict[str, int]
    samples: list[tuple[float, int, int, int, int]]
    delay: Delay | None
    age: Age | None
    buffers: list[Buffer]
    linkage: Linkage | None
    certificates: list[CertificateLine]


class ErrorDetail(BaseModel):
    """Code and text of an error."""

    code: str
    message: str
    hint: str = ""


class ErrorBody(BaseModel):
    """Body of every error."""

    error: ErrorDetail


# OpenAPI: bodies that routes read themselves, after authentication and within limits


def _text(**more: Any) -> dict[str, Any]:
    return {"type": "string", **more}


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties}


_TEXT: Final = _text(minLength=1)
_TIME: Final = _text(format="date-time")
_RECORD: Final = _object(
    *("user", "query"),
    user=_TEXT,
    query=_TEXT,
    time=_TIME,
    rank={"type": "integer"},
    url=_text(),
    category=_text(),
)
_QUERY: Final = _object(
    *("user_query", "client_id"), user_query=_TEXT, client_id=_TEXT, query_id=_text(), timestamp=_TIME
)
_EVENT: Final = _object(
    *("action_name", "query_id"),
    action_name=_text(),
    query_id=_text(),
    event_attributes={"type": "object"},
)


def _documents(item: dict[str, Any]) -> dict[str, Any]:
    """Describe a body of such objects: one, an array, or one per line."""
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "schema": _text(maxLength=255),
        "description": "Makes a retry safe: the same key and body are taken once.",
    }
    content = {
        "application/json": {"schema": {"anyOf": [item, {"type": "array", "items": item}]}},
        "application/x-ndjson": {"schema": _text(description="One object a line.")},
    }
    return {"parameters": [key], "requestBody": {"required": True, "content": content}}


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    """Describe a body that is one object of this model."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


RECORDS_IN: Final = _documents(_RECORD)
UBI_QUERIES: Final = _documents(_QUERY)
UBI_EVENTS: Final = _documents(_EVENT)

Responses = dict[int | str, dict[str, Any]]


def _errors(*statuses: int) -> Responses:
    return {status: {"model": ErrorBody} for status in statuses}


def _content(kind: str, schema: str) -> Responses:
    return {200: {"content": {kind: {"schema": {"type": schema}}}}}


AUTHENTICATED: Final = _errors(401, 403, 503)
DOWN: Final = _errors(503)
INGEST: Final = _errors(400, 401, 403, 408, 413, 415, 422, 429, 503)
RELEASED: Final = _content("application/x-ndjson", "string") | _errors(401, 403, 404, 410, 422)
PROFILE: Final = _errors(400, 401, 403, 404, 408, 413, 415, 422)
RIGHTS: Final = _errors(400, 401, 403, 408, 413, 415, 422, 503)
CERTIFICATE: Final = _content("application/json", "object") | PROFILE
METRICS: Final = _content(CONTENT_TYPE_LATEST, "string") | AUTHENTICATED
