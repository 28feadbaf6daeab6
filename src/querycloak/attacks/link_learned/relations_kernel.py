"""How two searches relate: the 27 relations of paper 004, Table 3, on integers and arrays.

The first search of a pair is laid out once (its terms over the whole vocabulary, its letters as bits) and
stays so while the pairs that follow begin with it; each second search is then read along. Pairs that come in
runs with the same first search are therefore cheapest, but any order gives the same numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from querycloak.kernels.edit_distance import by_table
from querycloak.log import FloatArray, IntArray

#: Columns of what is one number for a search; nan where it is not known.
TIME, WEEKEND, DAYTIME, CLICKS, TERMS, CHARACTERS, ERRORS, POPULARITY = range(8)
NUMBERS = 8
#: The relations of Table 3, in its order. D: a difference. S: a similarity.
NAMES: tuple[str, ...] = (
    *("D_Time", "S_WeekWeekend", "S_SameDaytime", "D_NumberClicks", "S_QueryTerms"),
    *("S_LandPagTerms1", "S_LandPagTerms2", "S_LandPagTerms3", "D_QueryTermLen", "D_QueryCharacterLen"),
    *("S_AdultTerms1", "S_AdultTerms2", "S_AdultTerms3", "S_LandPagAdultTerms"),
    *("D_SpellingErrors", "S_SpellingError1", "S_SpellingError2"),
    *("S_Level2Cat", "S_Level3Cat", "D_TreeDistance"),
    *("S_City", "S_Country", "S_Location1", "S_Location2"),
    *("S_UrlTerms", "D_QueryTermWeight", "D_EditDistance"),
)
RELATIONS = len(NAMES)
#: Strings up to this length are compared by bits: one sum of two such numbers still fits.
MOST_BITS = 62


class Bags(NamedTuple):
    """Searches as bags: search i has the items `item[start[i]:start[i + 1]]`, ascending, `times` each.

    `total` sums up the times of each search.
    """

    start: IntArray
    item: IntArray
    times: FloatArray
    total: FloatArray


class Weights(NamedTuple):
    """What each entry of a bag weighs, and for each search the sum of its weights and their length."""

    weight: FloatArray
    total: FloatArray
    length: FloatArray


class Tree(NamedTuple):
    """Row c of `above` holds category c's ancestors from level 1 down to itself, then -1."""

    above: IntArray
    depth: IntArray


class Features(NamedTuple):
    """All that the relations read of searches."""

    numbers: FloatArray
    letters: IntArray
    letters_start: IntArray
    terms: Bags
    landing: Bags
    landing_weights: Weights
    urls: Bags
    adult: Bags
    landing_adult: Bags
    categories: Bags
    second_level: Bags
    third_level: Bags
    cities: Bags
    countries: Bags
    tree: Tree


@njit(inline="always")
def _truth(yes):  # type: ignore[no-untyped-def]
    return 1.0 if yes else 0.0


@njit(inline="always")
def _size(bags, i):  # type: ignore[no-untyped-def]
    return bags.start[i + 1] - bags.start[i]


@njit(cache=True, nogil=True)
def _lay_out(bags, values, i, table):  # type: ignore[no-untyped-def]
    """Write a search's values at the places of its items."""
    for p in range(bags.start[i], bags.start[i + 1]):
        table[bags.item[p]] = values[p]


@njit(cache=True, nogil=True)
def _clear(bags, i, table):  # type: ignore[no-untyped-def]
    for p in range(bags.start[i], bags.start[i + 1]):
        table[bags.item[p]] = 0.0


@njit(cache=True, nogil=True)
def _in_common(bags, j, table):  # type: ignore[no-untyped-def]
    """Sum the smaller of both counts of each item, of a search and of the one that is laid out."""
    common = 0.0
    for p in range(bags.start[j], bags.start[j + 1]):
        common += min(bags.times[p], table[bags.item[p]])
    return common


