"""Distances between users by the text of their searches (paper 003, 5.3.1.2), for all pairs, in parallel.

All pairs of users are compared, but few pairs of searches. A search of one user stops comparing with the
other's as soon as one is nearer than the largest gap known for the two users. A search that cannot be nearer
than the best so far is left after its cheap parts. Searches far from all others (many and long words, deep
ranks) open large gaps early, so they are compared first and found last.

Gaps inside are six times the distances of equation 5.3, whose parts are sums: there is no division until the
end.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.kernels import edit_distance
from querycloak.kernels.arrays import spans
from querycloak.kernels.edit_distance import Fractions, Words
from querycloak.log import NO_TIME, Batch, Flags, FloatArray, IntArray
from querycloak.methods.microaggregation.tree_distance import UNIT, Ints
from querycloak.text.urls import labels_of

#: Weights of the difference in the number of words, and of the Hausdorff distance of the words, in equation
#: 5.1: as its text says, and as it is printed.
WEIGHTS: Final = {"text": (1.0, 2.0), "printed": (2.0, 1.0)}
#: Different words of a query that are compared, the first ones: each is compared with all others.
MOST_WORDS: Final = 32
#: Tables of word distances may take this many bytes at a time.
MOST_BYTES: Final = 1 << 30
_PARTS: Final = 16  # small enough that no thread is idle for long at the end
#: Steps between 0 and the largest value of a summary vector.
_STEPS: Final = 1 << 20
#: With or without a rank, with or without a host.
KINDS = 4
#: Columns of a search: numbers, and whole numbers (the host, and the bounds of its words).
TIME, TERMS, RANK = range(3)
HOST, LOW, HIGH = range(3)
#: More than rounding can add to a sum of a few numbers up to 1.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Strings:
    """Distinct query strings and the spelling of their words.

    String s has `words[starts[s]:starts[s + 1]]`, each once.
    `terms` counts its words with repetitions; word w is spelled `letters[bounds[w]:bounds[w + 1]]`.
    """

    starts: IntArray
    words: IntArray
    terms: IntArray
    letters: IntArray
    bounds: IntArray


@dataclass(frozen=True)
class Hosts:
    """Distinct domain names: row h of `labels` has the numbers of its labels from the right, then -1."""

    labels: IntArray
    depth: IntArray


@dataclass(frozen=True)
class Histories:
    """Searches, grouped by user: user a has those from `starts[a]` to `starts[a + 1]`.

    `time` and `rank` are normalised, below 0 where there is none; `host` is -1 where there is none.
    """

    starts: IntArray
    time: FloatArray
    rank: FloatArray
    host: IntArray
    string: IntArray


def normalise(values: npt.NDArray[Any], known: Flags | None = None) -> FloatArray:
    """Return the known values mapped to 0 … 1 by their least and greatest, and -1 for the others."""
    known = np.ones(values.size, bool) if known is None else known
    out = np.full(values.size, -1.0)
    if known.any():
        low, high = values[known].min(), values[known].max()
        out[known] = (values[known] - low) / max(high - low, 1)
    return out


def _edges(sizes: Iterable[int]) -> IntArray:
    return np.cumsum([0, *sizes], dtype=np.int64)


def encode_strings(queries: Sequence[str]) -> Strings:
    """Return distinct query strings as arrays: words split at white space, and their letters."""
    known: dict[str, int] = {}
    split = [query.split() for query in queries]
    distinct = [list(dict.fromkeys(terms))[:MOST_WORDS] for terms in split]
    words = [[known.setdefault(word, len(known)) for word in some] for some in distinct]
    flat = np.array([word for some in words for word in some], np.int64)
    letters = np.frombuffer("".join(known).encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
    terms = np.array([len(terms) for terms in split], np.int64)
    return Strings(_edges(map(len, words)), flat, terms, letters, _edges(map(len, known)))


def name_hosts(urls: Sequence[str]) -> tuple[IntArray, Hosts]:
    """Return the number of each URL's domain name (-1: it has none), and the domain names."""
    names: dict[tuple[str, ...], int] = {}
    labels: dict[str, int] = {}
    found = [labels_of(url) for url in urls]
    numbers = [names.setdefault(host, len(names)) if host else -1 for host in found]
    table = np.full((len(names), max(map(len, names), default=1)), -1, np.int64)
    for row, name in zip(table, names, strict=True):
        row[: len(name)] = [labels.setdefault(label, len(labels)) for label in name]
    return np.array(numbers, np.int64), Hosts(table, np.array([*map(len, names)], np.int64))


