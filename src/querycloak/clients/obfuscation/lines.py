"""What a browser extension or a proxy says to a live client, and hears from it: lines."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from querycloak.clients.obfuscation.feeds import TITLE_LIMIT, tidy
from querycloak.clients.obfuscation.live import Seen, Sent

#: The longest line, in bytes, the longest query, in characters, and the most titles of an answer.
LINE_LIMIT: Final = 64 * 1024
LONGEST_QUERY: Final = 2_048
MOST_TITLES: Final = 50


def read(line: bytes) -> str | Seen | None:
    """Read a query, as plain text or as `{"query": …}`, or `{"results": [titles]}`; None if it is neither."""
    if len(line) > LINE_LIMIT:
        return None
    try:
        text = line.decode().strip()
        event = json.loads(text) if text.startswith("{") else {"query": text}
    except (ValueError, RecursionError):
        return None
    return _query(event["query"]) if "query" in event else _results(event.get("results"))


class Tokenizer:
    """Cuts what comes in into lines; of one that is too long only so much is kept as shows that it is."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take more, and give the lines that it completes."""
        *whole, rest = (self.rest + chunk).split(b"\n")
        self.rest = rest[: LINE_LIMIT + 1]
        return whole


def _query(value: Any) -> str | None:
    good = isinstance(value, str) and 0 < len(value.strip()) <= LONGEST_QUERY and value.isprintable()
    return value if good else None


def _results(value: Any) -> Seen | None:
    if not isinstance(value, list) or not all(isinstance(title, str) for title in value):
        return None
    return Seen(tuple(tidy(title, TITLE_LIMIT) for title in value[:MOST_TITLES]))


def write(sent: Sent, now: datetime | None = None) -> bytes:
    """Write what is to be sent now, one object a line."""
    moment = (now or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    said = {"time": moment, "query": sent.query, "fake": sent.fake}
    return json.dumps(said, ensure_ascii=False).encode() + b"\n"