@njit(cache=True, nogil=True)
def _merged(bags, i, j):  # type: ignore[no-untyped-def]
    """Sum the smaller of both counts of each item by walking two short lists side by side."""
    a, a_end, b, b_end = bags.start[i], bags.start[i + 1], bags.start[j], bags.start[j + 1]
    common = 0.0
    while a < a_end and b < b_end:
        x, y = bags.item[a], bags.item[b]
        if x == y:
            common += min(bags.times[a], bags.times[b])
        a += x <= y
        b += y <= x
    return common


@njit(inline="always")
def _jaccard(bags, i, j, common):  # type: ignore[no-untyped-def]
    """Divide what is common by all there is; nothing has nothing in common with nothing."""
    return common / (bags.total[i] + bags.total[j] - common) if common > 0.0 else 0.0


@njit(cache=True, nogil=True)
def _numbers(a, b, row):  # type: ignore[no-untyped-def]
    """Compare what is a number; a difference with nan is nan."""
    row[0] = abs(a[TIME] - b[TIME])
    if np.isnan(row[0]):
        row[1] = row[2] = np.nan
    else:
        row[1], row[2] = _truth(a[WEEKEND] == b[WEEKEND]), _truth(a[DAYTIME] == b[DAYTIME])
    row[3] = abs(a[CLICKS] - b[CLICKS])
    row[8] = abs(a[TERMS] - b[TERMS])
    row[9] = abs(a[CHARACTERS] - b[CHARACTERS])
    row[14] = abs(a[ERRORS] - b[ERRORS])
    row[25] = abs(a[POPULARITY] - b[POPULARITY])
    row[15] = _truth(a[ERRORS] > 0 and b[ERRORS] > 0)
    row[16] = _truth((a[ERRORS] > 0) != (b[ERRORS] > 0))


@njit(cache=True, nogil=True)
def _topics(searches, i, j, row):  # type: ignore[no-untyped-def]
    """Compare categories: shared ones at levels 2 and 3, and the mean of all distances on the tree."""
    categories, above, depth = searches.categories, searches.tree.above, searches.tree.depth
    pairs = _size(categories, i) * _size(categories, j)
    if pairs == 0:
        row[17] = row[18] = row[19] = np.nan
        return
    row[17] = _truth(_merged(searches.second_level, i, j) > 0.0)
    row[18] = _truth(_merged(searches.third_level, i, j) > 0.0)
    steps = 0
    for p in range(categories.start[i], categories.start[i + 1]):
        for q in range(categories.start[j], categories.start[j + 1]):
            a, b = categories.item[p], categories.item[q]
            shared, most = 0, min(depth[a], depth[b])
            while shared < most and above[a, shared] == above[b, shared]:
                shared += 1
            steps += depth[a] + depth[b] - 2 * shared
    row[19] = steps / pairs


@njit(cache=True, nogil=True)
def _places(searches, i, j, row):  # type: ignore[no-untyped-def]
    first = _size(searches.cities, i) + _size(searches.countries, i) > 0
    second = _size(searches.cities, j) + _size(searches.countries, j) > 0
    row[20] = _truth(_merged(searches.cities, i, j) > 0.0)
    row[21] = _truth(_merged(searches.countries, i, j) > 0.0)
    row[22], row[23] = _truth(first and second), _truth(first != second)


@njit(cache=True, nogil=True)
def _adult(searches, i, j, row):  # type: ignore[no-untyped-def]
    bags = searches.adult
    first, second = _size(bags, i) > 0, _size(bags, j) > 0
    row[10] = _jaccard(bags, i, j, _merged(bags, i, j))
    row[11], row[12] = _truth(first and second), _truth(first != second)


@njit(cache=True, nogil=True)
def _landing(searches, i, j, counts, weights, row):  # type: ignore[no-untyped-def]
    """Compare landing pages: counts in common, the first's weight that the second has too, and the cosine."""
    bags, weighed = searches.landing, searches.landing_weights
    if _size(bags, i) == 0 or _size(bags, j) == 0:
        row[5] = row[6] = row[7] = row[13] = np.nan
        return
    common = covered = product = 0.0
    for p in range(bags.start[j], bags.start[j + 1]):
        there = weights[bags.item[p]]
        if there > 0.0:  # most terms of a page are on no other
            common += min(bags.times[p], counts[bags.item[p]])
            covered += there
            product += there * weighed.weight[p]
    row[5] = _jaccard(bags, i, j, common)
    row[6] = covered / weighed.total[i]
    row[7] = product / (weighed.length[i] * weighed.length[j])
    row[13] = _jaccard(searches.landing_adult, i, j, _merged(searches.landing_adult, i, j))