def starts_of(user: IntArray) -> IntArray:
    """Return the begin of each user's records, and the end of the last; records come user by user."""
    return np.append(np.flatnonzero(np.diff(user, prepend=-1)), user.size)


def distances(held: Batch, weights: str = "text") -> FloatArray:
    """Return the distance of equation 5.4 for every pair of users; records come user by user."""
    urls, url = np.unique(held.url, return_inverse=True)
    host, hosts = name_hosts(held.texts.url.decode(urls).fill_null("").to_list())
    strings, string = _strings(held)
    histories = Histories(
        starts=starts_of(held.user),
        time=normalise(held.time, held.time != NO_TIME),
        rank=normalise(held.rank, held.rank >= 0),
        host=host[url],
        string=string,
    )
    return user_distances(histories, strings, hosts, weights)


def _strings(held: Batch) -> tuple[Strings, IntArray]:
    """Return the distinct queries, and the number of each record's query among them."""
    queries, string = np.unique(held.query, return_inverse=True)
    return encode_strings(held.texts.query.decode(queries).to_list()), string


class SummaryVectors:
    """Vectors that describe users, with straight-line distances.

    Values become whole numbers, so that no order of adding changes a distance.
    """

    def __init__(self, vectors: FloatArray) -> None:
        largest = np.abs(vectors).max(initial=0.0) or 1.0
        self._values = np.rint(vectors * (_STEPS / largest)).astype(np.int64)
        self._longest = 2.0 * _STEPS * math.sqrt(vectors.shape[1])

    def rows(self, ones: npt.NDArray[np.integer], others: npt.NDArray[np.integer]) -> Ints:
        """Return the distances of some users to others, in `UNIT`s: a row for each one."""
        out = np.empty((len(ones), len(others)), np.int32)
        for one, row in zip(ones, out, strict=True):
            gaps = self._values[others] - self._values[one]
            row[:] = np.rint(np.sqrt((gaps * gaps).sum(axis=1)) / self._longest * UNIT)
        return out


def summary_vectors(held: Batch) -> SummaryVectors:
    """Return a vector of each user: the number of searches, and their extremes, which open large gaps."""
    strings, string = _strings(held)
    letters = np.diff(strings.bounds)[strings.words]
    longest = np.maximum.reduceat(np.append(letters, 0), strings.starts[:-1]) * (strings.terms > 0)
    time, rank = normalise(held.time, held.time != NO_TIME), normalise(held.rank, held.rank >= 0)
    most = (time, rank, normalise(strings.terms)[string], normalise(longest)[string])
    starts = starts_of(held.user)
    columns = [np.maximum.reduceat(one, starts[:-1]) for one in most]
    first = np.minimum.reduceat(time, starts[:-1])
    return SummaryVectors(np.column_stack([normalise(np.diff(starts)), first, *columns]))


def user_distances(
    histories: Histories,
    strings: Strings,
    hosts: Hosts,
    weights: str = "text",
    threads: int | None = None,
    most_bytes: int = MOST_BYTES,
) -> FloatArray:
    """Return the distance of equation 5.4 for every pair of users.

    It is half the difference of their numbers of searches and the Hausdorff distance of these (5.3).
    """
    words = edit_distance.lay_out(strings.letters, strings.bounds)
    known = edit_distance.fractions(words.lengths)
    laid = _lay_out(histories, replace(strings, words=words.number[strings.words]), words.lengths)
    gaps = np.zeros((histories.starts.size - 1,) * 2)
    place = (hosts.labels.astype(np.int32), hosts.depth.astype(np.int64), known.value)
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        room = most_bytes // (known.code.itemsize * max(len(words), 1))
        for users, spelled in _blocks(laid, len(words), room):
            rows, places = _table(pool, words, known, spelled)
            parts = [users[part::_PARTS] for part in range(min(_PARTS, users.size))]
            work = (*laid.order, places, laid.groups, rows, laid.searches, place, WEIGHTS[weights], gaps)
            list(pool.map(lambda part, work=work: _widen(part, *work), parts))
    sizes = normalise(np.diff(histories.starts))
    return (np.abs(sizes[:, None] - sizes) + np.maximum(gaps, gaps.T) / 6) / 2


@dataclass(frozen=True)
class _Laid:
    """Searches in the order of the kernel: by user and kind, those in the middle first."""

    order: tuple[IntArray, IntArray, IntArray]  # order of comparison, kinds, strings
    groups: npt.NDArray[np.int32]
    searches: tuple[npt.NDArray[Any], ...]  # numbers, marks, words


