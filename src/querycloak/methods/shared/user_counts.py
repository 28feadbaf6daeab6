"""Counts of the different users of a key, such as a query or a term."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
from numba import njit

from querycloak.kernels.hash_table import PairTable, find, put, remove
from querycloak.log import NO_TIME, IntArray
from querycloak.methods.shared.sessions import DAY
from querycloak.protector import State

_CHUNK: Final = 1 << 14  # records counted at once, so that the tables stay as small as the window
_PARTS: Final = ("first", "second", "value")  # of a table of pairs
_USER: Final = (1 << 32) - 1  # the lower half of a key and a user in one number


class UserCount(Protocol):
    """Number of different users of each key."""

    def add(self, key: IntArray, user: IntArray, time: IntArray) -> IntArray:
        """Count records; return the number of users of each record's key so far."""

    def erase(self, users: IntArray) -> None:
        """Count without these users."""

    def snapshot(self) -> State:
        """Return the state as arrays."""

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""


def key_and_user(key: IntArray, user: IntArray) -> IntArray:
    """Return one number for each key and user."""
    return (key << 32) + user


def users_of(key: IntArray, user: IntArray, keys: int) -> IntArray:
    """Count the different users of each key; keys have numbers from 0 to `keys` - 1."""
    pairs = np.unique(key_and_user(key, user))
    return np.bincount(pairs >> 32, minlength=keys)


def _items(name: str, table: PairTable) -> State:
    return {f"{name}_{part}": array for part, array in table.items().items()}


def _table(name: str, state: State) -> PairTable:
    return PairTable.of(*(state[f"{name}_{part}"] for part in _PARTS))


class UsersUntil:
    """Users of each key until there are `k`; later ones are not counted.

    Of a key with k users, the moment at which it reached them is known.
    """

    def __init__(self, k: int) -> None:
        self._k = k
        # the value of a key is its number of users; with k of them, -1 - moment
        self._keys, self._pairs = PairTable(), PairTable()

    def add(self, key: IntArray, user: IntArray, time: IntArray) -> IntArray:
        """Count records; return the number of users of each record's key so far, k at most."""
        self._keys.reserve(key.size)
        self._pairs.reserve(key.size)
        users: IntArray = _add_until(key, user, time, self._k, *self._keys.arrays, *self._pairs.arrays)
        return users

    def reached_at(self, key: IntArray) -> IntArray:
        """Return the moment at which each of these keys reached k users; -1 if it has fewer."""
        moments: IntArray = _reached_at(key, *self._keys.arrays)
        return moments

    def erase(self, users: IntArray, pairs: IntArray | None = None) -> None:
        """Count without these users, and without these pairs of `key_and_user`.

        A key with k users is forgotten to have been complete if fewer of them are left.
        """
        lost = np.empty(0, np.int64) if pairs is None else pairs
        old, keys = self._pairs.items(), self._keys.items()
        stays = ~np.isin(old["second"], users) & ~np.isin(key_and_user(old["first"], old["second"]), lost)
        place = np.searchsorted(keys["first"], old["first"][stays])
        left = np.bincount(place, minlength=keys["first"].size)
        complete = (keys["value"] < 0) & (left >= self._k)
        value = np.where(complete, keys["value"], left)[left > 0]
        self._pairs = PairTable.of(*(old[part][stays] for part in _PARTS))
        self._keys = PairTable.of(keys["first"][left > 0], keys["second"][left > 0], value)

    def snapshot(self) -> State:
        """Return the counts as arrays."""
        return _items("queries", self._keys) | _items("pairs", self._pairs)

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        self._keys, self._pairs = _table("queries", state), _table("pairs", state)


@njit(cache=True, nogil=True)
def _add_until(key, user, time, k, ka, kb, kf, kv, pa, pb, pf, pv):  # type: ignore[no-untyped-def]
    users = np.empty(key.size, np.int64)
    for i in range(key.size):
        place = find(ka, kb, kf, key[i], 0)
        if not kf[place]:
            put(ka, kb, kf, kv, place, key[i], 0, 0)
        if kv[place] >= 0:
            pair = find(pa, pb, pf, key[i], user[i])
            if not pf[pair]:
                put(pa, pb, pf, pv, pair, key[i], user[i], 0)
                kv[place] = kv[place] + 1 if kv[place] + 1 < k else -1 - time[i]
        users[i] = kv[place] if kv[place] >= 0 else k
    return users


@njit(cache=True, nogil=True)
def _reached_at(key, ka, kb, kf, kv):  # type: ignore[no-untyped-def]
    moments = np.empty(key.size, np.int64)
    for i in range(key.size):
        place = find(ka, kb, kf, key[i], 0)
        moments[i] = -1 - kv[place] if kf[place] and kv[place] < 0 else -1
    return moments


