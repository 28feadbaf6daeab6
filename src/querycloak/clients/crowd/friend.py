"""`FriendState`: a member's record of one friend: trust, misbehaviour counts and recent ids."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from querycloak.clients.crowd import rules
from querycloak.clients.crowd.config import PeerSettings
from querycloak.rate_limit import TokenBucket

#: Hop ids and text hashes of a friend that are remembered.
REMEMBERED: Final = 10_000
#: Unexpected answers and repeated queries in one connection before it is closed.
MAX_PROTOCOL_ERRORS: Final = 10
#: Consecutive queries above the rate before the connection is closed.
MAX_RATE_EXCESSES: Final = 50
#: Consecutive queries without an answer before the connection is closed.
MAX_TIMEOUTS: Final = 3


class RecentSet:
    """The `size` texts that were added last."""

    def __init__(self, size: int) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()
        self._size = size

    def __contains__(self, text: str) -> bool:
        return text in self._known

    def add(self, text: str) -> None:
        """Add a text and forget the oldest above the size."""
        self._known[text] = None
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def remove(self, text: str) -> bool:
        """Remove a text; return whether it was there."""
        return self._known.pop(text, 0) is None


def text_hash(text: str) -> str:
    """Return a hash of a text under a key that each process draws; it is never stored."""
    return str(hash(text))


class FriendState:
    """One friend, as a member sees it."""

    def __init__(self, settings: PeerSettings, stored: Mapping[str, Any]) -> None:
        self._settings = settings
        self._isolated: float | None = None
        self.trust, self.friends = float(stored.get("trust", 1.0)), int(stored.get("friends", 1))
        #: Own queries and queries of others sent to this friend that did not come from it.
        self.own, self.passed = int(stored.get("own", 0)), int(stored.get("passed", 0))
        self.connected = False
        self.pending = 0
        self.rate_excesses = self.protocol_errors = self.timeouts = 0
        self.rate = TokenBucket(settings.rate, settings.burst)
        self.seen = RecentSet(REMEMBERED)
        #: Hops whose answer, or whose acceptance, can still arrive late, each once.
        self.given_up, self.not_accepted = RecentSet(REMEMBERED), RecentSet(REMEMBERED)
        self.texts = RecentSet(REMEMBERED)  # hashes of this friend's queries, in memory only

    def connect(self, friends: int) -> bool:
        """Start a connection; return whether the believed number of the friend's friends changed."""
        self.connected, self.rate_excesses, self.protocol_errors, self.timeouts = True, 0, 0, 0
        before, self.friends = self.friends, max(1, min(friends, self._settings.friends_counted))
        return before != self.friends

    def accepts(self, draw: float, now: float) -> bool:
        """Whether a query of this friend is accepted; a friend without trust regains some after a time.

        Without that, two friends that lost all trust in each other could never regain it.
        """
        if self.trust >= self._settings.penalty:
            self._isolated = None
        elif self._isolated is None:
            self._isolated = now
        elif now - self._isolated >= self._settings.forgiveness:
            self._isolated, self.trust = None, self._settings.penalty
        return rules.accepts(self.trust, draw)

    @property
    def may_receive_own(self) -> bool:
        """Whether the friend may receive an own query: the share of own queries stays within `most_own`.

        One above the share is allowed: otherwise no first own query could ever be sent.
        """
        most = self._settings.most_own
        return most > 0 and self.own <= most * (self.own + 1 + self.passed)

    @property
    def exceeds_misbehaviour_limit(self) -> bool:
        """Whether the friend exceeded a misbehaviour limit and should be disconnected."""
        return (
            self.protocol_errors >= MAX_PROTOCOL_ERRORS
            or self.rate_excesses >= MAX_RATE_EXCESSES
            or self.timeouts >= MAX_TIMEOUTS
        )

    def charge(self) -> None:
        """Charge the friend for a query that was accepted."""
        self.trust = rules.after_loss(self.trust, self._settings.penalty)

    def refund(self) -> None:
        """Refund the trust charged for an accepted query that could not be answered."""
        self.trust = min(1.0, self.trust + self._settings.penalty)

    def reward(self) -> None:
        """Reward the friend for an answer."""
        self.timeouts = 0
        self.trust = rules.after_answer(self.trust, self._settings.penalty)

    def penalise(self) -> None:
        """Penalise the friend for a refusal, a timeout or too many queries."""
        self.trust = rules.after_loss(self.trust, self._settings.penalty)

    def snapshot(self) -> dict[str, Any]:
        """Return the values that are stored over restarts."""
        names = ("friends", "own", "passed")
        return {"trust": round(self.trust, 9)} | {name: getattr(self, name) for name in names}
