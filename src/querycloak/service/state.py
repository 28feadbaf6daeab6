"""State of a running service: the one thing that routes, metrics and the page read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from querycloak.engines.pipeline import Stage

#: Codes of reasons, most severe first: the worker has failed; the service starts or stops; the write-ahead
#: log cannot be written; a sink or the profile store takes nothing; the source cannot be read.
FAILED: Final = "worker-failed"
NOT_RUNNING: Final = "starting-or-stopping"
WAL: Final = "write-ahead-log"
SINK: Final = "sink"
SOURCE: Final = "source"


@dataclass(frozen=True)
class Counts:
    """Position and counts of the stream after the last applied entry."""

    position: int = 0
    accepted: int = 0
    released: int = 0
    held: int = 0
    dropped: int = 0
    epoch: int = 0
    applied: int = 0  # records applied since the start


@dataclass(frozen=True)
class Health:
    """Reasons by code why records are not accepted or delivered now; none if all is well.

    Texts can name files and hosts, so they are for callers with the right `watch`; codes are for everybody.
    """

    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of all reasons, most severe first."""
        return tuple(self.reasons)

    @property
    def text(self) -> str:
        """Text of the most severe reason; empty if all is well."""
        return next(iter(self.reasons.values()), "")


@dataclass(frozen=True)
class ServiceState:
    """Counts, health and properties of a service at one moment."""

    counts: Counts
    queued: int  # records that are on disk and not applied yet
    health: Health
    methods: tuple[Stage, ...]  # with the settings in force
    source: str  # kind, without address
    sink: str
    running: bool
    reproducible: bool
    started: float
    wal_bytes: int
    snapshot_age: float

    def status(self) -> dict[str, int]:
        """Return the counts of `GET /v1/status`; at rest, accepted = released + held + dropped."""
        return {
            "accepted": self.counts.accepted + self.queued,
            "released": self.counts.released,
            "held": self.counts.held,
            "dropped": self.counts.dropped,
            "queued": self.queued,
            "epoch": self.counts.epoch,
        }