def _lay_out(histories: Histories, strings: Strings, lengths: IntArray) -> _Laid:
    people = histories.starts.size - 1
    person = np.repeat(np.arange(people), np.diff(histories.starts))
    kind = 2 * (histories.rank >= 0) + (histories.host >= 0)
    terms, sizes = normalise(strings.terms)[histories.string], np.diff(strings.starts)
    spelled = np.bincount(np.repeat(np.arange(sizes.size), sizes), lengths[strings.words], sizes.size)
    odd = terms + histories.rank + (spelled / np.maximum(sizes, 1) / 50)[histories.string]
    order = np.lexsort((histories.time, histories.host, histories.string, odd, kind, person))
    person, kind, string, odd = person[order], kind[order], histories.string[order], odd[order]
    edges = np.concatenate(([0], np.cumsum(np.bincount(KINDS * person + kind, minlength=KINDS * people))))
    groups = np.column_stack((edges[:-1].reshape(people, KINDS), edges[KINDS::KINDS])).astype(np.int32)
    numbers = np.column_stack((histories.time, terms, histories.rank))[order]
    bounds = np.concatenate(([0], np.cumsum(sizes[string])))
    flat = spans(strings.starts[string], sizes[string])
    marks = np.column_stack((histories.host[order], bounds[:-1], bounds[1:])).astype(np.int32)
    searches = (numbers, marks, strings.words[flat].astype(np.uint32))
    return _Laid((_odd_ones_first(person, string, odd), kind, string), groups, searches)


def _odd_ones_first(person: IntArray, string: IntArray, odd: FloatArray) -> IntArray:
    """Return the order of each user's searches from odd to usual, equal strings together."""
    _, which = np.unique(np.column_stack((person, string)), axis=0, return_inverse=True)
    oddest = np.full(which.max(initial=-1) + 1, -np.inf)
    np.maximum.at(oddest, which, odd)
    return np.lexsort((-odd, string, -oddest[which], person))


