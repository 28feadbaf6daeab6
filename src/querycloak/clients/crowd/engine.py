"""`HttpEngine`: submits a query to the search engine with one GET, within limits of time and size.

No cookie, no redirect, no proxy and no connection is used for more than one query.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final
from urllib.parse import quote

import httpx

from querycloak.clients.crowd.messages import MEDIA_TYPES, MediaType, Page, Rejected

_HEADERS: Final = {"Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}


class EngineUnavailable(Exception):
    """The engine could not be reached, or did not answer in time or by the rules of HTTP."""


class HttpEngine:
    """A search engine behind an address with `{query}` in it; a rejection is any status but 200."""

    def __init__(self, template: str, within: float, limit: int, agent: str) -> None:
        self._before, _, self._after = template.partition("{query}")
        self._within, self._limit = within, limit
        self._headers = {"User-Agent": agent, **_HEADERS}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._transport = httpx.AsyncHTTPTransport(verify=ssl.create_default_context(), limits=limits)

    async def search(self, query: str) -> Page | Rejected:
        """Submit a query; raise EngineUnavailable if the engine did not answer."""
        address = self._before + quote(query, safe="") + self._after
        try:
            async with asyncio.timeout(self._within):
                return await self._get(httpx.Request("GET", address, headers=self._headers))
        except (httpx.TransportError, httpx.DecodingError, httpx.InvalidURL, TimeoutError):
            raise EngineUnavailable from None

    async def _get(self, request: httpx.Request) -> Page | Rejected:
        response = await self._transport.handle_async_request(request)
        try:
            length = response.headers.get("content-length", "0")
            if response.status_code != 200 or (length.isdecimal() and int(length) > self._limit):
                return Rejected()
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self._limit:
                    return Rejected()
            return Page(_media_type(response.headers.get("content-type", "")), bytes(body))
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close open connections."""
        await self._transport.aclose()


def _media_type(header: str) -> MediaType:
    """Return the media type; plain text for one that is not forwarded."""
    named = header.partition(";")[0].strip().lower()
    return next((kind for kind in MEDIA_TYPES if kind == named), "text/plain")
