"""Edit distances of some words to all words, on words as rows of letter numbers.

All words are laid out in the order of a dictionary, so that a beginning which neighbours share is compared
once. The step for one more letter is Hyyrö's form of Myers' bit-vector algorithm: a whole column of the
table in a few operations, done for `LANES` words side by side. Words above 64 letters are compared by the
table itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.log import FloatArray, IntArray

#: Words that are compared side by side.
LANES = 64


@dataclass(frozen=True)
class Words:
    """Distinct words in the order of a dictionary.

    `shared` counts the first letters that each word has from the one before.
    `number` says where in this order each word as given has come to stand.
    """

    letters: IntArray
    bounds: IntArray
    shared: IntArray
    number: IntArray
    alphabet: int

    def __len__(self) -> int:
        return self.bounds.size - 1

    @property
    def lengths(self) -> IntArray:
        """Count the letters of each word."""
        return np.diff(self.bounds)


def lay_out(letters: IntArray, bounds: IntArray) -> Words:
    """Number the letters densely and bring the words into order."""
    known, dense = np.unique(letters, return_inverse=True)
    spelled, edges = dense.astype(">u4").tobytes(), (4 * bounds).tolist()
    keys = [spelled[low:high] for low, high in pairwise(edges)]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    number = np.empty(len(keys), np.int64)
    number[order] = np.arange(len(keys))
    ordered = np.frombuffer(b"".join(keys[w] for w in order), ">u4").astype(np.int64)
    edges_after = np.concatenate(([0], np.cumsum(np.diff(bounds)[order]))).astype(np.int64)
    return Words(ordered, edges_after, _shared_beginnings(ordered, edges_after), number, max(known.size, 1))


@njit(cache=True, nogil=True)
def _shared_beginnings(letters, bounds):  # type: ignore[no-untyped-def]
    """Count the first letters that each word has in common with the one before it."""
    shared = np.zeros(bounds.size - 1, np.int64)
    for w in range(1, shared.size):
        before, here = bounds[w - 1], bounds[w]
        longest = min(here - before, bounds[w + 1] - here)
        while shared[w] < longest and letters[before + shared[w]] == letters[here + shared[w]]:
            shared[w] += 1
    return shared


@njit(cache=True, nogil=True)
def by_table(a, b, row):  # type: ignore[no-untyped-def]
    """Count the insertions, deletions and substitutions between two words; `row` is scratch space."""
    for j in range(b.size + 1):
        row[j] = j
    for i in range(a.size):
        corner, row[0] = row[0], i + 1
        for j in range(b.size):
            above = row[j + 1]
            row[j + 1] = min(corner + (a[i] != b[j]), above + 1, row[j] + 1)
            corner = above
    return row[b.size]


@njit(forceinline=True)
def _one_more_letter(met, up, down, next_up, next_down):  # type: ignore[no-untyped-def]
    """Work out the columns after one more letter: where the table goes up and down by one, for each lane."""
    kind = met.dtype.type
    for x in range(LANES):
        seen = kind(met[x] | down[x])
        same = kind(kind(kind(kind(seen & up[x]) + up[x]) ^ up[x]) | seen)
        right = kind(kind(kind(down[x] | kind(~kind(up[x] | same))) << kind(1)) | kind(1))
        next_up[x] = kind(kind(kind(up[x] & same) << kind(1)) | kind(~kind(right | same)))
        next_down[x] = kind(right & same)


@njit(forceinline=True)
def _ones(bits, kind, top):  # type: ignore[no-untyped-def]
    """Count the bits that are set; `top` says how far the highest byte is from the lowest."""
    full = kind(~kind(0))
    pairs, fours, eights = kind(full // kind(3)), kind(full // kind(5)), kind(full // kind(17))
    bits = kind(bits - kind(kind(bits >> kind(1)) & pairs))
    bits = kind(kind(bits & fours) + kind(kind(bits >> kind(2)) & fours))
    bits = kind(kind(bits + kind(bits >> kind(4))) & eights)
    return kind(kind(bits * kind(full // kind(255))) >> top)


@njit(cache=True, nogil=True)
def _mark(chosen, letters, bounds, spots, masks):  # type: ignore[no-untyped-def]
    """Note where each letter stands in each chosen word, and how long the words are, as bits."""
    kind = spots.dtype.type
    spots[:], masks[:] = kind(0), kind(0)
    for x in range(chosen.size):
        low = bounds[chosen[x]]
        for i in range(bounds[chosen[x] + 1] - low):
            spots[letters[low + i], x] |= kind(kind(1) << kind(i))
            masks[x] |= kind(kind(1) << kind(i))


@njit(cache=True, nogil=True)
def _look_up(first, last, edits, rank, longest, found, out):  # type: ignore[no-untyped-def]
    """Write what `found` says of the edits between the words from first to last and those side by side."""
    for x in range(longest.size):
        for w in range(first, last):
            out[x, w] = found[max(rank[w], longest[x]), edits[w - first, x]]


@njit(cache=True, nogil=True)
def _side_by_side(chosen, letters, bounds, shared, scratch, found, out):  # type: ignore[no-untyped-def]
    """Fill the rows of `out` for up to `LANES` words, none longer than a number of the scratch has bits.

    What is written is `found[the longer length's number, edits]`.
    """
    spots, ups, downs, masks, edits, rank = scratch
    kind = spots.dtype.type
    top, longest = kind(8 * spots.itemsize - 8), rank[chosen]
    _mark(chosen, letters, bounds, spots, masks)
    ups[0], downs[0] = ~kind(0), kind(0)
    for first in range(0, shared.size, LANES):
        last = min(first + LANES, shared.size)
        for w in range(first, last):
            low, size = bounds[w], bounds[w + 1] - bounds[w]
            for i in range(shared[w], size):
                _one_more_letter(spots[letters[low + i]], ups[i], downs[i], ups[i + 1], downs[i + 1])
            up, down, net = ups[size], downs[size], edits[w - first]
            for x in range(LANES):
                more, less = kind(up[x] & masks[x]), kind(down[x] & masks[x])
                net[x] = np.int32(size) + np.int32(_ones(more, kind, top)) - np.int32(_ones(less, kind, top))
        _look_up(first, last, edits, rank, longest, found, out)


@njit(cache=True, nogil=True)
def fill(chosen, letters, bounds, shared, narrow, wide, found, out):  # type: ignore[no-untyped-def]
    """Fill the rows of `out` with what `found` says of the edits between the chosen words and every word.

    The chosen words come short ones first.
    """
    rank, row = narrow[5], np.empty(narrow[1].shape[0] + 1, np.int64)
    for at in range(0, chosen.size, LANES):
        some, rows = chosen[at : at + LANES], out[at : at + LANES]
        longest = bounds[some[-1] + 1] - bounds[some[-1]]
        if longest <= 32:
            _side_by_side(some, letters, bounds, shared, narrow, found, rows)
        elif longest <= 64:
            _side_by_side(some, letters, bounds, shared, wide, found, rows)
        else:
            for x in range(some.size):
                word = letters[bounds[some[x]] : bounds[some[x] + 1]]
                for w in range(shared.size):
                    size = by_table(word, letters[bounds[w] : bounds[w + 1]], row)
                    rows[x, w] = found[max(rank[w], rank[some[x]]), size]


@dataclass(frozen=True)
class Fractions:
    """The normalised distances that can occur, in ascending order, and the number of each."""

    #: value[code] = edits / length, as exact as a float can be.
    value: FloatArray
    #: code[number of the length, edits].
    code: npt.NDArray[Any]
    #: The number of each word's length among the lengths that occur.
    rank: IntArray


def fractions(lengths: IntArray) -> Fractions:
    """Number all quotients of edits and a length, so that comparing numbers compares quotients."""
    occur, rank = np.unique(lengths, return_inverse=True)
    quotient = np.arange(occur.max(initial=1) + 1) / np.maximum(occur, 1)[:, None]
    value, code = np.unique(np.minimum(quotient, 1.0), return_inverse=True)
    kind = np.uint16 if value.size <= np.iinfo(np.uint16).max else np.uint32
    return Fractions(value, code.reshape(quotient.shape).astype(kind), rank.astype(np.int64))


def _scratch(words: Words, rank: IntArray, kind: type[np.unsignedinteger[Any]]) -> tuple[Any, ...]:
    """Make the scratch space that one thread needs, for words of as many letters as the kind has bits."""
    spots, masks = np.zeros((words.alphabet, LANES), kind), np.zeros(LANES, kind)
    ups, downs = np.empty((2, int(words.lengths.max(initial=0)) + 1, LANES), kind)
    return spots, ups, downs, masks, np.zeros((LANES, LANES), np.int32), rank


def normalised(words: Words, known: Fractions, chosen: IntArray, out: npt.NDArray[Any]) -> None:
    """Fill the rows of `out` with the numbers of the distances of chosen words, short first, to all."""
    narrow, wide = _scratch(words, known.rank, np.uint32), _scratch(words, known.rank, np.uint64)
    layout = (words.letters, words.bounds, words.shared)
    fill(chosen, *layout, narrow, wide, known.code, out)
