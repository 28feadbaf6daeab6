"""The removal of section 3.2 of paper 003, with dictionaries and sets, one step after the other."""

from __future__ import annotations

from urllib.parse import urlsplit

from tests.reference.naive_microagg import disconnect, edges


def host(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


def names(query: str, url: str, targeted: str) -> bool:
    words = [word.removeprefix("http://").removeprefix("www.").rstrip("/") for word in query.split()]
    targets = {url.removeprefix("http://").removeprefix("www.").rstrip("/"), host(url)}
    if targeted == "name":
        targets |= {max(host(url).split(".")[:-1], key=len)}
    return any(word in targets for word in words)


def remaining(rows, k, targeted, sites, density, rank) -> set[str]:
    """Give the queries that are left of rows (query, url or None); of equals, the least rank goes first."""
    clicked = {query: {url for q, url in rows if q == query and url} for query, _ in rows}
    left = {query for query in clicked if len(clicked[query]) >= k}
    if targeted != "off":
        left = {query for query in left if not any(names(query, url, targeted) for url in clicked[query])}
    left = {query for query in left if len({host(url) for url in clicked[query]}) >= sites}
    if density == "all":
        return left - {query for edge in edges(clicked, left) for query in edge}
    return disconnect(clicked, left, rank) if density == "greedy" else left
