"""A block of users: the unit that is drawn at once, wherever a log is cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from querycloak.synthetic.streams import BLOCK_USERS, stream
from querycloak.synthetic.world import World


@dataclass(frozen=True)
class Block:
    """Which users are being made up, with which seed, in which world."""

    seed: int
    number: int
    world: World

    @property
    def first_user(self) -> int:
        """Give the number of the block's first user in the whole log."""
        return self.number * BLOCK_USERS

    def stream(self, purpose: str) -> np.random.Generator:
        """Open this block's random stream for one purpose."""
        return stream(self.seed, self.number, purpose)
