"""A client of the live service: records in, released records out. It needs the standard library alone.

    from querycloak.client import Client

    with Client("http://127.0.0.1:8484") as service:
        service.send([{"user": "u1", "query": "rain"}])
        for record in service.released():
            print(record["offset"], record["user"], record["query"])

What the service refuses is raised as the error that it names (`querycloak.errors`). What it cannot take now
is sent again, with the same key, until `patience` is over: so nothing is lost, and nothing counted twice.
"""

from __future__ import annotations

import http.client
import json
import secrets
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlencode, urlsplit

from querycloak import errors
from querycloak.errors import QueryCloakError, Unavailable, UsageError

__all__ = ["Client", "Sent"]

#: Answers that mean "not now".
_LATER: Final = (429, 503)
#: The first pause before something is sent again, and the longest.
_PAUSES: Final = (0.1, 10.0)
#: How long one question for released records may wait.
_POLL: Final = 20.0
#: Errors by the code that stands in an answer.
_KINDS: Final = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, QueryCloakError) and kind is not errors.MissingExtra
}


class _Later(Exception):
    """Not now."""

    def __init__(self, error: QueryCloakError, wait: float) -> None:
        self.error, self.wait = error, wait


@dataclass
class Sent:
    """What became of records: how many are on disk, how many were bad, and the numbers of these, by reason.

    Of one batch, a reason names the first hundred; `skipped_total` counts all.
    """

    accepted: int = 0
    skipped: dict[str, list[int]] = field(default_factory=dict)
    skipped_total: int = 0

    def _add(self, answer: Mapping[str, Any], first: int) -> None:
        self.accepted += answer["accepted"]
        self.skipped_total += answer["skipped_total"]
        for reason, rows in answer["skipped"].items():
            self.skipped.setdefault(reason, []).extend(first + row for row in rows)


class Client:
    """One connection to one service; for several threads, make several."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        patience: float = 60.0,
        timeout: float = 30.0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("the address of a service is like http://127.0.0.1:8484")
        self._place, self._prefix = (parts.hostname, parts.port), parts.path.rstrip("/")
        self._secure = (context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._patience, self._timeout = patience, timeout
        self._line: http.client.HTTPConnection | None = None

    # In

    def send(
        self, records: Iterable[Mapping[str, Any]], key: str | None = None, *, batch: int = 1000
    ) -> Sent:
        """Send records, a batch at a time; when this returns, all of them are on the service's disk.

        With a `key` of your own, the same call can be made again after a crash: batches that were taken
        before are not taken twice.
        """
        sent, key, left = Sent(), key or secrets.token_hex(16), iter(records)
        number = 0
        while several := list(islice(left, batch)):
            lines = "".join(json.dumps(one, default=_text) + "\n" for one in several)
            headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"{key}-{number}"}
            answer = self._ask("POST", "/v1/records", lines.encode(), headers)
            sent._add(json.loads(answer), number * batch)
            number += 1
        return sent

    # Out

    def released(
        self, after: int = 0, *, wait: float | None = 0, limit: int = 1000
    ) -> Iterator[dict[str, Any]]:
        """Yield released records after `after`, in release order.

        It ends when nothing new came for `wait` seconds; with None it never does.
        """
        quiet = time.monotonic()
        while True:
            left = _POLL if wait is None else max(0.0, quiet + wait - time.monotonic())
            poll = min(left, _POLL, self._timeout / 2)  # an empty answer must come before the time-out
            asked = urlencode({"after": after, "limit": limit, "wait": poll})
            lines = self._ask("GET", f"/v1/released?{asked}").splitlines()
            for line in lines:
                record: dict[str, Any] = json.loads(line)
                after, quiet = record["offset"], time.monotonic()
                yield record
            if not lines and not left:
                return

    def status(self) -> dict[str, int]:
        """Count what came and what became of it."""
        return dict(json.loads(self._ask("GET", "/v1/status")))

    def profile(self, label: str) -> dict[str, int]:
        """Return how often a label's released records fell into each category."""
        return dict(self._question("/v1/profiles", {"label": label}))

    # People's rights

    def erase(self, user: str) -> dict[str, int]:
        """Erase a user; return how many records were held, and how many had been released.

        If the answer is lost on the way, the question is repeated: then it says that nothing waits any more.
        """
        return dict(self._question("/v1/erasures", {"user": user}))

    def export(self, user: str) -> dict[str, Any]:
        """Return what is held of a user, and how many of the user's records were released."""
        return dict(self._question("/v1/exports", {"user": user}))

    # The line

    def _question(self, path: str, body: Mapping[str, str]) -> Any:
        headers = {"Content-Type": "application/json"}
        return json.loads(self._ask("POST", path, json.dumps(body).encode(), headers))

    def _ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Ask until there is an answer; everything here may be asked for twice."""
        end, pause = time.monotonic() + self._patience, _PAUSES[0]
        while True:
            try:
                return self._try(method, path, body, {**self._headers, **(headers or {})})
            except _Later as later:
                wait = max(pause, later.wait)
                if time.monotonic() + wait > end:
                    raise later.error from None
            time.sleep(wait)
            pause = min(pause * 2, _PAUSES[1])

    def _try(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
        """Ask once."""
        try:
            line = self._connected()
            line.request(method, self._prefix + path, body, headers)
            answer = line.getresponse()
            content = answer.read()
        except ssl.SSLCertVerificationError:
            raise UsageError("the service's certificate is not trusted", hint="give a `context`") from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise _Later(Unavailable(f"the service does not answer ({type(error).__name__})"), 0) from None
        if answer.status in _LATER:
            raise _Later(_error(content), _seconds(answer.headers.get("Retry-After")))
        if answer.status >= 300:
            raise _error(content)
        return content

    def _connected(self) -> http.client.HTTPConnection:
        if self._line is None:
            host, port = self._place
            self._line = (
                http.client.HTTPConnection(host, port, timeout=self._timeout)
                if self._secure is None
                else http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._secure)
            )
        return self._line

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _text(value: Any) -> str:
    """Write times as the service reads them."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isdecimal() else 0.0


def _error(content: bytes) -> QueryCloakError:
    """Make the error that the service names, of the same class as there."""
    try:
        told = json.loads(content)["error"]
        return _KINDS.get(told["code"], QueryCloakError)(told["message"], hint=told.get("hint", ""))
    except (ValueError, KeyError, TypeError):  # something between here and the service has answered
        return Unavailable("the answer is not one of a service's")
