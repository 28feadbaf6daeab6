"""`graph-suppress`: queries go until no two of those left led to the same page (003, 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from querycloak import settings as declared
from querycloak.dictionary import Dictionaries, distinct
from querycloak.errors import ParameterError
from querycloak.guarantee import Guarantee, Sentence
from querycloak.keys import derive
from querycloak.log import COLUMN_BIT, MISSING, Batch, Flags, IntArray
from querycloak.methods.graph_suppress import click_graph as graph
from querycloak.methods.graph_suppress.audit import audits, several
from querycloak.methods.graph_suppress.click_graph import Clicks
from querycloak.methods.shared.labels import LabelMethod, labels_setting
from querycloak.methods.shared.records import RecordProtector
from querycloak.protector import Traits
from querycloak.settings import setting
from querycloak.text.urls import names_target, site_of

#: Why records stay behind, step by step.
FEW_DOCUMENTS = "the query led to too few URLs"
TARGETED = "the query names what was clicked on"
FEW_SITES = "the query led to too few sites"
SHARED = "the query shares a URL with another"


class GraphSuppress(LabelMethod, RecordProtector):
    """Remove queries until no two of those left led to a click on the same URL.

    The steps of Poblete et al., each a setting: queries that led to few documents, queries that name what
    was clicked on, queries that led to few sites, and then those that are connected with others. A log
    knows only the documents that somebody clicked on, not those that were found.

    Guarantee: no two different released queries led to the same URL: the graph of queries and clicks has
    density zero. Every other step that is on holds for each released query too.

    Limits: whose a search was: a label's searches stay together, with their words, times and clicks; what a
    query says, and what its clicked page says; linking two queries by anything but a common URL: words,
    times, labels; several releases of overlapping logs.

    Reference: Poblete et al., as A. Erola, "Contributions to privacy in web search engines", tells it in 3.2.
    """

    name = "graph-suppress"
    exempt: ClassVar[dict[str, str]] = {
        "memory_stays_bounded": "any later click can connect two queries, so all are held until the log ends"
    }

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `graph-suppress`."""

        k: int = setting(
            2,
            at_least=0,
            stronger="larger",
            help="different URLs that a query must have led to; 0: any number",
        )
        targeted: str = setting(
            "host",
            choices=("off", "host", "name"),
            stronger="last",
            help="remove queries with the clicked URL or its `host` as a word, or also the host's `name`",
        )
        sites: int = setting(
            2,
            at_least=0,
            stronger="larger",
            help="different sites that a query must have led to; 0: any number",
        )
        density: str = setting(
            "greedy",
            choices=("greedy", "all", "off"),
            help="of queries with a common URL, remove the most connected first, or `all` of them",
        )
        labels: str = labels_setting()

        def __post_init__(self) -> None:
            super().__post_init__()
            if not self.k and not self.sites and self.targeted == self.density == "off":
                raise ParameterError(
                    "graph-suppress: every step is off, so nothing would be removed or promised",
                    hint="use `density=greedy`, or turn on another step",
                )

    settings: Settings

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [
            cls.Settings(),
            cls.Settings(k=2, targeted="name", density="all", labels="fresh"),
            cls.Settings(k=1, targeted="off", sites=1, density="greedy"),
            cls.Settings(targeted="off", sites=2, density="off"),
        ]

    @classmethod
    def traits(cls, settings: Settings) -> Traits:
        """Return the properties of `graph-suppress` with these settings."""
        return Traits(
            reads=frozenset({"user", "query", "url"}),
            requires=frozenset({"user", "query", "url"}),
            rewrites=frozenset({"user"}),
            promised_columns=frozenset({"url"}),
            needs_whole_log=True,
            unit="row",  # a search can have several clicks, and each counts
            fresh_labels=settings.labels == "fresh",
            needs_authors=True,  # methods that exchange labels would separate the rows of a search
            main_setting="k",
        )

    @classmethod
    def promise(cls, settings: Settings) -> Guarantee:
        """Return the guarantee of `graph-suppress` with these settings."""
        s = settings
        *steps, whole = audits(s.k, s.targeted, s.sites, disconnected=s.density != "off")
        return Guarantee.of(
            *(Sentence(text, (audit, whole)) for text, audit in zip(_sentences(s), steps, strict=True)),
            limits=(
                "attribution: the searches of a label stay together, with their words, times and clicks",
                "the text of a query, and the address of a clicked page",
                "linking two queries by anything but a common URL: words, times, labels",
                "several releases of overlapping logs",
            ),
        )

    def push(self, batch: Batch) -> Batch:
        """Hold everything until the log has ended."""
        known = (batch.query >= 0) & (batch.blank & COLUMN_BIT["query"] == 0)
        self.drop(batch.row[~known], "no query")
        self._held.add(batch[known])
        return Batch.empty(self.texts)

    def close(self) -> Batch:
        """Go through the steps; all records of a query that one of them removes stay behind.

        Once is enough: a query that is removed changes neither the documents nor the sites of another.
        """
        held = self._held.take()
        codes, query = np.unique(held.query, return_inverse=True)
        keep = np.ones(codes.size, np.bool_)
        removed: dict[str, int] = {}
        for reason, remaining in self._steps(_Pages.of(held, codes, query)):
            gone = keep & ~remaining(keep)
            self.drop(held.row[gone[query]], reason)
            removed[reason] = int(gone.sum())
            keep &= ~gone
        self.explanation = {"different_queries": f"{keep.size:,}", "removed_of_these": removed}
        return self._labels.apply(held[keep[query]])

    def _steps(self, pages: _Pages) -> Iterator[tuple[str, Callable[[Flags], Flags]]]:
        """Yield each step that is on: the reason of removal, and the queries that it keeps."""
        s, clicks = self.settings, pages.clicks
        if s.k:
            yield FEW_DOCUMENTS, lambda keep: keep & (graph.clicked_documents(clicks) >= s.k)
        if s.targeted != "off":
            yield TARGETED, lambda keep: keep & ~pages.targeted(s.targeted)
        if s.sites:
            yield FEW_SITES, lambda keep: keep & ~graph.few_sites(clicks, pages.sites(), s.sites)
        if s.density == "all":
            yield SHARED, lambda keep: graph.without_neighbours(clicks, keep)
        if s.density == "greedy":
            ties = self.texts.query.fingerprints(pages.queries, derive(self.key, "ties of queries"))
            yield SHARED, lambda keep: graph.disconnected(clicks, keep, ties)


