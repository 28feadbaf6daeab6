"""When fakes are sent: by a machine at random, in bursts or regularly; or in a person's own rhythm."""

from __future__ import annotations

from typing import Final

import numpy as np

from querycloak.clients.obfuscation.draws import Draws
from querycloak.clients.obfuscation.searches import PAUSE
from querycloak.log import IntArray

_SECOND: Final = 1_000_000
#: Pauses within a burst last between these, in seconds.
BURST_PAUSE: Final = (2.0, 20.0)
#: A random interval is this part of the mean one at least, and two less this at most.
SHORTEST: Final = 0.5


def by_machine(timing: str, many: int, real: IntArray, span: tuple[int, int], draws: Draws) -> IntArray:
    """Give the times of a machine's fakes, in order: over the whole log, or after real searches."""
    if timing == "burst":
        return within(_bursts(many, real, draws), span)
    if timing == "regular":
        steps = np.arange(many) + draws.one()
    else:
        steps = np.cumsum(SHORTEST + (2 - 2 * SHORTEST) * draws.uniform(many + 1))
        steps = steps[:-1] / (steps[-1] / many) if many else steps[:0]
    return span[0] + (steps / max(many, 1) * (span[1] - span[0])).astype(np.int64)


def _bursts(many: int, real: IntArray, draws: Draws) -> IntArray:
    """Let fakes follow real searches, a few seconds from one to the next."""
    if not real.size:
        return np.zeros(0, np.int64)
    after = np.sort(draws.below(real.size, many))
    low, high = BURST_PAUSE
    pauses = ((low + (high - low) * draws.uniform(many)) * _SECOND).astype(np.int64)
    return np.sort(real[after] + _since_start(pauses, after))


def _since_start(pauses: IntArray, group: IntArray) -> IntArray:
    """Add pauses up, anew in each group; the groups stand one after the other."""
    total = np.cumsum(pauses)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    before = np.concatenate([[0], total])[starts]
    since: IntArray = total - np.repeat(before, np.diff(np.append(starts, group.size)))
    return since


def session_of(time: IntArray) -> IntArray:
    """Number one person's sessions; a long pause begins a new one."""
    return np.cumsum(np.diff(time, prepend=time[:1]) > PAUSE)


def in_rhythm(time: IntArray, usual: IntArray, draws: Draws) -> IntArray:
    """Give a time for a companion of every search: her sessions, shifted a little and paced anew.

    A companion session begins one of her own pauses before or after the real one, so that neither
    tells by coming first, and goes on with pauses of hers. `usual` are the pauses of everybody, for
    somebody who never searched twice in a session.
    """
    session = session_of(time)
    starts = np.flatnonzero(np.diff(session, prepend=-1))
    gaps = np.diff(time)
    own = gaps[(gaps <= PAUSE) & (np.diff(session) == 0)]
    stock = own if own.size else usual if usual.size else np.array([60 * _SECOND])
    pauses = stock[draws.below(stock.size, time.size)]
    sign = np.where(draws.uniform(starts.size) < 0.5, -1, 1)
    pauses[starts] *= sign
    return time[starts][session] + _since_start(pauses, session)


def within(time: IntArray, span: tuple[int, int]) -> IntArray:
    """Fold back what lies before the log's first moment or after its last: only a fake could."""
    first, last = span
    time = np.where(time < first, 2 * first - time, time)
    time = np.where(time > last, 2 * last - time, time)
    return np.clip(time, first, last)
