"""Audits of `graph-suppress`, on the release alone: which queries led to which pages, counted once more."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

import polars as pl

from querycloak.audits.evidence import Evidence, number
from querycloak.audits.lineage import faults
from querycloak.guarantee import Audit, NotCheckable

#: Gives what to count in the place of each URL.
_Of = Callable[[str], str]
#: A scheme has something behind it; what has none starts with its domain name.
_BEFORE_HOST: Final = re.compile(r"\A(?:(?s:.)*?://(?=(?s:.)))?(?:[^/?#]*@)?")
_SCHEME_AND_WWW: Final = re.compile(r"\A(?:(?s:.)*?://(?=(?s:.)))?(?:www\.)?")


def audits(k: int, targeted: str, sites: int, *, disconnected: bool) -> tuple[Audit, ...]:
    """Test every step that is on, and with the truth, that no query was shown in part."""
    documents, places = several(k, "URL"), several(sites, "site")
    steps = (
        (disconnected, "no two released queries led to the same URL", _no_common_url),
        (k, f"each released query led to at least {documents}", partial(_at_least, k, documents, str)),
        (
            targeted != "off",
            "no released query names the page that was clicked on",
            partial(_names_nothing, targeted),
        ),
        (sites, f"each released query led to at least {places}", partial(_at_least, sites, places, site)),
    )
    found = (Audit(check, run) for on, check, run in steps if on)
    return (*found, Audit("each released query has all of its rows", _whole, needs_truth=True))


def several(count: int, what: str) -> str:
    """Return a number with its noun: `1 site`, `2 sites`."""
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def site(url: str) -> str:
    """Return the domain name of a URL in small letters, without `www.` in front."""
    host = re.split("[/?#:]", _BEFORE_HOST.sub("", url, count=1), maxsplit=1)[0].strip(".")
    return host.casefold().removeprefix("www.")


def names(query: str, url: str, targeted: str) -> bool:
    """Whether a word of the query is the URL, its domain name, or (`name`) the longest part of that."""
    host = site(url)
    targets = {_plain(url), host}
    if targeted == "name":
        parts = (part for part in reversed(host.split(".")[:-1]) if part != "www")
        targets.add(max(parts, key=len, default=""))
    return any(_plain(word) in targets - {""} for word in query.split())


def _plain(text: str) -> str:
    return _SCHEME_AND_WWW.sub("", text.casefold(), count=1).rstrip("/")


def _clicks(evidence: Evidence) -> pl.DataFrame:
    """Return query and URL of the released rows; a method that ran later may have left none to look at."""
    shown = evidence.text()
    if "url" not in shown.collect_schema():
        raise NotCheckable("the release has no URLs")
    clicks = shown.select("released_row", "query", "url").collect()
    if evidence.later and clicks["url"].null_count() == clicks.height:
        raise NotCheckable("the release has no URLs: a later method may have emptied them")
    return clicks


def _no_common_url(evidence: Evidence) -> str:
    clicks = _clicks(evidence).lazy().drop_nulls("url")
    pairs = clicks.select("released_row", number(pl.col("query")), number(pl.col("url")))
    shared = pairs.filter(pl.col("query").n_unique().over("url") > 1)
    return faults(shared, "show a URL that another released query led to as well")


def _at_least(least: int, what: str, of: _Of, evidence: Evidence) -> str:
    clicks = _clicks(evidence)
    urls = clicks["url"].drop_nulls().unique()
    there = pl.DataFrame({"url": urls, "there": pl.Series([of(url) for url in urls], dtype=pl.String)})
    beside = clicks.join(there, on="url", how="left")
    few = beside.filter(pl.col("there").drop_nulls().n_unique().over("query") < least)
    if few.height and evidence.later:
        raise NotCheckable("later methods may have removed rows of a query that led to enough")
    return faults(few.lazy(), f"show a query that led to fewer than {what}")


def _names_nothing(targeted: str, evidence: Evidence) -> str:
    clicks = _clicks(evidence).drop_nulls(["query", "url"])
    pairs = clicks.select("query", "url").unique()
    named = [names(query, url, targeted) for query, url in pairs.iter_rows()]
    found = pairs.filter(pl.Series(named, dtype=pl.Boolean))
    return faults(
        clicks.join(found, on=["query", "url"], how="semi").lazy(), "name the page that was clicked on"
    )


def _whole(evidence: Evidence) -> str:
    if evidence.earlier or evidence.later:
        raise NotCheckable("other methods of this release may remove records of a query too")
    rows = evidence.asked.lazy()
    if evidence.erased is not None:  # nothing leaves before the end, so nothing of theirs ever did
        rows = rows.join(evidence.erased, on="user", how="anti")
    asked = rows.group_by("query").agg(asked=pl.len())
    shown = evidence.release.with_columns(shown=pl.len().over("query")).join(asked, on="query", how="left")
    torn = shown.filter(pl.col("shown").ne_missing(pl.col("asked")))
    return faults(torn, "show a query with another number of rows than were asked")