def _blocks(laid: _Laid, size: int, room: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield blocks of users, most searches first, whose words fit into the room: (users, words).

    Large histories have the larger gaps to small ones and find them soon, so that small ones can use them.
    """
    _, marks, words = laid.searches
    groups, block, used = laid.groups, list[int](), np.zeros(size, bool)
    for a in np.argsort(groups[:, 0] - groups[:, KINDS], kind="stable").tolist():
        mine = words[marks[groups[a, 0], LOW] : marks[groups[a, KINDS] - 1, HIGH]]
        with_mine = used.copy()
        with_mine[mine] = True
        if block and with_mine.sum() > room:
            yield np.array(block), np.flatnonzero(used)
            block, with_mine = [], np.zeros(size, bool)
            with_mine[mine] = True
        block, used = [*block, a], with_mine
    yield np.array(block, np.int64), np.flatnonzero(used)


def _table(
    pool: ThreadPoolExecutor, words: Words, known: Fractions, chosen: IntArray
) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the distances of the chosen words to all words, and the row of each word."""
    chosen = chosen[np.argsort(words.lengths[chosen], kind="stable")]
    rows, places = np.empty((chosen.size, len(words)), known.code.dtype), np.zeros(len(words), np.int64)
    places[chosen] = np.arange(chosen.size)
    step = edit_distance.LANES * 4
    parts = [slice(low, low + step) for low in range(0, chosen.size, step)]
    list(pool.map(lambda part: edit_distance.normalised(words, known, chosen[part], rows[part]), parts))
    return rows, places


@njit(inline="always")
def _number_gap(a, b):  # type: ignore[no-untyped-def]
    """Return the difference of two normalised numbers; 1 if one is missing (below 0), 0 if both are."""
    if a < 0.0 or b < 0.0:
        return 0.0 if a < 0.0 and b < 0.0 else 1.0
    return abs(a - b)


@njit(inline="always")
def _host_gap(a, b, labels, depth):  # type: ignore[no-untyped-def]
    """Return the weight of the labels in which two hosts differ; the weights sum to 1, most on the right.

    Row h of `labels` holds the numbers of a host's labels from the right, then numbers below 0.
    """
    if a == b:
        return 0.0
    if a < 0 or b < 0:
        return 1.0
    m, apart, full = max(depth[a], depth[b]), 0.0, 0.0
    for i in range(m):
        apart += apart + (labels[a, i] != labels[b, i])
        full += full + 1.0
    return apart / full


@njit(inline="always")
def _strings_gap(own, near, rows, words, low, high, value, limit):  # type: ignore[no-untyped-def]
    """Return the Hausdorff distance between two strings' words, or infinity if it is not below the limit.

    `own` has the `rows` (numbers of distances to every word) of the one string's words, and `near` the least
    of them; the other string's words are `words[low:high]`.
    """
    if own.size == 0 or low == high:
        return 0.0 if own.size == 0 and low == high else 1.0
    far = near.dtype.type(0)
    for y in range(low, high):
        far = max(far, near[words[y]])
    if value[far] >= limit:
        return np.inf
    for x in range(own.size):
        least = rows[own[x], words[low]]
        for y in range(low + 1, high):
            least = min(least, rows[own[x], words[y]])
        far = max(far, least)
    return value[far]


@njit(cache=True, nogil=True)
def _nearest_words(own, rows, near):  # type: ignore[no-untyped-def]
    """Fill `near` with the least number that any of the rows has for each word."""
    for x in range(own.size):
        row = rows[own[x]]
        if x == 0:
            near[:] = row
        for w in range(near.size):
            near[w] = min(near[w], row[w])


@njit(inline="always")
def _step(q, before, kind, numbers, marks):  # type: ignore[no-untyped-def]
    """Return how much farther from any search one can be than another with the same string; or infinity."""
    if kind[q] != kind[before] or marks[q, HOST] != marks[before, HOST]:
        return np.inf
    apart = _number_gap(numbers[q, TIME], numbers[before, TIME])
    return apart + _number_gap(numbers[q, RANK], numbers[before, RANK]) + ROUNDING


@njit(cache=True, nogil=True)
def _widen(  # type: ignore[no-untyped-def]  # noqa: PLR0912, a call would cost half as much again
    people, looking, kind, string, places, groups, rows, searches, hosts, weights, gaps
):
    """Write, for each of some users and every other user, the largest gap from a search of the one.

    A larger gap that is already known for the two is kept. The larger of `gaps[a, b]` and `gaps[b, a]` is the
    Hausdorff distance once both users have been the one, in whatever order.

    `looking` orders each user's searches, with equal strings together. `groups[a]` bounds them by kind (two
    bits: has a rank, has a host); searches whose kinds differ in a bit are at least 1 apart. `places` maps
    words to rows. The scan of a kind starts where the last one ended: neighbours in the order find the same.
    """
    numbers, marks, words = searches
    labels, depth, value = hosts
    more, most = weights
    near, size = np.empty(rows.shape[1], rows.dtype), groups.shape[0]
    nearest = np.zeros(size)
    for a in people:
        gap, at, before = np.maximum(gaps[a], gaps[:, a]), groups[:, :KINDS].copy(), -1
        for turn in range(groups[a, 0], groups[a, KINDS]):
            q = looking[turn]
            own = places[words[marks[q, LOW] : marks[q, HIGH]]]
            step = np.inf
            if before >= 0 and string[q] == string[before]:
                step = _step(q, before, kind, numbers, marks)
            else:
                _nearest_words(own, rows, near)
            before = q
            for b in range(size):
                nearest[b] += step
                if nearest[b] <= gap[b] or a == b:
                    continue
                enough, best = gap[b], np.inf
                for flip in range(KINDS):
                    if best <= enough or best <= (flip + 1) // 2:
                        break
                    first, last = groups[b, kind[q] ^ flip], groups[b, (kind[q] ^ flip) + 1]
                    p = found = at[b, kind[q] ^ flip]
                    for _ in range(last - first):
                        d = _number_gap(numbers[q, TIME], numbers[p, TIME]) + _number_gap(
                            numbers[q, RANK], numbers[p, RANK]
                        )
                        d += more * abs(numbers[q, TERMS] - numbers[p, TERMS])
                        if d < best:
                            d += _host_gap(marks[q, HOST], marks[p, HOST], labels, depth)
                        if d + most <= enough:  # whatever the words
                            best, found = d + most, p
                            break
                        if d < best:
                            limit = (best - d) / most
                            low, high = marks[p, LOW], marks[p, HIGH]
                            d += most * _strings_gap(own, near, rows, words, low, high, value, limit)
                        if d < best:
                            best, found = d, p
                            if best <= enough:
                                break
                        p = p + 1 if p + 1 < last else first
                    at[b, kind[q] ^ flip] = found
                gap[b], nearest[b] = max(enough, best), best
        gaps[a] = gap
