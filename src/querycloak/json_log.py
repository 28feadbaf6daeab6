"""Structured log lines: events, numbers and codes; never a user, a query or an address."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object; fields that are not in `allowed` are left out."""

    def __init__(self, allowed: Collection[str]) -> None:
        super().__init__()
        self._allowed = frozenset(allowed)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"at": at, "level": record.levelname.lower(), "event": str(record.msg)}
        line |= {name: value for name, value in vars(record).items() if name in self._allowed}
        if record.exc_info and record.exc_info[0] is not None:  # a traceback may hold data; its type does not
            line["fault"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False)


def start(name: str, allowed: Collection[str], quiet: Collection[str] = ("asyncio",)) -> logging.Logger:
    """Send the lines of the logger `name` to standard error, and silence loggers of libraries.

    Lines of libraries can hold addresses and queries.
    """
    log = logging.getLogger(name)
    log.setLevel(logging.INFO)
    log.propagate = False
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines(allowed))
        log.addHandler(handler)
    for other in quiet:
        library = logging.getLogger(other)
        library.handlers, library.propagate = [logging.NullHandler()], False
    return log
