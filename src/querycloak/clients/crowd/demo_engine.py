"""A small search engine for trials: synthetic results, equal for equal queries; it stores nothing."""

from __future__ import annotations

import asyncio
import hashlib
import html
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from querycloak.clients import is_query
from querycloak.clients.crowd.endpoint import HttpServer, parameter

#: Number of results of each query.
RESULTS: Final = 10


def results(query: str) -> list[str]:
    """Return synthetic addresses for a query; `.example` belongs to nobody."""
    seeds = (hashlib.blake2b(f"{n} {query}".encode(), digest_size=6).hexdigest() for n in range(RESULTS))
    return [f"https://{seed}.example/" for seed in seeds]


def page(query: str) -> bytes:
    """Return the results as an HTML page."""
    found = "".join(f'<li><a href="{address}">{address}</a></li>' for address in results(query))
    title = html.escape(query)
    return f"<!doctype html><title>{title}</title><h1>{title}</h1><ol>{found}</ol>\n".encode()


async def answer(request: Request) -> Response:
    """Answer `/search?q=…` with a page, or with JSON for `&format=json`."""
    query = parameter(request, "q")
    if not is_query(query):
        return PlainTextResponse("Not Found\n", 404)
    if parameter(request, "format") == "json":
        return JSONResponse({"query": query, "results": results(query)})
    return HTMLResponse(page(query))


def run(host: str, port: int) -> None:
    """Serve until interrupted."""

    async def serve() -> None:
        server = HttpServer(host, port, "the search server")
        await server.start(Starlette(routes=[Route("/search", answer)]), most=None)
        print(f"searching on http://{host}:{server.port}/search?q=…", flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())
