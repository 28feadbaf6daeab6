"""What the routes for watching answer, in the words of the OpenAPI description."""

from __future__ import annotations

from typing import Any, Final

from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field

from querycloak.service.web import answers


class Method(BaseModel):
    """A method as it is set now, what it promises, and what it does not."""

    name: str
    settings: dict[str, Any]
    promise: str
    does_not_protect_against: list[str]


class Delay(BaseModel):
    """Records that were accepted between a record's entry and its release, over the last released rows."""

    unit: str
    median: int
    p95: int
    worst: int


class Age(BaseModel):
    """How long what is held has waited."""

    unit: str
    oldest: float
    median: float


class Part(BaseModel):
    """How many records of a level-2 category are held."""

    category: str
    held: int


class Buffer(BaseModel):
    """How many records of a level-1 category are held, and how they fall on its parts."""

    category: str
    held: int
    parts: list[Part]


class Linkage(BaseModel):
    """How often an attack on the last released rows named the author: a 95 % interval, beside the bound."""

    attack: str
    success: float
    low: float
    high: float
    bound: float
    n: int
    at: float


class CertificateLine(BaseModel):
    """Which lines a certificate is about, when they left, and the sum of its audits."""

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
    counts: answers.Status
    dropped: dict[str, int]
    samples: list[tuple[float, int, int, int, int]]
    delay: Delay | None
    age: Age | None
    buffers: list[Buffer]
    linkage: Linkage | None
    certificates: list[CertificateLine]


Answers = dict[int | str, dict[str, Any]]


def _given(kind: str, schema: str) -> Answers:
    return {200: {"content": {kind: {"schema": {"type": schema}}}}}


CERTIFICATE: Final = _given("application/json", "object") | answers.PROFILE
METRICS: Final = _given(CONTENT_TYPE_LATEST, "string") | answers.GUARDED
