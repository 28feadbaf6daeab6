"""`shadow`: a fictitious companion that searches when the user does, in that style, on other topics."""

from __future__ import annotations

from typing import Final

import numpy as np

from querycloak.clients.obfuscation.base import CoverSettings, DummySearches
from querycloak.clients.obfuscation.borrowed import BorrowedCover
from querycloak.clients.obfuscation.history import SearchHistory
from querycloak.clients.obfuscation.random_stream import KeyedStream
from querycloak.clients.obfuscation.threads import NAVIGATIONAL, find_threads
from querycloak.clients.obfuscation.timing import companion_times, reflect_into, session_of
from querycloak.log import FloatArray, IntArray

#: Candidate threads for each thread of the user, and the range of places by size from which they are drawn.
_LOOKED_AT, _AROUND = 48, 128
#: Units of the features of a thread: size, words, characters, popularity, clicks, new queries.
_UNITS: Final = np.array([0.5, 0.7, 5.0, 0.7, 0.25, 0.3])
_CLICKS: Final = 4


class Shadow(BorrowedCover):
    """Companions made of other users' threads, in the sessions of the user that they cover.

    One companion for each dummy search per real search; a fraction covers some sessions only.
    """

    name = "shadow"

    class Settings(CoverSettings):
        """Settings of `shadow`."""

    def __init__(self, history: SearchHistory, settings: CoverSettings, key: bytes) -> None:
        super().__init__(history, settings, key)
        self.threads = threads = find_threads(history)
        usable = np.flatnonzero(threads.owner >= history.source_users.start)
        size, topic = threads.size[usable], threads.topic[usable]
        #: Threads by topic and size, then all threads by size, for topics that no other user has.
        self._threads_by_topic = usable[
            np.concatenate([np.lexsort((size, topic)), np.argsort(size, kind="stable")])
        ]
        self._sizes = threads.size[self._threads_by_topic]
        counts = np.bincount(topic, minlength=threads.topics)
        self._topic_begins = np.concatenate([[0], np.cumsum(counts), [2 * size.size]])
        asked = np.bincount(topic, size, minlength=threads.topics)
        self._share = asked / max(asked.sum(), 1.0)

    def fakes(self, user: int, stream: KeyedStream) -> DummySearches:
        """Return the searches of the companions."""
        real = self.history.of_user(user)
        time = self.history.time[real]
        parts, known = [], 0
        left = self.settings.per_real
        while left > 0:
            chosen, when = self._companion(user, real, time, stream)
            if left < 1:
                stays = (stream.uniform(real.size) < left)[session_of(time)]
                chosen, when = chosen[stays], when[stays]
            part = self._copy(chosen, when, self._clicks_like(real, chosen, stream))
            parts.append(DummySearches(part.search + known, part.time, part.source, part.click))
            known, left = known + chosen.size, left - 1
        return DummySearches.joined(parts)

    def _companion(
        self, user: int, real: IntArray, time: IntArray, stream: KeyedStream
    ) -> tuple[IntArray, IntArray]:
        """Return the companion's searches, in time order, and their times.

        The companion changes threads in the pattern of the real ones, from another start: when the user
        repeats a query, the companion need not.
        """
        own, local = np.unique(self.threads.of[real], return_inverse=True)
        pattern = np.roll(local, stream.pick(real.size))
        begins, borrowed = self._borrowed(user, own, stream)
        chosen = borrowed[begins[pattern] + _occurrence(pattern)]
        if not self.history.timed:
            return chosen, np.zeros(real.size, np.int64)
        return chosen, reflect_into(companion_times(time, self.history.pauses, stream), self.history.span)

    def _borrowed(self, user: int, own: IntArray, stream: KeyedStream) -> tuple[IntArray, IntArray]:
        """Return similar searches of other users, on other topics, as many as each thread has.

        Returned are the place where those of each thread begin, and all of them one after the other.
        """
        topic = self._other_topics(own, stream)[self.threads.topic[own]]
        used: set[int] = set()
        found: dict[int, IntArray] = {}
        for place in stream.order(own.size).tolist():
            found[place] = self._as_many(user, int(own[place]), int(topic[place]), used, stream)
        sizes = self.threads.size[own]
        return np.cumsum(sizes) - sizes, np.concatenate([found[place] for place in range(own.size)])

    def _as_many(self, user: int, thread: int, topic: int, used: set[int], stream: KeyedStream) -> IntArray:
        """Join threads until there are enough searches; a thread is used again only if no other is left."""
        threads, missing = self.threads, int(self.threads.size[thread])
        parts: list[IntArray] = []
        while missing > 0:
            other = self._most_similar(user, thread, missing, topic, used, stream)
            again = other in used
            used.add(other)
            part = threads.search[threads.begins[other] : threads.begins[other + 1]][:missing]
            parts.append(part)
            missing -= part.size
            if again:
                whole = np.concatenate(parts)
                return np.resize(whole, whole.size + missing)
        return np.concatenate(parts)

    def _most_similar(
        self, user: int, thread: int, size: int, topic: int, used: set[int], stream: KeyedStream
    ) -> int:
        """Return the candidate of the topic and about that size whose style is most similar."""
        threads = self.threads
        for group in (topic, threads.topics):
            near = self._near(size, group, stream)
            near = near[self.history.can_source(threads.owner[near], user)]
            if near.size:
                break
        else:
            near = np.flatnonzero(self.history.can_source(threads.owner, user))
        wanted = np.concatenate([[np.log(size)], threads.style[thread, 1:]])
        distance = _distances(threads.style[near], wanted)
        best: int = next((t for t in near[np.argsort(distance, kind="stable")].tolist() if t not in used), -1)
        return best if best >= 0 else int(near[np.argmin(distance)])

    def _near(self, size: int, group: int, stream: KeyedStream) -> IntArray:
        low, high = int(self._topic_begins[group]), int(self._topic_begins[group + 1])
        at = low + int(np.searchsorted(self._sizes[low:high], size))
        first, last = max(low, at - _AROUND), min(high, at + _AROUND)
        if last <= first:
            return np.zeros(0, np.int64)
        near: IntArray = self._threads_by_topic[first + np.unique(stream.below(last - first, _LOOKED_AT))]
        return near

    def _other_topics(self, own: IntArray, stream: KeyedStream) -> IntArray:
        """Return for each topic the one that replaces it, the same for all of the companion's searches.

        The user's most frequent topics are replaced first, by topics that are popular with other users.
        """
        threads = self.threads
        asked = np.bincount(threads.topic[own], threads.size[own], minlength=threads.topics) / max(
            threads.size[own].sum(), 1
        )
        weight = self._share * (self._share / np.maximum(self._share + asked, 1e-12)) ** 2
        chance = np.log(np.maximum(weight, 1e-12)) - np.log(-np.log1p(-stream.uniform(threads.topics)))
        replaced_by = np.empty(threads.topics, np.int64)
        asked[NAVIGATIONAL], chance[NAVIGATIONAL] = np.inf, np.inf  # addresses are replaced by addresses
        replaced_by[np.argsort(-asked, kind="stable")] = np.argsort(-chance, kind="stable")
        return replaced_by

    def _clicks_like(self, real: IntArray, chosen: IntArray, stream: KeyedStream) -> IntArray:
        """Return 1 for dummy searches that keep their clicks: no larger share than of the real ones."""
        clicked = (self.history.clicks[chosen] > 0).mean() if chosen.size else 0.0
        wanted = (self.history.clicks[real] > 0).mean()
        keeps = wanted / clicked if clicked > wanted else 1.0
        return (stream.uniform(chosen.size) < keeps).astype(np.int64)


def _occurrence(pattern: IntArray) -> IntArray:
    """Return how often each element occurred before."""
    by_kind = np.argsort(pattern, kind="stable")
    starts = np.searchsorted(pattern[by_kind], pattern[by_kind])
    turn = np.empty_like(pattern)
    turn[by_kind] = np.arange(pattern.size) - starts
    return turn


def _distances(these: FloatArray, that: FloatArray) -> FloatArray:
    """Return distances of styles; more clicks do no harm, since clicks can be left out."""
    difference = (these - that) / _UNITS
    difference[:, _CLICKS] = np.minimum(difference[:, _CLICKS], 0.0)
    total: FloatArray = np.abs(difference).sum(axis=1)
    return total
