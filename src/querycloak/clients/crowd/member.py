"""One member of the crowd as a state machine: what she is told goes in, what she does comes out.

No input or output, no clock, no chance of its own: the time is told with every event, draws come from
`chance` and hop ids from `token`. Friends have the numbers 1, 2, …; she herself is 0 (see `rules`).

Her own queries and those of others are treated alike wherever a friend could see a difference: the same
times to wait, the same next steps after silence, refusal or failure. Only who is drawn first differs, by the
protocol (Ψ for her own, Ψf for others'). From the second on all are drawn alike: the thesis draws from the
vector again, and friends who act together could tell an own query by refusing it (`redraw`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from querycloak.clients.crowd import rules
from querycloak.clients.crowd.doings import (
    Accept,
    Answer,
    Ask,
    Deliver,
    Doing,
    Found,
    Refuse,
    Rejected,
    Return,
    Submit,
)
from querycloak.clients.crowd.exposure import Exposure
from querycloak.clients.crowd.limits import Recent, fingerprint
from querycloak.clients.crowd.manners import Manners
from querycloak.clients.crowd.standing import REMEMBERED, Standing

#: Answers that nobody asked for and queries sent twice, in one connection, before it is cut.
MOST_FAULTS: Final = 10
#: Queries above the rate, one after the other, before the connection is cut.
MOST_OVERFLOWS: Final = 50
#: Questions of which nothing comes, with no answer in between, before a friend is taken for gone.
MOST_SILENCES: Final = 3
#: Friends who are asked for the same query, before she submits it herself.
MOST_ASKS: Final = 6


@dataclass(slots=True)
class _Job:
    """A query that she is responsible for: her own, or one that she has taken from a friend."""

    text: str
    begun: float
    asked: list[bool]
    origin: tuple[int, str] | None = None
    orphan: bool = False
    refused: int = 0
    asks: int = 0
    hop: tuple[int, str] | None = None
    taken: bool = False
    due: float = 0.0
    suspect: int = 0
    gone: list[int] = field(default_factory=list)

    @property
    def mark(self) -> str:
        """Tell the text from others without keeping it."""
        return fingerprint(self.text)

    def exclude(self, friend: int) -> None:
        """Do not ask this friend again."""
        self.refused += not self.asked[friend]
        self.asked[friend] = True


class Member:
    """Decides what happens to queries, and keeps count of trust and of what she has shown of herself."""

    def __init__(
        self,
        friends: Sequence[str],
        manners: Manners,
        exposure: Exposure,
        chance: Callable[[], float],
        token: Callable[[], str],
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        kept = kept or {}
        known = kept.get("friends", {})
        self.manners, self.exposure = manners, exposure
        self.names = tuple(friends)
        self.standing = {n: Standing(manners, known.get(name, {})) for n, name in enumerate(self.names, 1)}
        self.counts: Counter[str] = Counter(kept.get("counts", {}))
        self._chance, self._token = chance, token
        self._vector: list[float] | None = kept.get("vector")
        self._searched = int(kept.get("searched", 0))
        self._weights: list[int] | None = None
        self._jobs: dict[int, _Job] = {}
        self._hops: dict[tuple[int, str], int] = {}
        self._timers: list[tuple[float, int, tuple[int, str]]] = []
        self._mine = Recent(REMEMBERED)  # of her own texts, in memory only
        self._last = 0
        self._engine_fails = False

    # what she is told

    def search(self, text: str, now: float) -> tuple[int, list[Doing]]:
        """Begin a query of her own; the number comes back with its `Deliver`."""
        self.exposure.searched(text)
        self._mine.add(fingerprint(text))
        if self._searched and self.manners.renew and self._searched % self.manners.renew == 0:
            self._vector = self._weights = None
        self._searched += 1
        self.counts["searched"] += 1
        number = self._new(_Job(text, now, [False] * (len(self.standing) + 1)))
        return number, self._pass_on(number, now)

    def asked(self, friend: int, hop: str, text: str, now: float) -> list[Doing]:
        """A friend hands over a query: take it or refuse it (Υ)."""
        reason = self._objection(friend, hop, now)
        self._known(friend).seen.add(hop)
        self._known(friend).texts.add(fingerprint(text))
        if reason:
            self.counts[reason] += 1
            return [Refuse(friend, hop)]
        self._known(friend).took()
        self._known(friend).waiting += 1
        self.counts["taken"] += 1
        job = _Job(text, now, [False] * (len(self.standing) + 1), origin=(friend, hop))
        if not self.manners.back:
            job.exclude(friend)
        return [Accept(friend, hop), *self._pass_on(self._new(job), now)]

    def accepted(self, friend: int, hop: str, now: float) -> list[Doing]:
        """A friend has taken a query: wait for the answer."""
        number = self._hops.get((friend, hop))
        if number is None or self._jobs[number].taken:
            self._unexpected(friend, hop, ends=False)
            return []
        self._jobs[number].taken = True
        self._wait(number, now + self.manners.answer_within * (1.0 + self._chance()) / 2.0)
        return []

    def refused(self, friend: int, hop: str, now: float) -> list[Doing]:
        """A friend has refused a query: trust her less, ask another."""
        number = self._closed(friend, hop)
        if number is None:
            return []
        self.counts["refused"] += 1
        self._known(friend).blame()
        return self._pass_on(number, now)

    def returned(self, friend: int, hop: str, answer: Found, now: float) -> list[Doing]:
        """A friend brings an answer, or says that there is none."""
        at = self._hops.get((friend, hop))
        if at is not None and not self._jobs[at].taken:  # an answer to what she has not even taken
            self._unexpected(friend, hop)
            return []
        number = self._closed(friend, hop)
        if number is None:
            return []
        if isinstance(answer, Answer):
            self._known(friend).praise()
        if answer is not None:
            return self._finish(number, answer)
        self.counts["gone"] += 1
        self._jobs[number].gone.append(friend)
        if self._engine_fails:  # it may well be true: see for oneself before blaming anybody
            self._jobs[number].suspect = friend
            return self._submit(number)
        self._known(friend).blame()
        return self._pass_on(number, now)

    def submitted(self, number: int, answer: Found) -> list[Doing]:
        """The engine has answered a query that she submitted, or would not, or could not be asked."""
        if number not in self._jobs:
            return []
        self._engine_fails = answer is None
        self.counts["engine failed"] += answer is None
        self.counts["engine rejected"] += isinstance(answer, Rejected)
        suspect = self._jobs[number].suspect
        if suspect and isinstance(answer, Answer):
            self._known(suspect).blame()
        return self._finish(number, answer)

    def joined(self, friend: int, friends: int) -> None:
        """A friend is there, and says how many friends she has."""
        known = self._known(friend)
        known.connected, known.overflows, known.faults, known.silences = True, 0, 0, 0
        believed = max(1, min(friends, self.manners.friends_counted))
        if believed != known.friends:
            known.friends, self._weights = believed, None

    def left(self, friend: int, now: float) -> list[Doing]:
        """A friend is gone: what she had goes to somebody else, and nobody waits for what came from her.

        Being away costs no trust: who is cut off from a friend could else lose all of it without a fault.
        """
        self._known(friend).connected = False
        doings: list[Doing] = []
        for at in [hop for hop in self._hops if hop[0] == friend]:
            self._given_up(*at)
            number = self._closed(*at)
            self.counts["lost"] += 1
            doings += self._pass_on(number, now) if number is not None else []
        for job in self._jobs.values():
            job.orphan = job.orphan or (job.origin is not None and job.origin[0] == friend)
        return doings

    def wake(self, now: float) -> list[Doing]:
        """Do what is due: whoever has let her time run out is trusted less, and another is asked."""
        doings: list[Doing] = []
        while self._timers and self._timers[0][0] <= now:
            due, number, hop = heapq.heappop(self._timers)
            job = self._jobs.get(number)
            if job is None or job.hop != hop or job.due != due:
                continue
            self._given_up(*hop)
            self._closed(*hop)
            self._known(hop[0]).blame()
            self._known(hop[0]).silences += 1
            self.counts["silent"] += 1
            doings += self._pass_on(number, now)
        return doings

    # what is known of her

    @property
    def due(self) -> float | None:
        """Say when she wants to be woken."""
        while self._timers:
            due, number, hop = self._timers[0]
            job = self._jobs.get(number)
            if job is not None and job.hop == hop and job.due == due:
                return due
            heapq.heappop(self._timers)
        return None

    @property
    def under_way(self) -> int:
        """Say how many queries she is responsible for now."""
        return len(self._jobs)

    def has_enough_of(self, friend: int) -> bool:
        """Say whether a friend forges, repeats, floods or is silent so much that talking makes no sense."""
        known = self._known(friend)
        return (
            known.faults >= MOST_FAULTS
            or known.overflows >= MOST_OVERFLOWS
            or known.silences >= MOST_SILENCES
        )

    def kept(self) -> dict[str, Any]:
        """Give what is to be kept over restarts; no text is in it."""
        return {
            "friends": {name: self.standing[n].kept() for n, name in enumerate(self.names, 1)},
            "vector": self._vector,
            "searched": self._searched,
            "counts": dict(sorted(self.counts.items())),
        }

    # how she decides

    def _known(self, friend: int) -> Standing:
        return self.standing[friend]

    def _new(self, job: _Job) -> int:
        self._last += 1
        self._jobs[self._last] = job
        return self._last

    def _objection(self, friend: int, hop: str, now: float) -> str:
        """Say why a query is not taken; nothing if it is."""
        known = self._known(friend)
        if hop in known.seen:
            known.faults += 1
            return "replayed"
        if not known.rate.take(now):
            known.blame()
            known.overflows += 1
            return "too many"
        if known.waiting >= self.manners.waiting or len(self._jobs) >= self.manners.in_flight:
            return "full"
        known.overflows = 0
        return "" if known.accepts(self._chance(), now) else "declined"

    def _pass_on(self, number: int, now: float) -> list[Doing]:
        """Draw who is next, and ask her; submit it if the draw or the time says so, or enough were asked."""
        job = self._jobs[number]
        while now - job.begun < self.manners.answer_within and job.asks < MOST_ASKS:
            who = self._drawn(job)
            if who <= 0:
                self.counts["alone"] += who < 0
                break
            known = self._known(who)
            if known.connected and (job.mark not in self._mine or known.may_have_one_more):
                return [self._ask(number, who, now)]
            self.counts["kept back" if known.connected else "absent"] += 1
            job.exclude(who)
        return self._submit(number)

    def _drawn(self, job: _Job) -> int:
        alike = job.asks > 0 and self.manners.redraw == "alike"
        if job.origin is not None or alike:
            return rules.forwarded(len(self.standing), job.asked, job.refused, self._chance())
        return rules.drawn(self._own_weights(), job.asked, self._chance())

    def _own_weights(self) -> list[int]:
        """Make the weights of her own queries from the vector's draws and what friends say of themselves."""
        if self._weights is not None:
            return self._weights
        if self._vector is None:
            self._vector = [self._chance(), self._chance(), self._chance()]
        for_copies, for_share, begin = self._vector
        manners = self.manners
        share = manners.least_cut + (manners.most_cut - manners.least_cut) * for_share
        self._weights = [0] * (len(self.standing) + 1)
        friends_of = [known.friends for known in self.standing.values()]
        rules.cut_weights(friends_of, 1 + int(for_copies * manners.copies), share, begin, self._weights)
        return self._weights

    def _ask(self, number: int, who: int, now: float) -> Ask:
        job, hop = self._jobs[number], self._token()
        job.hop, job.taken = (who, hop), False
        job.asks += 1
        self._hops[who, hop] = number
        self._wait(number, now + self.manners.accept_within)
        self.counts["asked"] += 1
        self.counts["asked of her own"] += job.origin is None
        if job.mark in self._mine:  # also when it comes by again on its way
            self._known(who).own += 1
        elif job.mark not in self._known(who).texts:  # she knows what came from herself
            self._known(who).passed += 1
        return Ask(who, hop, job.text)

    def _wait(self, number: int, due: float) -> None:
        job = self._jobs[number]
        assert job.hop is not None
        job.due = due
        heapq.heappush(self._timers, (due, number, job.hop))

    def _closed(self, friend: int, hop: str) -> int | None:
        """End what was asked of a friend; she is not asked again for the same query."""
        number = self._hops.pop((friend, hop), None)
        if number is None:
            self._unexpected(friend, hop)
            return None
        self._jobs[number].hop = None
        self._jobs[number].exclude(friend)
        return number

    def _given_up(self, friend: int, hop: str) -> None:
        """Remember what may still come late."""
        self._known(friend).given_up.add(hop)
        if not self._jobs[self._hops[friend, hop]].taken:
            self._known(friend).not_taken.add(hop)

    def _unexpected(self, friend: int, hop: str, ends: bool = True) -> None:
        """Tell what comes too late from what was never asked; each line may come late once."""
        known = self._known(friend)
        late = (known.given_up if ends else known.not_taken).remove(hop)
        if ends:
            known.not_taken.remove(hop)
        self.counts["late" if late else "forged"] += 1
        known.faults += not late

    def _submit(self, number: int) -> list[Doing]:
        self.exposure.submitted(self._jobs[number].text)
        self.counts["submitted"] += 1
        return [Submit(number, self._jobs[number].text)]

    def _finish(self, number: int, answer: Found) -> list[Doing]:
        """Hand the answer to whoever waits for it, once."""
        job = self._jobs.pop(number)
        for friend in job.gone if isinstance(answer, Answer) else ():  # who said that there was none
            self._known(friend).silences += 1
        if job.origin is None:
            self.counts["answered" if isinstance(answer, Answer) else "failed"] += 1
            return [Deliver(number, answer)]
        friend, hop = job.origin
        self._known(friend).waiting -= 1
        if not isinstance(answer, Answer):
            self._known(friend).owes_nothing()
        if job.orphan:
            self.counts["nobody waits"] += 1
            return []
        self.counts["brought back"] += 1
        return [Return(friend, hop, answer)]
