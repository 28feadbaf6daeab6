"""Simulation of a crowd: who submits whose queries, under given behaviour of the members."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from querycloak.clients.crowd import kernel
from querycloak.clients.crowd.network import Ints, Network
from querycloak.clients.crowd.rules import ProtocolSettings, share_setting
from querycloak.errors import ParameterError
from querycloak.log import Flags
from querycloak.settings import setting

Progress = Callable[[int, int], None]
#: Queries that are simulated between two reports of progress.
PIECE: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Behaviour(ProtocolSettings):
    """The protocol's settings, and the shares of members that do not follow it."""

    selfish: float = share_setting(0.0, help="share of members that accept no query")
    colluding: float = share_setting(0.0, help="share of members that share all they see")
    churn: float = share_setting(0.0, help="share of the time that members are away")
    stay: int = setting(1000, at_least=1, help="queries of all members during which presence stays the same")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.selfish + self.colluding > 1:
            raise ParameterError("crowd: `selfish` and `colluding` must not sum to more than 1")

    def settings(self, seed: int) -> kernel.Settings:
        """Return the settings of the compiled loop."""
        *names, _ = kernel.Settings._fields
        return kernel.Settings(**{name: getattr(self, name) for name in names}, seed=np.uint64(seed))


@dataclass(frozen=True)
class Trace:
    """Result of a simulation: the outcome of each query, and the final state of users and friendships."""

    network: Network
    behaviour: Behaviour
    author: Ints
    outcomes: npt.NDArray[Any]
    users: npt.NDArray[Any]
    friends: npt.NDArray[Any]
    refused: int
    silent: int
    alone: int
    seconds: float

    @property
    def hops(self) -> float:
        """Mean number of hops."""
        return float(self.outcomes["hops"].mean()) if self.outcomes.size else float("nan")

    @property
    def selfish(self) -> Flags:
        """Whether each user accepts no query."""
        return self._of(kernel.SELFISH)

    @property
    def colluding(self) -> Flags:
        """Whether each user shares what it sees with the other colluding users."""
        return self._of(kernel.COLLUDES)

    def _of(self, kind: int) -> Flags:
        return np.asarray(self.users["kind"][:-1] & kind != 0)


def authors(users: int, queries: int, seed: int) -> Ints:
    """Return the author of each query: users search in turn, in a random order that stays the same."""
    order = np.random.default_rng([seed, 1]).permutation(users).astype(np.int32)
    return np.resize(order, queries)


def simulate(
    network: Network,
    author: Ints,
    behaviour: Behaviour,
    seed: int,
    progress: Progress = lambda done, all_: None,
) -> Trace:
    """Simulate the queries of these authors, in this order."""
    users, friends = _tables(network, behaviour, seed)
    outcomes, totals = np.zeros(author.size, kernel.OUTCOME), np.zeros(3, np.int64)
    state = np.array([seed], np.uint64) ^ np.uint64(0x5851F42D4C957F2D)
    longest, settings = int(network.friends.max(initial=0)), behaviour.settings(seed)
    kernel.walk(author[:0], 0, users, friends, settings, longest, state, totals, outcomes[:0])  # compiles it
    begin = time.perf_counter()
    for first in range(0, author.size, PIECE):
        piece = slice(first, first + PIECE)
        kernel.walk(author[piece], first, users, friends, settings, longest, state, totals, outcomes[piece])
        progress(min(first + PIECE, author.size), author.size)
    seconds = time.perf_counter() - begin
    refused, silent, alone = (int(totals[i]) for i in (kernel.REFUSED, kernel.SILENT, kernel.ALONE))
    return Trace(network, behaviour, author, outcomes, users, friends, refused, silent, alone, seconds)


def _tables(network: Network, behaviour: Behaviour, seed: int) -> tuple[Any, Any]:
    users = np.zeros(network.users + 1, kernel.USER)
    users["start"], users["turn"] = network.start, -1
    order = np.random.default_rng([seed, 2]).permutation(network.users)
    selfish, colluding = (round(share * network.users) for share in (behaviour.selfish, behaviour.colluding))
    users["kind"][order[:selfish]] = kernel.SELFISH
    users["kind"][order[selfish : selfish + colluding]] = kernel.COLLUDES
    friends = np.zeros(network.friend.size, kernel.FRIEND)
    friends["user"], friends["back"], friends["trust"] = network.friend, network.back, 1.0
    friends["friends"] = network.friends[network.friend]
    return users, friends
