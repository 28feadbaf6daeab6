"""The people of one block: how much they search, who they are and what they care about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak.synthetic.block import Block
from querycloak.synthetic.interests import draw_interests
from querycloak.synthetic.streams import BLOCK_USERS, FloatArray, IntArray, pick_zipf

#: A log-normal number of searches: median and spread; the busiest accounts are cut off.
MEDIAN_SEARCHES, SPREAD, MOST_SEARCHES = 13.8, 1.30, 4_000
#: Made-up ids grow with the user's number, with gaps, as in AOL's files.
FIRST_ID, ID_GAP = 137, 37


@dataclass(frozen=True)
class People:
    """One entry per user of a block; columns of pieces and numbers."""

    ident: IntArray
    searches: IntArray
    first: IntArray
    last: IntArray
    town: IntArray
    house: IntArray
    street: IntArray
    phone: IntArray
    typing: IntArray  # the usual way to type a site
    chronotype: FloatArray  # hours that the user's day is late
    active: FloatArray  # first and last moment of activity, as shares of the period
    interests: IntArray  # users x at most MOST_INTERESTS
    breadth: IntArray


def draw_people(block: Block) -> People:
    """Draw the users of a block."""
    rng, world, size = block.stream("people"), block.world, BLOCK_USERS
    interests, breadth = draw_interests(block)
    searches = np.rint(MEDIAN_SEARCHES * np.exp(SPREAD * rng.standard_normal(size)))
    number = block.first_user + np.arange(size)
    return People(
        ident=FIRST_ID + ID_GAP * number + rng.integers(0, ID_GAP, size),
        searches=searches.clip(1, MOST_SEARCHES).astype(np.int64),
        first=rng.integers(0, world.ranges["first"].size, size),
        last=rng.integers(0, world.ranges["last"].size, size),
        town=pick_zipf(rng.random(size), world.ranges["town"].size),
        house=rng.integers(1, 9_999, size),
        street=rng.integers(0, len(world.streets), size),
        phone=rng.integers(0, 800 * 100, size),
        typing=rng.integers(0, 3, size),  # the first three forms
        chronotype=rng.normal(0.0, 1.5, size),
        active=_active(rng, size),
        interests=interests,
        breadth=breadth,
    )


def _active(rng: np.random.Generator, size: int) -> FloatArray:
    """Most users search throughout; three in ten come late or leave early."""
    ends = np.sort(rng.random((size, 2)), axis=1)
    ends[:, 1] = np.maximum(ends[:, 1], ends[:, 0] + 0.02)
    ends[rng.random(size) < 0.7] = (0.0, 1.0)
    return ends.clip(0.0, 1.0)
