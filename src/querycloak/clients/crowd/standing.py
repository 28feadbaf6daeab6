"""What a member knows of one friend: how far she trusts her, and what came from her and went to her."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from querycloak.clients.crowd import rules
from querycloak.clients.crowd.limits import Bucket, Recent
from querycloak.clients.crowd.manners import Manners

#: Hop ids of a friend that are remembered, so that a query that is sent twice is noticed.
REMEMBERED: Final = 10_000


class Standing:
    """One friend, as a member sees her."""

    __slots__ = (
        "_isolated",
        "_manners",
        "connected",
        "faults",
        "friends",
        "given_up",
        "not_taken",
        "overflows",
        "own",
        "passed",
        "rate",
        "seen",
        "silences",
        "texts",
        "trust",
        "waiting",
    )

    def __init__(self, manners: Manners, kept: Mapping[str, Any]) -> None:
        self._manners = manners
        self._isolated: float | None = None
        self.trust = min(1.0, max(0.0, float(kept.get("trust", 1.0))))
        self.friends = int(kept.get("friends", 1))
        self.own, self.passed = (max(0, int(kept.get(name, 0))) for name in ("own", "passed"))
        self.connected = False
        self.waiting = 0
        self.overflows = self.faults = self.silences = 0
        self.rate = Bucket(manners.rate, manners.burst)
        self.seen = Recent(REMEMBERED)
        # what may still come, once: the end of a question that was given up, and that it was taken at all
        self.given_up, self.not_taken = Recent(REMEMBERED), Recent(REMEMBERED)
        self.texts = Recent(REMEMBERED)  # hashes of what came from her, in memory only

    def accepts(self, draw: float, now: float) -> bool:
        """Decide whether a query of hers is taken; who has no trust left gets a little after a time.

        Without that, two friends who have lost all trust in each other could never win it back.
        """
        if self.trust >= self._manners.penalty:
            self._isolated = None
        elif self._isolated is None:
            self._isolated = now
        elif now - self._isolated >= self._manners.forgiveness:
            self._isolated, self.trust = None, self._manners.penalty
        return rules.accepts(self.trust, draw)

    @property
    def may_have_one_more(self) -> bool:
        """Say whether she may be handed an own query: of all that she could not know, few enough are own.

        One may be above the share: if nobody handed on a first query of her own, nobody ever would.
        """
        most = self._manners.most_own
        return most > 0 and self.own <= most * (self.own + 1 + self.passed)

    def took(self) -> None:
        """A query of hers was taken: she owes one."""
        self.trust = rules.after_taking(self.trust, self._manners.penalty)

    def owes_nothing(self) -> None:
        """A query of hers was taken, but no answer could be had: what taking it cost her is given back."""
        self.trust = min(1.0, self.trust + self._manners.penalty)

    def praise(self) -> None:
        """She has brought an answer."""
        self.silences = 0
        self.trust = rules.after_answer(self.trust, self._manners.penalty)

    def blame(self) -> None:
        """She has refused, stayed silent, or sent too much."""
        self.trust = rules.after_refusal(self.trust, self._manners.penalty)

    def kept(self) -> dict[str, Any]:
        """Give what is to be kept over restarts."""
        counts = {"own": self.own, "passed": self.passed}
        return {"trust": round(self.trust, 9), "friends": self.friends} | counts
