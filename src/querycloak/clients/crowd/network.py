"""Friendship networks: random ones with a power law of degrees, or an edge list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.errors import DataError, ParameterError

Ints = npt.NDArray[np.int32]
#: Largest number of users of a simulation: ten million take two gigabytes.
MAX_USERS: Final = 100_000_000


@dataclass(frozen=True)
class Network:
    """Friends of each user: those of user u are `friend[start[u]:start[u + 1]]`, in ascending order.

    `back[i]` is the place of u among the friends of the friend at place i.
    """

    start: npt.NDArray[np.int64]
    friend: Ints
    back: Ints

    @property
    def users(self) -> int:
        """Number of users."""
        return self.start.size - 1

    @property
    def friends(self) -> npt.NDArray[np.int64]:
        """Number of friends of each user."""
        return np.diff(self.start)


def power_law(users: int, seed: int, exponent: float = 1.5, most: int = 10) -> Network:
    """Draw a network whose numbers of friends follow a power law from 1 to `most`.

    Each user draws a number of stubs, and stubs are joined at random. Loops and repeated friendships are
    left out, so that some users have fewer friends than they drew; a user without friends is joined to
    another one.
    """
    if not 2 <= users <= MAX_USERS:
        raise ParameterError(f"a crowd needs 2 to {MAX_USERS:,} users")
    if not 0 <= exponent <= 100:  # a nan is neither
        raise ParameterError("the exponent must be between 0 and 100")
    rng = np.random.default_rng(seed)
    share = np.arange(1, most + 1, dtype=np.float64) ** -exponent
    ends = np.searchsorted(np.cumsum(share / share.sum()), rng.random(users, np.float32), side="right") + 1
    ends = np.minimum(ends, most).astype(np.int16)
    owner = np.repeat(np.arange(users, dtype=np.int32), ends)
    rng.shuffle(owner)
    half = owner.size // 2
    one, other = owner[:half], owner[half : 2 * half]
    found = friendships(users, one, other)
    alone = np.flatnonzero(found.friends == 0).astype(np.int32)
    if not alone.size:
        return found
    # numbers of users carry no meaning, so a random offset is a random user
    anybody = ((alone + 1 + rng.integers(users - 1, size=alone.size)) % users).astype(np.int32)
    return friendships(users, np.concatenate([one, alone]), np.concatenate([other, anybody]))


def friendships(users: int, one: Ints, other: Ints) -> Network:
    """Return the network of these pairs, each once and in both directions, without loops."""
    start, friend = _without_repetitions(*_ordered(users, one, other))
    return Network(start, friend, _backs(start, friend))


@njit(cache=True, nogil=True)
def _ordered(users, one, other):  # type: ignore[no-untyped-def]
    """Sort by counting, then sort the friends of each user."""
    start = np.zeros(users + 1, np.int64)
    for i in range(one.size):
        if one[i] != other[i]:
            start[one[i] + 1] += 1
            start[other[i] + 1] += 1
    for u in range(users):
        start[u + 1] += start[u]
    friend, at = np.empty(start[users], np.int32), start[:-1].copy()
    for i in range(one.size):
        a, b = one[i], other[i]
        if a != b:
            friend[at[a]] = b
            at[a] += 1
            friend[at[b]] = a
            at[b] += 1
    for u in range(users):
        friend[start[u] : start[u + 1]].sort()
    return start, friend


@njit(cache=True, nogil=True)
def _without_repetitions(start, friend):  # type: ignore[no-untyped-def]
    kept, begin = 0, 0
    for u in range(start.size - 1):
        end, first = start[u + 1], kept
        for i in range(begin, end):
            if kept == first or friend[kept - 1] != friend[i]:
                friend[kept] = friend[i]
                kept += 1
        begin, start[u + 1] = end, kept
    return start, friend[:kept].copy()


@njit(cache=True, nogil=True)
def _backs(start, friend):  # type: ignore[no-untyped-def]
    """Return the place of each user among the friends of its friends; all lists are ascending."""
    back, at = np.empty(friend.size, np.int32), np.zeros(start.size - 1, np.int32)
    for u in range(start.size - 1):
        for i in range(start[u], start[u + 1]):
            v = friend[i]
            back[i] = at[v]
            at[v] += 1
    return back


def read_edges(path: Any) -> tuple[Network, list[str]]:
    """Read friendships and the names of users: two names per line, separated by white space or a comma.

    `#` begins a comment.
    """
    one, other, names = list[int](), list[int](), dict[str, int]()
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                words = line.partition("#")[0].replace(",", " ").split()
                if not words:
                    continue
                if len(words) != 2:
                    raise DataError(f"the edge list has {len(words)} names in line {number}, not 2")
                for side, word in zip((one, other), words, strict=True):
                    side.append(names.setdefault(word, len(names)))
    except (OSError, UnicodeDecodeError):
        raise DataError("the edge list cannot be read", hint="it has two names a line, as UTF-8") from None
    if len(names) < 2:
        raise DataError("the edge list has fewer than 2 users")
    return friendships(len(names), np.array(one, np.int32), np.array(other, np.int32)), list(names)