class UsersInWindow:
    """Users of each key within the last `span` microseconds; records come in the order of time."""

    def __init__(self, span: int) -> None:
        self._span = span
        self._keys, self._pairs = PairTable(), PairTable()  # users of a key; last event of a key and user
        self._clock = np.array([NO_TIME // 2, 0], np.int64)  # latest time, and number of events so far
        self._queue = np.empty((4, 0), np.int64)  # time, key, user and number of the events in the window

    def add(self, key: IntArray, user: IntArray, time: IntArray) -> IntArray:
        """Count records, each with one key or several in a row; return the users of each key so far.

        A key of -1 stands for no key and has no users. A record without a time counts as now.
        """
        keys = key if key.ndim == 2 else key[:, None]
        time = np.where(time == NO_TIME, self._clock[0], time)
        users = np.zeros(keys.shape, np.int64)
        for start in range(0, user.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            self._add(keys[part], user[part], time[part], users[part])
        return users.reshape(key.shape)

    def _add(self, keys: IntArray, user: IntArray, time: IntArray, users: IntArray) -> None:
        live, new = self._queue.shape[1], keys.size
        queue = np.empty((4, live + new), np.int64)
        queue[:, :live] = self._queue
        self._keys.reserve(new)
        self._pairs.reserve(new)
        ends = np.array([0, live], np.int64)
        tables = self._keys.arrays + self._pairs.arrays
        _add_in_window(keys, user, time, self._span, self._clock, ends, users, *queue, *tables)
        self._queue = queue[:, ends[0] : ends[1]].copy()

    def erase(self, users: IntArray) -> None:
        """Remove the events of these users from the window."""
        pairs = self._pairs.items()
        stays = ~np.isin(pairs["second"], users)
        self._pairs = PairTable.of(*(pairs[part][stays] for part in _PARTS))
        keys, left = np.unique(pairs["first"][stays], return_counts=True)
        self._keys = PairTable.of(keys, np.zeros_like(keys), left)
        self._queue = self._queue[:, ~np.isin(self._queue[2], users)]

    def snapshot(self) -> State:
        """Return the events within the window; arrays named `*_first` hold keys."""
        events = {"queue_first": self._queue[1], "queue": np.delete(self._queue, 1, axis=0)}
        counts = _items("keys", self._keys) | _items("pairs", self._pairs)
        return counts | events | {"clock": self._clock.copy()}

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        self._keys, self._pairs = _table("keys", state), _table("pairs", state)
        self._queue = np.insert(state["queue"], 1, state["queue_first"], axis=0)
        self._clock = state["clock"].copy()


@njit(cache=True, nogil=True)
def _expire(i, q_key, q_user, q_number, ka, kb, kf, kv, pa, pb, pf, pv):  # type: ignore[no-untyped-def]
    """Remove an expired event, unless the same user had the same key again since."""
    pair = find(pa, pb, pf, q_key[i], q_user[i])
    if pf[pair] and pv[pair] == q_number[i]:
        remove(pa, pb, pf, pv, pair)
        slot = find(ka, kb, kf, q_key[i], 0)
        kv[slot] -= 1
        if kv[slot] == 0:
            remove(ka, kb, kf, kv, slot)


@njit(cache=True, nogil=True)
def _add_in_window(  # type: ignore[no-untyped-def]
    keys, user, time, span, clock, ends, users, q_time, q_key, q_user, q_number,
    ka, kb, kf, kv, pa, pb, pf, pv,
):  # fmt: skip
    """Count the users of each key within `span`, into `users` (OUT).

    `clock` (INOUT) holds the latest time and the number of events so far; `ends` (INOUT) the first
    live and the first free place of the queue of events `q_*`.
    """
    for i in range(user.size):
        clock[0] = max(clock[0], time[i])
        while ends[0] < ends[1] and q_time[ends[0]] <= clock[0] - span:
            _expire(ends[0], q_key, q_user, q_number, ka, kb, kf, kv, pa, pb, pf, pv)
            ends[0] += 1
        for j in range(keys.shape[1]):
            key = keys[i, j]
            if key < 0:
                continue
            slot = find(ka, kb, kf, key, 0)
            if not kf[slot]:
                put(ka, kb, kf, kv, slot, key, 0, 0)
            pair = find(pa, pb, pf, key, user[i])
            if not pf[pair]:
                put(pa, pb, pf, pv, pair, key, user[i], 0)
                kv[slot] += 1
            pv[pair] = clock[1]
            place = ends[1]
            q_time[place], q_key[place], q_user[place], q_number[place] = clock[0], key, user[i], clock[1]
            ends[1] += 1
            clock[1] += 1
            users[i, j] = kv[slot]


class UsersByDay:
    """Users of each key in the last `days` days (UTC), the day of the newest record included; 0 for all."""

    def __init__(self, days: int) -> None:
        self._days = days
        self._pair = np.empty(0, np.int64)  # `key_and_user`, each once, sorted
        self._last = np.empty(0, np.int64)  # the last day of each pair

    @property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """The keys and users that count, each pair once."""
        return self._pair >> 32, self._pair & _USER

    def add(self, key: IntArray, user: IntArray, time: IntArray) -> IntArray:
        """Count records; return the number of users of each record's key, with all of these records."""
        day = time // DAY
        pair, last = np.append(self._pair, key_and_user(key, user)), np.append(self._last, day)
        if self._days and day.size:
            recent = last > int(day.max()) - self._days
            pair, last = pair[recent], last[recent]
        self._pair, self._last = _latest(pair, last)
        users: IntArray = users_of(*self.pairs, int(key.max(initial=-1)) + 1)[key]
        return users

    def erase(self, users: IntArray) -> None:
        """Count without these users."""
        stays = ~np.isin(self._pair & _USER, users)
        self._pair, self._last = self._pair[stays], self._last[stays]

    def snapshot(self) -> State:
        """Return the pairs and their last days as arrays."""
        key, user = self.pairs
        return {"asked_query": key, "asked_user": user, "asked_last": self._last.copy()}

    def restore(self, state: State) -> None:
        """Continue from a snapshot."""
        pair = key_and_user(state["asked_query"], state["asked_user"])
        self._pair, self._last = _latest(pair, state["asked_last"])


def _latest(pair: IntArray, day: IntArray) -> tuple[IntArray, IntArray]:
    """Return each pair once, sorted, with the last of its days."""
    order = np.lexsort((day, pair))
    ends = np.flatnonzero(np.diff(pair[order], append=-1))
    return pair[order][ends], day[order][ends]
