"""`tmn`: what a machine makes of news (paper 004, section 2.2, after TrackMeNot)."""

from __future__ import annotations

from functools import cached_property
from urllib.parse import urlsplit

import numpy as np
import polars as pl

from querycloak.clients.obfuscation import feeds
from querycloak.clients.obfuscation.draws import Draws
from querycloak.clients.obfuscation.evolving import RESULTS, Bag, Evolving
from querycloak.clients.obfuscation.fakes import Fakes, Method
from querycloak.clients.obfuscation.news import newspaper
from querycloak.clients.obfuscation.searches import Searches
from querycloak.clients.obfuscation.settings import Settings
from querycloak.clients.obfuscation.timing import by_machine
from querycloak.errors import UsageError
from querycloak.log import CANONICAL, MISSING


def bag_of(settings: Settings) -> Bag:
    """Open the bag of text that was chosen, or our newspaper."""
    return Bag(feeds.read(settings.bag) if settings.bag else newspaper())


class Tmn(Method):
    """Phrases from a bag of text; each person's client keeps a stock of its own, which evolves."""

    def __init__(self, searches: Searches, settings: Settings, key: bytes) -> None:
        super().__init__(searches, settings, key)
        strange = set(searches.frame.columns) - {*CANONICAL, "row", "landing"}
        if strange:
            raise UsageError(
                f"`tmn` cannot make up values of the column `{min(strange)}`, and empty ones would show",
                hint="leave the column out",
            )
        self.bag = bag_of(settings)
        self._number: dict[str, int] = {}
        self._lower = bool((searches.texts == searches.texts.str.to_lowercase()).all())

    def fakes(self, person: int, draws: Draws) -> Fakes:
        """Let the person's client ask as long as it should, and click like the machine it is."""
        hers = self.searches.time[self.searches.of_person(person)]
        many = draws.whole(self.settings.per_real * hers.size)
        time = by_machine(self.settings.timing or "random", many, hers, self.searches.span, draws)
        client = Evolving(self.bag, draws)
        asked = [client.next() for _ in range(many)]
        source = [self._number.setdefault(self._typed(query), len(self._number)) for query, _ in asked]
        click = [self._click(results, draws) for _, results in asked]
        return Fakes(np.arange(many), time, np.array(source, np.int64), np.array(click, np.int64))

    def _typed(self, query: str) -> str:
        return query.lower() if self._lower else query

    def _click(self, results: list[int], draws: Draws) -> int:
        """Click any of the results, the first no more often than the last; else nothing."""
        if not results or draws.one() >= self.searches.clicked_share:
            return MISSING
        place = draws.pick(len(results))
        return results[place] * RESULTS + place if self._urls[results[place]] is not None else MISSING

    def spelled(self, fakes: Fakes) -> pl.DataFrame:
        """Spell out the phrases, with addresses that look like the log's."""
        wanted = self.searches.frame.columns
        clicked = pl.Series(fakes.click).replace(MISSING, None)
        frame = pl.DataFrame({"query": pl.Series(list(self._number), dtype=pl.String).gather(fakes.source)})
        if "rank" in wanted:
            frame = frame.with_columns(rank=clicked % RESULTS + 1)
        if "url" in wanted:
            frame = frame.with_columns(url=pl.Series(self._urls, dtype=pl.String).gather(clicked // RESULTS))
        if "landing" in wanted:
            texts = pl.Series([f"{a.title} {a.text}".strip() for a in self.bag.articles], dtype=pl.String)
            frame = frame.with_columns(landing=texts.gather(clicked // RESULTS))
        if "category" in wanted:
            from querycloak.text import classify_log

            frame = classify_log(frame).drop("confidence")
        return frame

    @cached_property
    def _urls(self) -> list[str | None]:
        """The articles' addresses, cut as the log's are: sites only, or without `http://`."""
        known = self.searches.frame
        seen = known["url"].drop_nulls() if "url" in known.columns else pl.Series([], dtype=pl.String)
        bare = not seen.str.contains("://", literal=True).any()
        sites = not seen.str.replace(r"^[a-z]+://", "").str.contains(r"/.").any()
        addresses = (article.url for article in self.bag.articles)
        return [_shaped(address, bare, sites) if address else None for address in addresses]


def _shaped(address: str, bare: bool, site: bool) -> str:
    parts = urlsplit(address)
    cut = f"{parts.scheme}://{parts.netloc}" if site else address
    return cut.partition("://")[2] if bare else cut
