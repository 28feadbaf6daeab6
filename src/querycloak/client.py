"""Client of the live service: sends records, reads released ones. It needs only the standard library.

    from querycloak.client import Client

    with Client("http://127.0.0.1:8484") as service:
        service.send([{"user": "u1", "query": "rain"}])
        for record in service.released():
            print(record["offset"], record["user"], record["query"])

A refusal by the service is raised as the error that it names (`querycloak.errors`). A request that it cannot
accept now is repeated with the same key for up to `patience` seconds, so no record is lost or counted twice.
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
from typing import Any, Final, Self
from urllib.parse import urlencode, urlsplit

from querycloak import errors
from querycloak.errors import QueryCloakError, Unavailable, UsageError

__all__ = ["Client", "Sent"]

#: Statuses of requests that can be repeated.
_RETRIED: Final = (429, 503)
#: First and longest pause before a retry, in seconds.
_PAUSES: Final = (0.1, 10.0)
#: Longest wait of one long poll, in seconds.
_POLL: Final = 20.0
#: Error classes by the code in a response.
_KINDS: Final = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, QueryCloakError) and kind is not errors.MissingExtra
}


@dataclass
class Sent:
    """Number of records on disk and of skipped ones, and the rows of skipped ones by reason.

    Each batch lists the first hundred rows of a reason; `skipped_total` counts all.
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
    """One connection to a service; use one per thread."""

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
            raise UsageError("not an address of a service", hint="use one like http://127.0.0.1:8484")
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._patience, self._timeout = patience, timeout
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
        if parts.scheme == "https":
            secure = context or ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=timeout, context=secure
            )

    def send(
        self, records: Iterable[Mapping[str, Any]], key: str | None = None, *, batch: int = 1000
    ) -> Sent:
        """Send records in batches; when this returns, all of them are on the service's disk.

        With a `key` of your own, the same call can be repeated after a crash: no batch is accepted twice.
        """
        sent, key, left = Sent(), key or secrets.token_hex(16), iter(records)
        number = 0
        while several := list(islice(left, batch)):
            lines = "".join(json.dumps(one, default=_text) + "\n" for one in several)
            headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"{key}-{number}"}
            answer = self._request("POST", "/v1/records", lines.encode(), headers)
            sent._add(json.loads(answer), number * batch)
            number += 1
        return sent

    def released(
        self, after: int = 0, *, wait: float | None = 0, limit: int = 1000
    ) -> Iterator[dict[str, Any]]:
        """Yield released records after `after`, in release order.

        It ends when nothing new came for `wait` seconds; with None it never does.
        """
        quiet = time.monotonic()
        while True:
            left = _POLL if wait is None else max(0.0, quiet + wait - time.monotonic())
            poll = min(left, _POLL, self._timeout / 2)  # an empty response must arrive before the time-out
            asked = urlencode({"after": after, "limit": limit, "wait": poll})
            lines = self._request("GET", f"/v1/released?{asked}").splitlines()
            for line in lines:
                record: dict[str, Any] = json.loads(line)
                after, quiet = record["offset"], time.monotonic()
                yield record
            if not lines and not left:
                return

    def status(self) -> dict[str, int]:
        """Return the counts of records."""
        return dict(json.loads(self._request("GET", "/v1/status")))

    def profile(self, label: str) -> dict[str, int]:
        """Return how often a label's released records fell into each category."""
        return dict(self._post("/v1/profiles", {"label": label}))

    # Erasure and export

    def erase(self, user: str) -> dict[str, int]:
        """Erase a user; return how many records were held, and how many had been released.

        If the response is lost, the request is repeated; the second response then counts no held records.
        """
        return dict(self._post("/v1/erasures", {"user": user}))

    def export(self, user: str) -> dict[str, Any]:
        """Return what is held of a user, and how many of the user's records were released."""
        return dict(self._post("/v1/exports", {"user": user}))

    def _post(self, path: str, body: Mapping[str, str]) -> Any:
        headers = {"Content-Type": "application/json"}
        return json.loads(self._request("POST", path, json.dumps(body).encode(), headers))

    def _request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Send a request until it is answered; every request here may be repeated."""
        end, pause = time.monotonic() + self._patience, _PAUSES[0]
        while True:
            done = self._request_once(method, path, body, {**self._headers, **(headers or {})})
            if isinstance(done, bytes):
                return done
            error, wait = done[0], max(pause, done[1])
            if time.monotonic() + wait > end:
                raise error
            time.sleep(wait)
            pause = min(pause * 2, _PAUSES[1])

    def _request_once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> bytes | tuple[QueryCloakError, float]:
        """Send a request once; return the response, or an error and the seconds before a retry."""
        try:
            self._connection.request(method, self._prefix + path, body, headers)  # connects if necessary
            answer = self._connection.getresponse()
            content = answer.read()
        except ssl.SSLCertVerificationError:
            raise UsageError(
                "the service's certificate is not trusted", hint="pass a `context` that trusts it"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Unavailable(f"the service does not answer ({type(error).__name__})"), 0.0
        if answer.status in _RETRIED:
            after = answer.headers.get("Retry-After", "")
            return _error(content), float(after) if after.isdecimal() else 0.0
        if answer.status >= 300:
            raise _error(content)
        return content

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()


def _text(value: Any) -> str:
    """Return a time as the service reads it."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _error(content: bytes) -> QueryCloakError:
    try:
        error = json.loads(content)["error"]
        return _KINDS.get(error["code"], QueryCloakError)(error["message"], hint=error.get("hint", ""))
    except (ValueError, KeyError, TypeError):  # a proxy has answered
        return Unavailable("the response is not that of a service")
