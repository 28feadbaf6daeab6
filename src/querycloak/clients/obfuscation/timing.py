"""Times of dummy searches: a machine's (random, bursts, regular), or near the user's own searches."""

from __future__ import annotations

from typing import Final

import numpy as np

from querycloak.clients.obfuscation.history import PAUSE
from querycloak.clients.obfuscation.random_stream import KeyedStream
from querycloak.log import IntArray

_SECOND: Final = 1_000_000
#: Pauses within a burst last between these, in seconds.
BURST_PAUSE: Final = (2.0, 20.0)
#: A random interval is at least this part of the mean one, and at most two less this part.
SHORTEST: Final = 0.5


def machine_times(
    timing: str, many: int, real: IntArray, span: tuple[int, int], stream: KeyedStream
) -> IntArray:
    """Return the times of a machine's dummy searches in order: over the whole log, or after real ones."""
    if timing == "burst":
        return reflect_into(_bursts(many, real, stream), span)
    if timing == "regular":
        steps = np.arange(many) + stream.one()
    else:
        steps = np.cumsum(SHORTEST + (2 - 2 * SHORTEST) * stream.uniform(many + 1))
        steps = steps[:-1] / (steps[-1] / many) if many else steps[:0]
    return span[0] + (steps / max(many, 1) * (span[1] - span[0])).astype(np.int64)


def _bursts(many: int, real: IntArray, stream: KeyedStream) -> IntArray:
    """Return times after real searches, a few seconds from one to the next."""
    if not real.size:
        return np.zeros(0, np.int64)
    after = np.sort(stream.below(real.size, many))
    low, high = BURST_PAUSE
    pauses = ((low + (high - low) * stream.uniform(many)) * _SECOND).astype(np.int64)
    return np.sort(real[after] + _since_start(pauses, after))


def _since_start(pauses: IntArray, group: IntArray) -> IntArray:
    """Return cumulative pauses within each group; the groups follow each other."""
    total = np.cumsum(pauses)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    before = np.concatenate([[0], total])[starts]
    since: IntArray = total - np.repeat(before, np.diff(np.append(starts, group.size)))
    return since


def session_of(time: IntArray) -> IntArray:
    """Return the session of each search of one user; a long pause begins a new one."""
    return np.cumsum(np.diff(time, prepend=time[:1]) > PAUSE)


def companion_times(time: IntArray, usual: IntArray, stream: KeyedStream) -> IntArray:
    """Return a time for the companion of every search: the user's sessions, shifted and with redrawn pauses.

    A companion session begins one of the user's own pauses before or after the real one, so that the order
    reveals neither, and continues with the user's pauses. `usual` are the pauses of all users, for a user
    that never searched twice in a session.
    """
    session = session_of(time)
    starts = np.flatnonzero(np.diff(session, prepend=-1))
    gaps = np.diff(time)
    own = gaps[(gaps <= PAUSE) & (np.diff(session) == 0)]
    stock = own if own.size else usual if usual.size else np.array([60 * _SECOND])
    pauses = stock[stream.below(stock.size, time.size)]
    sign = np.where(stream.uniform(starts.size) < 0.5, -1, 1)
    pauses[starts] *= sign
    return time[starts][session] + _since_start(pauses, session)


def reflect_into(time: IntArray, span: tuple[int, int]) -> IntArray:
    """Reflect times outside of the span into it: only a dummy search could be there."""
    first, last = span
    time = np.where(time < first, 2 * first - time, time)
    time = np.where(time > last, 2 * last - time, time)
    return np.clip(time, first, last)
