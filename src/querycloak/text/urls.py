"""Words and domain names of URLs, and whether a query names the page that was clicked.

Reference: the well-targeted queries of Poblete et al. (paper 003, 3.2).
"""

from __future__ import annotations

import polars as pl


def url_words(urls: pl.Series) -> pl.Series:
    """Return the words of URLs: host without `www` and ending, then the path."""
    bare = urls.cast(pl.String).fill_null("").str.to_lowercase()
    bare = bare.str.replace(r"^[a-z]+://", "").str.replace(r"^www\d?\.", "").str.replace(r"[?#].*$", "")
    return bare.str.replace(r"^([^/]*)\.[a-z]{2,4}(:\d+)?(/|$)", "$1 $3")


def names_target(query: str, url: str, site: str = "host") -> bool:
    """Check whether a word of the query is the URL, its domain name, or (`site="name"`) the name within that.

    A leading `www.` and the scheme do not matter. The thesis says "the site of the URL as a keyword";
    `name` also takes the longest label for it, as people type it.

    >>> names_target("www.shop.example shoes", "http://shop.example/a")
    True
    >>> names_target("shop shoes", "http://www.shop.example")
    False
    >>> names_target("shop shoes", "http://www.shop.example", "name")
    True
    """
    words = {_bare(word) for word in query.split()}
    labels = labels_of(url)
    named = {_bare(url), site_of(url)}
    if site == "name" and len(labels) > 1:
        named.add(max((label for label in labels[1:] if label != "www"), key=len, default=""))
    return not words.isdisjoint(named - {""})


def site_of(url: str) -> str:
    """Return the domain name of a URL without `www.`: its site.

    >>> site_of("http://www.Shop.example/a?b")
    'shop.example'
    """
    return ".".join(reversed(labels_of(url))).removeprefix("www.")


def _bare(text: str) -> str:
    """Drop the scheme, `www.` and a slash at the end."""
    text = text.casefold()
    return (text.partition("://")[2] or text).removeprefix("www.").rstrip("/")


def labels_of(url: str) -> tuple[str, ...]:
    """Return the labels of a URL's domain name from the right, in lower case.

    >>> labels_of("http://user@www.Shop.example:80/a?b")
    ('example', 'shop', 'www')
    """
    rest = url.partition("://")[2] or url
    for mark in "/?#":
        rest = rest.partition(mark)[0]
    host = rest.rpartition("@")[2].partition(":")[0].strip(".")
    return tuple(reversed(host.casefold().split("."))) if host else ()
