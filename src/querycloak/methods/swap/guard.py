"""What the best attacker could think of a record's author, from bags of tokens alone.

The author's token was in the bag when the record left, and was not the token that left with it. A
string that leaves again and again was near the same person's token every time: shares multiply, and
a user who was absent once drops out. Nothing here knows who the author is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from querycloak.dictionary import Dictionary
from querycloak.kernels.arrays import grown
from querycloak.kernels.hash_table import PairTable, find, put
from querycloak.log import MISSING, IntArray
from querycloak.protector import State


@njit(cache=True, nogil=True)
def shares(tokens, label):  # type: ignore[no-untyped-def]
    """Return the users in a bag, without the label's, and the logarithm of each one's share of tokens."""
    others = np.sort(tokens[tokens != label])
    users = np.empty(others.size, np.int64)
    counts = np.zeros(others.size, np.float64)
    n = 0
    for i in range(others.size):
        if n == 0 or users[n - 1] != others[i]:
            users[n] = others[i]
            n += 1
        counts[n - 1] += 1.0
    return users[:n], np.log(counts[:n] / others.size)


@njit(cache=True, nogil=True)
def posterior(text, users, evidence, times_left, sa, sb, sf, sv, score):  # type: ignore[no-untyped-def]
    """Return the largest posterior that any user would have as author of a text, if it left now.

    `times_left[text]` counts how often it left; the table maps (text, user) to a row of `score`: how
    often the user was near, and the sum of logarithms so far.
    """
    best, total, top = -np.inf, 0.0, np.full(users.size, -np.inf)
    for j in range(users.size):
        before = 0.0
        if times_left[text] > 0:
            slot = find(sa, sb, sf, text, users[j])
            if not sf[slot] or score[sv[slot], 0] < times_left[text]:
                continue
            before = score[sv[slot], 1]
        top[j] = before + evidence[j]
        best = max(best, top[j])
    if best == -np.inf:
        return 1.0 / max(users.size, 1)  # nobody was near every time: the string has several authors
    for one in np.sort(top):  # sums of floats depend on their order, and codes may not decide anything
        total += np.exp(one - best)
    return 1.0 / total


@njit(cache=True, nogil=True)
def remember(text, users, evidence, times_left, sa, sb, sf, sv, score, ends):  # type: ignore[no-untyped-def]
    """Add what leaves now to what is known about a text."""
    for j in range(users.size):
        slot = find(sa, sb, sf, text, users[j])
        if not sf[slot]:
            if times_left[text] > 0:
                continue  # was absent before: out for good
            put(sa, sb, sf, sv, slot, text, users[j], ends[0])
            score[ends[0], 0], score[ends[0], 1] = 0.0, 0.0
            ends[0] += 1
        score[sv[slot], 0] += 1.0
        score[sv[slot], 1] += evidence[j]
    times_left[text] += 1


class Guard:
    """Remembers, for every text that left, who was near each time.

    It knows texts by keyed prints only: what it remembers outlasts the records, and must not spell them out.
    """

    def __init__(self, limit: float, queries: Dictionary, key: bytes) -> None:
        self.limit = limit
        self._queries, self._key = queries, key
        self._number: dict[int, int] = {}  # by print
        self.text_of = np.zeros(0, np.int64)  # by slot: the number of its text
        self._near = PairTable()
        self._score = np.zeros((1024, 2), np.float64)
        self._known = np.zeros(1, np.int64)
        self._times_left = np.zeros(0, np.int64)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Return the arrays in the order in which the kernel takes them."""
        return self._times_left, *self._near.arrays, self._score, self._known

    def meet(self, queries: IntArray, slots: IntArray) -> None:
        """Number the texts of records that begin to wait in these slots."""
        prints = self._queries.fingerprints(np.maximum(queries, 0), self._key) if queries.size else queries
        prints = np.where(queries >= 0, prints.astype(np.uint64).view(np.int64), MISSING)
        numbers = [self._number.setdefault(text, len(self._number)) for text in prints.tolist()]
        self.text_of = grown(self.text_of, int(slots.max(initial=-1)) + 1)
        self.text_of[slots] = numbers

    def forget(self, users: IntArray) -> None:
        """Forget whom nobody will ever look for again."""
        items = self._near.items()
        stays = ~np.isin(items["second"], users)
        text, user, value = (items[part][stays] for part in ("first", "second", "value"))
        self._remember(text, user, self._score[value])

    def _remember(self, text: IntArray, user: IntArray, score: Any) -> None:
        rows = np.arange(len(score))
        self._near = PairTable.of(text, user, rows)
        self._score = grown(score.copy(), 1024)
        self._known = np.array([rows.size], np.int64)

    def make_room(self, more: int) -> None:
        """Make room for what the next arrivals may add."""
        known = int(self._known[0])
        self._near.reserve(more, known)
        self._score = grown(self._score, known + more)
        self._times_left = grown(self._times_left, len(self._number))

    def snapshot(self) -> State:
        """Return what is remembered of texts that left, numbered anew."""
        items = self._near.items()
        left = np.flatnonzero(self._times_left)
        return {
            "left_texts": np.array(list(self._number), np.int64)[left],
            "times_left": self._times_left[left],
            "near_text": np.searchsorted(left, items["first"]),
            "near_user": items["second"],
            "near_score": self._score[items["value"]],
        }

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        self._number = {text: number for number, text in enumerate(state["left_texts"].tolist())}
        self._remember(state["near_text"], state["near_user"], state["near_score"])
        self._times_left = state["times_left"].copy()