@njit(cache=True, nogil=True)
def _terms(bags, i, j, counts):  # type: ignore[no-untyped-def]
    if _size(bags, i) == 0 or _size(bags, j) == 0:
        return np.nan
    return _jaccard(bags, i, j, _in_common(bags, j, counts))


@njit(cache=True, nogil=True)
def _mark(letters, low, high, spots, bit):  # type: ignore[no-untyped-def]
    """Note where each letter stands, as bits; with `bit` 0 forget it again."""
    for p in range(low, min(high, low + MOST_BITS)):
        spots[letters[p]] = (spots[letters[p]] | (bit << (p - low))) if bit else 0


@njit(cache=True, nogil=True)
def _edits(searches, i, j, spots, scratch):  # type: ignore[no-untyped-def]
    """Count the edits between two strings by Myers' bit vectors; `spots` is what `_mark` noted of the first.

    Numbers stay below 2^63: what would leave the column is cut off at every step.
    """
    start, letters = searches.letters_start, searches.letters
    size = start[i + 1] - start[i]
    if size > MOST_BITS:
        return by_table(letters[start[i] : start[i + 1]], letters[start[j] : start[j + 1]], scratch)
    if size == 0:
        return start[j + 1] - start[j]
    full = (np.int64(1) << size) - np.int64(1)
    last, edits = size - 1, size
    up, down = full, np.int64(0)
    for p in range(start[j], start[j + 1]):
        met = spots[letters[p]]
        same = (((met & up) + up) ^ up) | met
        more, less = down | (full & ~(same | up)), up & same
        edits += ((more >> last) & 1) - ((less >> last) & 1)
        more, less = ((more << 1) | 1) & full, (less << 1) & full
        seen = met | down
        up, down = less | (full & ~(seen | more)), more & seen
    return edits


@njit(cache=True, nogil=True)
def relate(searches, sizes, first, second, out):  # type: ignore[no-untyped-def]
    """Fill a row of `out` for each pair; `sizes` counts terms, page terms, address words, letters."""
    terms, landing, weights = np.zeros(sizes[0]), np.zeros(sizes[1]), np.zeros(sizes[1])
    urls, spots = np.zeros(sizes[2]), np.zeros(sizes[3], np.int64)
    start, letters = searches.letters_start, searches.letters
    scratch = np.empty(np.max(np.diff(start)) + 1 if start.size > 1 else 1, np.int64)
    before = -1
    for pair in range(first.size):
        i, j, row = first[pair], second[pair], out[pair]
        if i != before:
            if before >= 0:
                _clear(searches.terms, before, terms)
                _clear(searches.landing, before, landing)
                _clear(searches.landing, before, weights)
                _clear(searches.urls, before, urls)
                _mark(letters, start[before], start[before + 1], spots, 0)
            _lay_out(searches.terms, searches.terms.times, i, terms)
            _lay_out(searches.landing, searches.landing.times, i, landing)
            _lay_out(searches.landing, searches.landing_weights.weight, i, weights)
            _lay_out(searches.urls, searches.urls.times, i, urls)
            _mark(letters, start[i], start[i + 1], spots, 1)
            before = i
        a, b = searches.numbers[i], searches.numbers[j]
        _numbers(a, b, row)
        _topics(searches, i, j, row)
        _landing(searches, i, j, landing, weights, row)
        row[4] = _terms(searches.terms, i, j, terms)
        row[24] = _terms(searches.urls, i, j, urls)
        if np.isnan(row[8]):  # one of them has no query
            row[10:13] = row[15:17] = row[20:24] = row[26] = np.nan
            continue
        _adult(searches, i, j, row)
        _places(searches, i, j, row)
        row[26] = _edits(searches, i, j, spots, scratch)
