"""What a method that moves records between labels does with their times."""

from __future__ import annotations

from typing import Any

import numpy as np

from querycloak.log import BIT, NO_TIME, Batch
from querycloak.settings import setting

HOUR = 3_600_000_000  # microseconds


def time_setting() -> Any:
    """Declare `time` in a method's settings."""
    return setting(
        "keep",
        kind=str,
        choices=("keep", "coarsen", "drop"),
        help="`keep` times, `coarsen` them to the hour, or `drop` them: sessions betray people",
    )


def apply(policy: str, batch: Batch) -> Batch:
    """Give the batch with the times that may leave."""
    if policy == "coarsen":
        known = batch.time != NO_TIME
        return batch.replace(time=np.where(known, batch.time - batch.time % HOUR, NO_TIME))
    if policy == "drop":
        nothing = np.full(len(batch), NO_TIME, np.int64)
        return batch.replace(time=nothing, blank=batch.blank | BIT["time"])
    return batch


def rewrites(policy: str) -> frozenset[str]:
    """Say which columns the policy changes."""
    return frozenset({"time"}) if policy == "coarsen" else frozenset()
