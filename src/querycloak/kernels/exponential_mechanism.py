"""Exponential mechanism on trees of concepts, with whole-number weights; draws come from ChaCha20.

A candidate that has `i` of its input's features, `u` being in either, has the integer weight
`weights[table, u, i]`. Nothing is ever summed up over all candidates: one is proposed with a chance in
proportion to some `q >= weight`, and accepted with the chance `weight / q`, both in whole numbers, so a
draw is exactly in proportion to the weights. `q` is a floor for everybody plus a `step` for each feature
in common; to propose by it is to choose the floor or a feature, then one of its holders.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.log import IntArray

Words = npt.NDArray[np.uint32]

_SIGMA = tuple(np.uint32(word) for word in np.frombuffer(b"expand 32-byte k", "<u4"))
_R16, _R12, _R8, _R7, _BITS = (np.uint32(n) for n in (16, 12, 8, 7, 32))
_ROUNDS = 10  # double rounds


@njit(forceinline=True)
def _rotate(x, by):  # type: ignore[no-untyped-def]
    return np.uint32((x << by) | (x >> np.uint32(_BITS - by)))


@njit(forceinline=True)
def _quarter(a, b, c, d):  # type: ignore[no-untyped-def]
    a = np.uint32(a + b)
    d = _rotate(np.uint32(d ^ a), _R16)
    c = np.uint32(c + d)
    b = _rotate(np.uint32(b ^ c), _R12)
    a = np.uint32(a + b)
    d = _rotate(np.uint32(d ^ a), _R8)
    c = np.uint32(c + d)
    b = _rotate(np.uint32(b ^ c), _R7)
    return a, b, c, d


@njit(forceinline=True)
def block(key, counter, n0, n1, n2, out):  # type: ignore[no-untyped-def]
    """Write the 16 words of one block: key of eight words, block counter, nonce of three words."""
    x0, x1, x2, x3 = _SIGMA
    x4, x5, x6, x7 = key[0], key[1], key[2], key[3]
    x8, x9, x10, x11 = key[4], key[5], key[6], key[7]
    x12, x13, x14, x15 = counter, n0, n1, n2
    for _ in range(_ROUNDS):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    out[0], out[1], out[2], out[3] = x0 + _SIGMA[0], x1 + _SIGMA[1], x2 + _SIGMA[2], x3 + _SIGMA[3]
    out[4], out[5], out[6], out[7] = x4 + key[0], x5 + key[1], x6 + key[2], x7 + key[3]
    out[8], out[9], out[10], out[11] = x8 + key[4], x9 + key[5], x10 + key[6], x11 + key[7]
    out[12], out[13], out[14], out[15] = x12 + counter, x13 + n0, x14 + n1, x15 + n2


def key_words(key: bytes) -> Words:
    """Read a 32-byte key as the eight words that ChaCha20 takes."""
    return np.frombuffer(key[:32], "<u4").astype(np.uint32)


Ints = npt.NDArray[np.int32]

_TOP = np.uint64(0xFFFFFFFFFFFFFFFF)
_W32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ONE, _ZERO = np.uint64(1), np.uint64(0)


class Candidates(NamedTuple):
    """Who can be drawn: features of each concept, holders of each feature, members of each domain.

    Rows lie one after the other: those of `x` are `flat[start[x]:start[x + 1]]`. A concept's features
    stand in falling order of their holders. `domain` is -1 for concepts that are never drawn.
    """

    features: Ints
    features_start: IntArray
    holders: Ints
    holders_start: IntArray
    members: Ints
    members_start: IntArray
    domain: Ints


class Weights(NamedTuple):
    """The integer weights: `floor[table]` is the least, `weight[table, union, common]` any."""

    weight: npt.NDArray[np.uint64]
    floor: npt.NDArray[np.uint64]


@njit(forceinline=True)
def _word(key, n0, n1, n2, words, state):  # type: ignore[no-untyped-def]
    """Return the next 64 bits of this draw's own stream."""
    if state[0] == 16:
        block(key, state[1], n0, n1, n2, words)
        state[0] = 0
        state[1] += np.uint32(1)
    place = state[0]
    state[0] = place + np.uint32(2)
    return (np.uint64(words[place]) << _W32) | np.uint64(words[place + np.uint32(1)])


@njit(forceinline=True)
def _below(bound, key, n0, n1, n2, words, state):  # type: ignore[no-untyped-def]
    """Draw a whole number below a bound, every one with exactly the same chance."""
    last = _TOP - (_TOP % bound + _ONE) % bound  # above it, the remainders are not all equally often
    number = _word(key, n0, n1, n2, words, state)
    while number > last:
        number = _word(key, n0, n1, n2, words, state)
    return number % bound


