"""The users of one block: volume, identity, interests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak.synthetic.rng import BLOCK_USERS, FloatArray, IntArray, pick_weighted, pick_zipf
from querycloak.synthetic.world import Block

MOST_INTERESTS = 8
#: Each further interest gets this share of the attention of the one before it.
FADING = 0.65
#: One topical search in eight is about something else.
WANDERING = 0.12


def draw_interests(block: Block) -> tuple[IntArray, IntArray]:
    """Draw each user's categories, dearest first, and how many of them count."""
    rng = block.stream("interests")
    shape = (BLOCK_USERS, MOST_INTERESTS)
    categories = pick_weighted(rng.random(shape).ravel(), block.world.topics.popularity).reshape(shape)
    return categories, 1 + rng.binomial(MOST_INTERESTS - 1, 0.4, BLOCK_USERS)


def choose_interest(uniform: FloatArray, breadth: IntArray) -> IntArray:
    """Turn uniform draws into the number of one of the user's interests."""
    kept = 1.0 - FADING ** breadth.astype(np.float64)
    chosen = np.floor(np.log1p(-uniform * kept) / np.log(FADING))
    return np.asarray(np.minimum(chosen, breadth - 1), np.int64)


#: A log-normal number of searches: median and spread; the busiest accounts are cut off.
MEDIAN_SEARCHES, SPREAD, MOST_SEARCHES = 13.8, 1.30, 4_000
#: Ids grow with the user's number, with gaps, as in AOL's files.
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
