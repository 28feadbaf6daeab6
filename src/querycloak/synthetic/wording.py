"""How a need is put into words: which places of a query are filled, and with which pieces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak.synthetic.block import Block
from querycloak.synthetic.changes import change_in_waves
from querycloak.synthetic.offers import (
    EMPTY,
    HEAD,
    PREFIX,
    REGION,
    SECOND,
    SLOTS,
    SUFFIX,
    THIRD,
    TOWN,
    draw_offers,
)
from querycloak.synthetic.people import People
from querycloak.synthetic.sessions import Plan
from querycloak.synthetic.streams import BoolArray, FloatArray, IntArray
from querycloak.synthetic.subjects import FRAGMENT, LOCAL, PERSON, PRIVATE, SITE, TOPIC, Subjects

#: How often a new query of each kind fills each place (a private query is one text of its own).
FILLED: dict[int, dict[int, float]] = {
    TOPIC: {PREFIX: 0.19, HEAD: 1, SECOND: 0.42, THIRD: 0.14, SUFFIX: 0.27, TOWN: 0.04, REGION: 0.01},
    SITE: {HEAD: 1, SUFFIX: 0.04},
    PERSON: {HEAD: 1, SECOND: 0.97, TOWN: 0.25, REGION: 0.06},
    LOCAL: {PREFIX: 0.03, HEAD: 1, SECOND: 0.15, SUFFIX: 0.12, TOWN: 1, REGION: 0.3},
    PRIVATE: {},
    FRAGMENT: {HEAD: 1},
}
#: One new query in sixteen has a typing error.
SLIPS = 0.06


@dataclass(frozen=True)
class Wording:
    """Queries as rows of pieces, and the number that their typing error follows from (0: none)."""

    slots: IntArray
    slip: IntArray


def draw_wording(block: Block, people: People, plan: Plan, subjects: Subjects) -> Wording:
    """Word every new search, then every changed one from what it changes."""
    rng, size = block.stream("wording"), plan.user.size
    offered = draw_offers(rng, block, people, plan, subjects)
    slots = np.where(_filled(rng.random((size, SLOTS)), subjects.kind), offered, EMPTY)
    slip = np.where(rng.random(size) < SLIPS, rng.integers(1, 2**40, size), 0)
    slip[np.isin(subjects.kind, (PRIVATE, FRAGMENT))] = 0
    change_in_waves(slots, slip, offered, plan, (subjects.kind, rng.random((size, 2))))
    return Wording(slots, slip)


def _filled(uniform: FloatArray, kind: IntArray) -> BoolArray:
    """Decide which places a new query of each kind fills."""
    odds = np.array([[FILLED[k].get(slot, 0.0) for slot in range(SLOTS)] for k in range(len(FILLED))])
    return np.asarray(uniform < odds[kind])
