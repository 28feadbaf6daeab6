"""What a user cares about: a few categories, some of them much more than the others."""

from __future__ import annotations

import numpy as np

from querycloak.synthetic.block import Block
from querycloak.synthetic.streams import (
    BLOCK_USERS,
    FloatArray,
    IntArray,
    pick_weighted,
)

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
