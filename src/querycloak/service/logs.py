"""Log of the service: events, numbers and codes; never a user or a query."""

from __future__ import annotations

import logging
from typing import Final

from querycloak import json_log

#: Fields of a line beside time, level and event; all others are left out.
ALLOWED: Final = frozenset(
    {
        "fault",
        "code",
        "position",
        "partition",
        "count",
        "trouble",
        "setting",
    }
)
_LIBRARIES: Final = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio")


def start() -> logging.Logger:
    """Send the service's lines to standard error, and those of libraries nowhere: they can hold addresses."""
    return json_log.start("querycloak.service", ALLOWED, _LIBRARIES)