@njit(forceinline=True)
def _steps(weight, floor, table, mine, steps):  # type: ignore[no-untyped-def]
    """Choose what each further feature adds to `q`, so that `q` is at least any weight it can meet.

    A candidate with `i` features in common weighs at most `weight[mine, i]`: most, if it has no others.
    The steps never fall, so any `i` of them add up to at least the first `i`.
    """
    reached, last = floor, _ZERO
    for i in range(1, mine + 1):
        wanted = weight[table, mine, i]
        step = wanted - reached if wanted > reached else _ZERO
        last = max(step, last)
        steps[i - 1] = last
        reached += last


@njit(cache=True, nogil=True, error_model="numpy")
def _draw(concept, table, record, turn, key, candidates, weights, out):  # type: ignore[no-untyped-def]
    features, f_start, holders, h_start, members, m_start, domain = candidates
    weight, floors = weights
    width = weight.shape[1]
    place_of = np.full(h_start.size - 1, -1, np.int16)  # by feature: its place among the input's
    steps = np.empty(width, np.uint64)
    words = np.empty(16, np.uint32)
    state = np.empty(2, np.uint32)
    proposals = 0
    for d in range(concept.size):
        c, t = concept[d], table[d]
        n0 = np.uint32(record[d] & _LOW)
        n1 = np.uint32(record[d] >> _W32)
        n2 = np.uint32(turn[d])
        state[0], state[1] = 16, 0
        begin, mine = f_start[c], f_start[c + 1] - f_start[c]
        home, floor = m_start[domain[c]], floors[t]
        _steps(weight, floor, t, mine, steps)
        everybody = floor * np.uint64(m_start[domain[c] + 1] - home)
        total = everybody
        for j in range(mine):
            feature = features[begin + j]
            place_of[feature] = j
            total += steps[j] * np.uint64(h_start[feature + 1] - h_start[feature])
        while True:
            proposals += 1
            left = _below(total, key, n0, n1, n2, words, state)
            if left < everybody:
                chosen = members[home + np.int64(left // floor)]
            else:
                left -= everybody
                j = 0
                while True:
                    feature = features[begin + j]
                    share = steps[j] * np.uint64(h_start[feature + 1] - h_start[feature])
                    if left < share:
                        break
                    left -= share
                    j += 1
                chosen = holders[h_start[feature] + np.int64(left // steps[j])]
            bound, common = floor, 0
            theirs = f_start[chosen + 1] - f_start[chosen]
            for place in range(f_start[chosen], f_start[chosen + 1]):
                j = place_of[features[place]]
                if j >= 0:
                    common += 1
                    bound += steps[j]
            chance = weight[t, mine + theirs - common, common]
            if chance >= bound or _below(bound, key, n0, n1, n2, words, state) < chance:
                break
        out[d] = chosen
        for j in range(mine):
            place_of[features[begin + j]] = -1
    return proposals


def draw(
    concept: IntArray,
    table: IntArray,
    record: IntArray,
    turn: IntArray,
    key: bytes,
    candidates: Candidates,
    weights: Weights,
) -> tuple[IntArray, int]:
    """Draw a replacement for each concept, by the table of weights named for it; count the proposals.

    `record` and `turn` name the draw: the same draw comes out the same in every process and order.
    """
    out = np.empty(concept.size, np.int64)
    words = key_words(key)
    return out, int(_draw(concept, table, record.view(np.uint64), turn, words, candidates, weights, out))


@njit(cache=True, nogil=True)
def _pairs(first, second, features, start, size):  # type: ignore[no-untyped-def]
    """Count common and united features of pairs; fast where `first` stays the same for long."""
    stamp = np.full(size, -1, np.int64)
    common = np.zeros(first.size, np.int64)
    union = np.zeros(first.size, np.int64)
    last = -1
    for p in range(first.size):
        a, b = first[p], second[p]
        if a != last:
            stamp[features[start[a] : start[a + 1]]] = a
            last = a
        for place in range(start[b], start[b + 1]):
            common[p] += stamp[features[place]] == a
        union[p] = start[a + 1] - start[a] + start[b + 1] - start[b] - common[p]
    return common, union


def shared(first: IntArray, second: IntArray, candidates: Candidates) -> tuple[IntArray, IntArray]:
    """Count the features that each pair of concepts has in common, and in either."""
    size = candidates.holders_start.size - 1
    common, union = _pairs(first, second, candidates.features, candidates.features_start, size)
    return common, union
