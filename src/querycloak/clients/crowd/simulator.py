"""Simulates a crowd: who submits whose queries, how exposed everybody is, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from querycloak.clients.crowd import rules, walks
from querycloak.clients.crowd.network import Network
from querycloak.errors import ParameterError

Ints = npt.NDArray[np.int32]
Progress = Callable[[int, int], None]
#: Queries that are simulated before progress is shown.
PIECE: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """How members of the crowd behave; what the thesis found best is the default."""

    selfish: float = 0.0
    colluding: float = 0.0
    churn: float = 0.0
    stay: int = 1000
    penalty: float = rules.PENALTY
    least_cut: float = rules.LEAST_CUT
    most_cut: float = rules.MOST_CUT
    copies: int = rules.MOST_COPIES
    renew: int = 0
    back: bool = True

    def __post_init__(self) -> None:
        for name in ("selfish", "colluding", "churn", "penalty", "least_cut", "most_cut"):
            if not 0 <= getattr(self, name) <= 1:
                raise ParameterError(f"`{name}` must be between 0 and 1")
        if self.selfish + self.colluding > 1:
            raise ParameterError("selfish and colluding users cannot be more than all")
        if self.least_cut > self.most_cut or self.most_cut == 1:
            raise ParameterError("the share that is cut out must be below 1, the least first")
        if self.copies < 1 or self.stay < 1 or self.renew < 0:
            raise ParameterError("`copies` and `stay` must be at least 1, and `renew` at least 0")

    def settings(self, seed: int) -> walks.Settings:
        """Give what the loop wants."""
        return walks.Settings(
            self.penalty,
            self.least_cut,
            self.most_cut,
            self.copies,
            self.renew,
            self.churn,
            self.stay,
            self.back,
            np.uint64(seed),
        )


@dataclass(frozen=True)
class Trace:
    """What has happened: `told` of each query, and what has come of everybody and of all friendships."""

    network: Network
    behaviour: Behaviour
    author: Ints
    told: npt.NDArray[Any]
    users: npt.NDArray[Any]
    friends: npt.NDArray[Any]
    refused: int
    silent: int
    alone: int
    seconds: float
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def hops(self) -> float:
        """The mean number of hops."""
        return float(self.told["hops"].mean()) if self.told.size else float("nan")

    @property
    def selfish(self) -> npt.NDArray[np.bool_]:
        """Who refuses all."""
        return self._of(walks.SELFISH)

    @property
    def colluding(self) -> npt.NDArray[np.bool_]:
        """Who tells the others of her kind what she is asked to submit, and by whom."""
        return self._of(walks.COLLUDES)

    def _of(self, kind: int) -> npt.NDArray[np.bool_]:
        return np.asarray(self.users["kind"][:-1] & kind != 0)


def authors(users: int, queries: int, seed: int) -> Ints:
    """Let everybody search in turn, in an order that chance decides once for all."""
    order = np.random.default_rng([seed, 1]).permutation(users).astype(np.int32)
    return np.resize(order, queries)


def simulate(
    network: Network,
    author: Ints,
    behaviour: Behaviour,
    seed: int,
    progress: Progress = lambda done, all_: None,
) -> Trace:
    """Send one query after the other into the network."""
    users, friends = _laid_out(network, behaviour, seed)
    told, counted = np.zeros(author.size, walks.TOLD), np.zeros(3, np.int64)
    state = np.array([seed], np.uint64) ^ np.uint64(0x5851F42D4C957F2D)
    longest, settings = int(network.friends.max(initial=0)), behaviour.settings(seed)
    walks.walk(author[:0], 0, users, friends, settings, longest, state, counted, told[:0])  # compiles it
    begin = time.perf_counter()
    for first in range(0, author.size, PIECE):
        piece = slice(first, first + PIECE)
        walks.walk(author[piece], first, users, friends, settings, longest, state, counted, told[piece])
        progress(min(first + PIECE, author.size), author.size)
    seconds = time.perf_counter() - begin
    refused, silent, alone = (int(counted[i]) for i in (walks.REFUSED, walks.SILENT, walks.ALONE))
    return Trace(network, behaviour, author, told, users, friends, refused, silent, alone, seconds)


def _laid_out(network: Network, behaviour: Behaviour, seed: int) -> tuple[Any, Any]:
    """Put everything known of a user, and of a friendship, into one place."""
    users = np.zeros(network.users + 1, walks.USER)
    users["start"], users["turn"] = network.start, -1
    order = np.random.default_rng([seed, 2]).permutation(network.users)
    selfish, colluding = (round(share * network.users) for share in (behaviour.selfish, behaviour.colluding))
    users["kind"][order[:selfish]] = walks.SELFISH
    users["kind"][order[selfish : selfish + colluding]] = walks.COLLUDES
    friends = np.zeros(network.friend.size, walks.FRIEND)
    friends["user"], friends["back"], friends["trust"] = network.friend, network.back, 1.0
    friends["friends"] = network.friends[network.friend]
    return users, friends
