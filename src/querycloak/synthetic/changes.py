"""Second thoughts: how a query turns into the next one of the same session."""

from __future__ import annotations

import numpy as np

from querycloak.synthetic.offers import EMPTY, HEAD, PREFIX, SECOND, SLOTS, SUFFIX, THIRD, TOWN
from querycloak.synthetic.sessions import Plan
from querycloak.synthetic.streams import BoolArray, FloatArray, IntArray
from querycloak.synthetic.subjects import FRAGMENT, PRIVATE, SITE

#: Running totals: add a word, drop one, respell; the rest exchange one.
ADDS, DROPS, RESPELLS = 0.45, 0.65, 0.80


def change_in_waves(
    slots: IntArray, slip: IntArray, offered: IntArray, plan: Plan, drawn: tuple[IntArray, FloatArray]
) -> None:
    """Word changed searches, in place: first those that change a new one, then those that change these.

    `drawn` holds the kind of each search's subject, and two uniform draws for each search.
    """
    kind, uniform = drawn
    base = plan.copy_of[plan.source]
    waiting = np.flatnonzero(plan.changes)
    done = ~plan.changes
    while waiting.size:
        ready = waiting[done[base[waiting]]]
        slots[ready], slip[ready] = slots[base[ready]], slip[base[ready]]
        slots[ready], slip[ready] = edit(
            slots[ready], slip[ready], offered[ready], uniform[ready], kind[ready]
        )
        done[ready] = True
        waiting = waiting[~done[waiting]]


def edit(
    slots: IntArray, slip: IntArray, offered: IntArray, uniform: FloatArray, kind: IntArray
) -> tuple[IntArray, IntArray]:
    """Add a word, drop one, respell, or exchange one; a typing error is mended by any of them.

    Private texts stay as they are: a slip could turn an invented number into somebody's.
    """
    action, where = uniform.T
    whole = (kind == PRIVATE) | (kind == FRAGMENT)
    site = kind == SITE
    respell = (action >= DROPS) & (action < RESPELLS) & ~whole
    new_slip = np.where(respell & (slip == 0), 1 + (where * 2**40).astype(np.int64), 0)
    slots = slots.copy()
    _put(slots, offered, where, (action < ADDS) & ~whole & ~site, (SECOND, SUFFIX, TOWN, PREFIX, THIRD))
    _put(slots, offered, where, (action < ADDS) & site, (HEAD, HEAD, SUFFIX))
    _drop(slots, (action >= ADDS) & (action < DROPS) & ~whole)
    _put(slots, offered, where, (action >= RESPELLS) & ~whole & ~site, (HEAD, SECOND, SUFFIX))
    _put(slots, offered, where, (action >= RESPELLS) & site, (HEAD,))
    return slots, new_slip


def _put(
    slots: IntArray, offered: IntArray, where: FloatArray, chosen: BoolArray, places: tuple[int, ...]
) -> None:
    """Write the offered piece into one of the places."""
    rows = np.flatnonzero(chosen)
    slot = np.array(places)[(where[rows] * len(places)).astype(np.int64)]
    slots[rows, slot] = offered[rows, slot]


def _drop(slots: IntArray, chosen: BoolArray) -> None:
    """Empty the last filled place behind the head, or else the one before it."""
    rows = np.flatnonzero(chosen)
    filled = slots[rows, SECOND:] != EMPTY
    last = SLOTS - 1 - np.argmax(filled[:, ::-1], axis=1)
    slots[rows, np.where(filled.any(axis=1), last, PREFIX)] = EMPTY
