"""`shadow`: an invented companion who searches when you do, as you do, about other things."""

from __future__ import annotations

from typing import Final

import numpy as np

from querycloak.clients.obfuscation import threads as found
from querycloak.clients.obfuscation.draws import Draws, FloatArray
from querycloak.clients.obfuscation.fakes import Fakes, FromPeople
from querycloak.clients.obfuscation.people import refuse_alone
from querycloak.clients.obfuscation.searches import Searches
from querycloak.clients.obfuscation.settings import Settings
from querycloak.clients.obfuscation.timing import in_rhythm, session_of, within
from querycloak.log import IntArray

#: Threads of others that are looked at for each thread to be shadowed, and how far their sizes may lie off.
_LOOKED_AT, _AROUND = 48, 128
#: What counts in likeness: size, words, letters, popularity, clicks, new queries; the unit of each.
_UNITS: Final = np.array([0.5, 0.7, 5.0, 0.7, 0.25, 0.3])
_CLICKS: Final = 4


class Shadow(FromPeople):
    """Companions made of other people's threads, poured into the sessions of the one they cover.

    One companion for each whole fake per real search; a part of one shadows some sessions only.
    """

    def __init__(self, searches: Searches, settings: Settings, key: bytes) -> None:
        super().__init__(searches, settings, key)
        refuse_alone(searches, settings.method)
        self.threads = threads = found.find(searches)
        lent = np.flatnonzero(threads.owner >= searches.lenders.start)
        size, topic = threads.size[lent], threads.topic[lent]
        #: Threads by topic and size; behind them all threads by size, for topics that nobody else has.
        self._shelf = lent[np.concatenate([np.lexsort((size, topic)), np.argsort(size, kind="stable")])]
        self._sizes = threads.size[self._shelf]
        counts = np.bincount(topic, minlength=threads.topics)
        self._shelves = np.concatenate([[0], np.cumsum(counts), [2 * size.size]])
        asked = np.bincount(topic, size, minlength=threads.topics)
        self._share = asked / max(asked.sum(), 1.0)

    def fakes(self, person: int, draws: Draws) -> Fakes:
        """Make as many companions as are asked for."""
        hers = self.searches.of_person(person)
        time = self.searches.time[hers]
        parts, known = [], 0
        left = self.settings.per_real
        while left > 0:
            chosen, when = self._companion(person, hers, time, draws)
            if left < 1:
                stays = (draws.uniform(hers.size) < left)[session_of(time)]
                chosen, when = chosen[stays], when[stays]
            part = self._as_asked(chosen, when, self._clicks_like(hers, chosen, draws))
            parts.append(Fakes(part.search + known, part.time, part.source, part.click))
            known, left = known + chosen.size, left - 1
        return Fakes.joined(parts)

    def _companion(
        self, person: int, hers: IntArray, time: IntArray, draws: Draws
    ) -> tuple[IntArray, IntArray]:
        """Give the companion's searches, in time order, and when they are sent.

        She takes up and leaves her threads in the pattern of the real ones, begun elsewhere: when one
        is repeated the other need not be.
        """
        own, local = np.unique(self.threads.of[hers], return_inverse=True)
        pattern = np.roll(local, draws.pick(hers.size))
        begins, borrowed = self._borrowed(person, own, draws)
        chosen = borrowed[begins[pattern] + _occurrence(pattern)]
        if not self.searches.timed:
            return chosen, np.zeros(hers.size, np.int64)
        return chosen, within(in_rhythm(time, self.searches.pauses, draws), self.searches.span)

    def _borrowed(self, person: int, own: IntArray, draws: Draws) -> tuple[IntArray, IntArray]:
        """Find for each of her threads as many searches of others: alike, but about another topic.

        Give where those of each thread begin, and all of them one after the other.
        """
        topic = self._other_topics(own, draws)[self.threads.topic[own]]
        used: set[int] = set()
        found: dict[int, IntArray] = {}
        for place in draws.order(own.size).tolist():
            found[place] = self._as_many(person, int(own[place]), int(topic[place]), used, draws)
        sizes = self.threads.size[own]
        return np.cumsum(sizes) - sizes, np.concatenate([found[place] for place in range(own.size)])

    def _as_many(self, person: int, thread: int, topic: int, used: set[int], draws: Draws) -> IntArray:
        """Put one thread behind the other until there are enough; asking again is the last resort."""
        threads, missing = self.threads, int(self.threads.size[thread])
        parts: list[IntArray] = []
        while missing > 0:
            other = self._alike(person, thread, missing, topic, used, draws)
            again = other in used
            used.add(other)
            part = threads.search[threads.begins[other] : threads.begins[other + 1]][:missing]
            parts.append(part)
            missing -= part.size
            if again:
                whole = np.concatenate(parts)
                return np.resize(whole, whole.size + missing)
        return np.concatenate(parts)

    def _alike(self, person: int, thread: int, size: int, topic: int, used: set[int], draws: Draws) -> int:
        """Look at some threads of the topic and about that size; take the one most alike in style."""
        threads = self.threads
        for shelf in (topic, threads.topics):
            near = self._near(size, shelf, draws)
            near = near[self.searches.lends(threads.owner[near], person)]
            if near.size:
                break
        else:
            near = np.flatnonzero(self.searches.lends(threads.owner, person))
        wanted = np.concatenate([[np.log(size)], threads.style[thread, 1:]])
        unlike = _unlikeness(threads.style[near], wanted)
        best: int = next((t for t in near[np.argsort(unlike, kind="stable")].tolist() if t not in used), -1)
        return best if best >= 0 else int(near[np.argmin(unlike)])

    def _near(self, size: int, shelf: int, draws: Draws) -> IntArray:
        low, high = int(self._shelves[shelf]), int(self._shelves[shelf + 1])
        at = low + int(np.searchsorted(self._sizes[low:high], size))
        first, last = max(low, at - _AROUND), min(high, at + _AROUND)
        return self._shelf[first + np.unique(draws.below(last - first, _LOOKED_AT))] if last > first else (
            np.zeros(0, np.int64)
        )  # fmt: skip

    def _other_topics(self, own: IntArray, draws: Draws) -> IntArray:
        """Give for each topic the one that stands in for it, the same for the companion's whole life.

        What she asks most about is replaced first, by topics that are popular in the log and not with her.
        """
        threads = self.threads
        asked = np.bincount(threads.topic[own], threads.size[own], minlength=threads.topics) / max(
            threads.size[own].sum(), 1
        )
        weight = self._share * (self._share / np.maximum(self._share + asked, 1e-12)) ** 2
        chance = np.log(np.maximum(weight, 1e-12)) - np.log(-np.log1p(-draws.uniform(threads.topics)))
        stands_in = np.empty(threads.topics, np.int64)
        asked[found.GOING], chance[found.GOING] = np.inf, np.inf  # addresses are replaced by addresses
        stands_in[np.argsort(-asked, kind="stable")] = np.argsort(-chance, kind="stable")
        return stands_in

    def _clicks_like(self, hers: IntArray, chosen: IntArray, draws: Draws) -> IntArray:
        """Say which fakes keep their clicks, so that no larger share of them is clicked than of hers."""
        clicked = (self.searches.clicks[chosen] > 0).mean() if chosen.size else 0.0
        wanted = (self.searches.clicks[hers] > 0).mean()
        keeps = wanted / clicked if clicked > wanted else 1.0
        return (draws.uniform(chosen.size) < keeps).astype(np.int64)


def _occurrence(pattern: IntArray) -> IntArray:
    """Say of each element how often the same one came before."""
    by_kind = np.argsort(pattern, kind="stable")
    starts = np.searchsorted(pattern[by_kind], pattern[by_kind])
    turn = np.empty_like(pattern)
    turn[by_kind] = np.arange(pattern.size) - starts
    return turn


def _unlikeness(these: FloatArray, that: FloatArray) -> FloatArray:
    """Compare styles; too many clicks do no harm, since clicks can be left out."""
    apart = (these - that) / _UNITS
    apart[:, _CLICKS] = np.minimum(apart[:, _CLICKS], 0.0)
    total: FloatArray = np.abs(apart).sum(axis=1)
    return total
