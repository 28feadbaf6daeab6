"""Structured log lines: what happened, in numbers and codes; never who searched, or what for."""

from __future__ import annotations

import logging
from typing import Final

from querycloak import json_log

#: What a line may hold beside its time, level and event; everything else is left out.
ALLOWED: Final = frozenset(
    {
        "fault",
        "code",
        "host",
        "port",
        "records",
        "position",
        "seconds",
        "epoch",
        "partition",
        "holder",
        "count",
        "trouble",
        "setting",
    }
)


def start() -> logging.Logger:
    """Send the service's own lines to standard error, and other people's nowhere: they may hold addresses."""
    others = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio")
    return json_log.start("querycloak.service", ALLOWED, others)
