"""A small search engine for trials: made-up results, the same for the same query; it keeps nothing."""

from __future__ import annotations

import asyncio
import hashlib
import html
import json
from http import HTTPStatus
from typing import Final

from querycloak.clients.crowd.web import Request, Response, plain, port_of, serve
from querycloak.clients.crowd.wire import is_query
from querycloak.errors import UsageError

#: How many results there are for every query.
RESULTS: Final = 10


def results(query: str) -> list[str]:
    """Make up addresses for a query; `.example` belongs to nobody."""
    seeds = (hashlib.blake2b(f"{n} {query}".encode(), digest_size=6).hexdigest() for n in range(RESULTS))
    return [f"https://{seed}.example/" for seed in seeds]


def page(query: str) -> bytes:
    """Write the results as a browser shows them."""
    found = "".join(f'<li><a href="{address}">{address}</a></li>' for address in results(query))
    title = html.escape(query)
    return f"<!doctype html><title>{title}</title><h1>{title}</h1><ol>{found}</ol>\n".encode()


async def answer(request: Request) -> Response:
    """Answer `/search?q=…`, as a page, or as JSON with `&format=json`."""
    query = request.one("q")
    if request.path != "/search" or not is_query(query):
        return plain(HTTPStatus.NOT_FOUND)
    if request.one("format") == "json":
        found = json.dumps({"query": query, "results": results(query)}, ensure_ascii=False)
        return Response(HTTPStatus.OK, "application/json", found.encode())
    return Response(HTTPStatus.OK, "text/html", page(query))


def run(host: str, port: int) -> None:
    """Serve until interrupted."""

    async def forever() -> None:
        try:
            server = await serve(answer, host, port)
        except OSError as error:
            raise UsageError(f"the search server cannot listen there: {error.strerror}") from None
        print(f"searching on http://{host}:{port_of(server)}/search?q=…", flush=True)
        await server.serve_forever()

    asyncio.run(forever())