@dataclass(frozen=True)
class _Pages:
    """Which queries led to which pages, as numbers from 0; `queries` and `urls` are the codes behind them."""

    clicks: Clicks
    queries: IntArray
    urls: IntArray
    texts: Dictionaries

    @classmethod
    def of(cls, held: Batch, codes: IntArray, query: IntArray) -> _Pages:
        """Number the URLs that may be seen: an earlier method may have emptied some."""
        seen = (held.url >= 0) & (held.blank & COLUMN_BIT["url"] == 0)
        urls = np.unique(held.url[seen])
        url = np.where(seen, np.searchsorted(urls, held.url), MISSING)
        return cls(graph.click_graph(query, url, codes.size, urls.size), codes, urls, held.texts)

    def targeted(self, by: str) -> Flags:
        """Find the queries that name what was clicked on."""
        query = np.repeat(np.arange(self.queries.size), graph.clicked_documents(self.clicks))
        asked = self.texts.query.decode(self.queries[query])
        found = self.texts.url.decode(self.urls[self.clicks.urls])
        named = (names_target(q, u, by) for q, u in zip(asked, found, strict=True))
        return graph.well_targeted(query, np.fromiter(named, np.bool_, count=query.size), self.queries.size)

    def sites(self) -> IntArray:
        """Number the site of each URL."""
        urls = self.texts.url.decode(self.urls)
        return distinct(pl.Series([site_of(url) for url in urls], dtype=pl.String))[1]


def _sentences(s: GraphSuppress.Settings) -> Iterator[str]:
    """Yield the sentences of the guarantee, in the order of its audits."""
    if s.density != "off":
        yield "no two released queries led to the same URL (density zero)"
    if s.k:
        yield f"each released query led to at least {several(s.k, 'URL')}"
    if s.targeted != "off":
        yield "no released query names the page that was clicked on"
    if s.sites:
        yield f"each released query led to at least {several(s.sites, 'site')}"
