"""Structured log lines: what happened, in numbers and codes; never who searched, or what for."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

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


class JsonLines(logging.Formatter):
    """Writes a line as one JSON object, with no field that nobody allowed."""

    def format(self, record: logging.LogRecord) -> str:
        """Give the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"at": at, "level": record.levelname.lower(), "event": str(record.msg)}
        line |= {name: value for name, value in vars(record).items() if name in ALLOWED}
        if record.exc_info and record.exc_info[0] is not None:  # a traceback may hold data; its kind does not
            line["fault"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False)


def start() -> logging.Logger:
    """Send the service's own lines to standard error, and other people's nowhere: they may hold addresses."""
    log = logging.getLogger("querycloak.service")
    log.setLevel(logging.INFO)
    log.propagate = False
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines())
        log.addHandler(handler)
    for other in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        quiet = logging.getLogger(other)
        quiet.handlers, quiet.propagate = [logging.NullHandler()], False
    return log
