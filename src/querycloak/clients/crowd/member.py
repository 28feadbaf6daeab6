"""`Member`: one member of the crowd as a state machine without input and output.

`handle` takes an event and returns actions; a driver executes them. The time comes with every event, random
draws come from `draw` and hop ids from `new_hop`. Friends have the numbers 1, 2, …; the member itself is 0
(see `rules`).

Own queries and those of others are treated equally wherever a friend could see a difference: the same
waiting times and the same next steps after a timeout, a refusal or a failure. Only the first draw differs,
by the protocol (Ψ for own queries, Ψf for others). From the second on, all friends are equally likely: the
thesis draws from the vector again, and friends that act together could recognise an own query by refusing
it (`redraw`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from querycloak.clients.crowd import rules
from querycloak.clients.crowd.config import PeerSettings
from querycloak.clients.crowd.friend import REMEMBERED, FriendState, RecentSet, text_hash
from querycloak.clients.crowd.messages import (
    Accepted,
    Action,
    Answer,
    DeliverToUser,
    EngineReply,
    EngineResult,
    Event,
    FriendConnected,
    FriendLost,
    Inbound,
    LocalQuery,
    Message,
    Page,
    Query,
    Refused,
    Rejected,
    Rejection,
    Send,
    SubmitToEngine,
    reply,
)

#: Friends to which the same query is sent before the member submits it.
MAX_ATTEMPTS: Final = 6

_FriendHop = tuple[int, str]


@dataclass(slots=True)
class _Job:
    """A query for which the member is responsible: its own (`number`), or one of a friend (`origin`)."""

    text: str
    begun: float
    excluded: list[bool]
    number: int = 0
    origin: _FriendHop | None = None
    orphan: bool = False
    refused: int = 0
    attempts: int = 0
    hop: _FriendHop | None = None
    accepted: bool = False
    due: float = 0.0
    suspect: int = 0
    unanswered: list[int] = field(default_factory=list)

    def exclude(self, friend: int) -> None:
        """Do not send the query to this friend again."""
        self.refused += not self.excluded[friend]
        self.excluded[friend] = True


class Member:
    """Decides what happens to queries; holds trust, counters and the vector of the protocol."""

    def __init__(
        self,
        friends: Sequence[str],
        settings: PeerSettings,
        draw: Callable[[], float],
        new_hop: Callable[[], str],
        stored: Mapping[str, Any] | None = None,
    ) -> None:
        stored = stored or {}
        known = stored.get("friends", {})
        self.settings = settings
        self.names = tuple(friends)
        self.friends = {n: FriendState(settings, known.get(name, {})) for n, name in enumerate(self.names, 1)}
        self.counts: Counter[str] = Counter(stored.get("counts", {}))
        self._draw, self._new_hop = draw, new_hop
        self._vector: list[float] | None = stored.get("vector")
        self._searched = int(stored.get("searched", 0))
        self._weights: list[int] | None = None
        self._jobs: dict[int, _Job] = {}
        self._hops: dict[_FriendHop, int] = {}
        self._timers: list[tuple[float, int, _FriendHop]] = []
        self._own_texts = RecentSet(REMEMBERED)  # hashes, in memory only
        self._last_job = 0
        self._engine_fails = False

    def handle(self, event: Event, now: float) -> list[Action]:
        """Return the actions that follow from an event."""
        match event:
            case LocalQuery(number, text):
                return self._search(number, text, now)
            case Inbound(friend, message):
                return self._receive(friend, message, now)
            case EngineReply(job, result):
                return self._engine_replied(job, result)
            case FriendConnected(friend, friends):
                if self.friends[friend].connect(friends):
                    self._weights = None
                return []
            case FriendLost(friend):
                return self._friend_lost(friend, now)
        return self._timer_fired(now)

    def next_timer(self) -> float | None:
        """Return the time of the next `TimerFired`; None without one."""
        while self._timers:
            due, number, hop = self._timers[0]
            job = self._jobs.get(number)
            if job is not None and job.hop == hop and job.due == due:
                return due
            heapq.heappop(self._timers)
        return None

    def snapshot(self) -> dict[str, Any]:
        """Return the values that are stored over restarts: no text and no hash of a text."""
        return {
            "friends": {name: self.friends[n].snapshot() for n, name in enumerate(self.names, 1)},
            "vector": self._vector,
            "searched": self._searched,
            "counts": dict(sorted(self.counts.items())),
        }

    @property
    def in_flight(self) -> int:
        """Number of queries for which the member is responsible now."""
        return len(self._jobs)

    # events

    def _search(self, number: int, text: str, now: float) -> list[Action]:
        self._own_texts.add(text_hash(text))
        if self._searched and self.settings.renew and self._searched % self.settings.renew == 0:
            self._vector = self._weights = None
        self._searched += 1
        self.counts["searches_started"] += 1
        return self._forward(self._new_job(text, now, number=number), now)

    def _receive(self, friend: int, message: Message, now: float) -> list[Action]:
        match message:
            case Query(hop, text):
                return self._received_query(friend, hop, text, now)
            case Accepted(hop):
                return self._received_acceptance(friend, hop, now)
            case Refused(hop):
                return self._received_refusal(friend, hop, now)
            case Answer(hop, kind, body):
                return self._received_result(friend, hop, Page(kind, body), now)
            case Rejection(hop):
                return self._received_result(friend, hop, Rejected(), now)
        return self._received_result(friend, message.hop, None, now)

    def _received_query(self, friend: int, hop: str, text: str, now: float) -> list[Action]:
        """Accept or refuse a query of a friend (Υ)."""
        reason = self._refusal_reason(friend, hop, now)
        state = self.friends[friend]
        state.seen.add(hop)
        state.texts.add(text_hash(text))
        if reason:
            self.counts[reason] += 1
            return [Send(friend, Refused(hop))]
        state.charge()
        state.pending += 1
        self.counts["queries_accepted"] += 1
        number = self._new_job(text, now, origin=(friend, hop))
        if not self.settings.back:
            self._jobs[number].exclude(friend)
        return [Send(friend, Accepted(hop)), *self._forward(number, now)]

    def _received_acceptance(self, friend: int, hop: str, now: float) -> list[Action]:
        number = self._hops.get((friend, hop))
        if number is None or self._jobs[number].accepted:
            self._unexpected(friend, hop, ends=False)
            return []
        self._jobs[number].accepted = True
        self._set_timer(number, now + self.settings.answer_within * (1.0 + self._draw()) / 2.0)
        return []

    def _received_refusal(self, friend: int, hop: str, now: float) -> list[Action]:
        number = self._close_hop(friend, hop)
        if number is None:
            return []
        self.counts["refusals_received"] += 1
        self.friends[friend].penalise()
        return self._forward(number, now)

    def _received_result(self, friend: int, hop: str, result: EngineResult, now: float) -> list[Action]:
        pending = self._hops.get((friend, hop))
        if pending is not None and not self._jobs[pending].accepted:  # a result without an acceptance
            self._unexpected(friend, hop)
            return []
        number = self._close_hop(friend, hop)
        if number is None:
            return []
        if isinstance(result, Page):
            self.friends[friend].reward()
        if result is not None:
            return self._finish(number, result)
        self.counts["gone_received"] += 1
        self._jobs[number].unanswered.append(friend)
        if self._engine_fails:  # possibly true: submit before anybody is penalised
            self._jobs[number].suspect = friend
            return self._submit(number)
        self.friends[friend].penalise()
        return self._forward(number, now)

    def _engine_replied(self, number: int, result: EngineResult) -> list[Action]:
        if number not in self._jobs:
            return []
        self._engine_fails = result is None
        self.counts["engine_unavailable"] += result is None
        self.counts["engine_rejected"] += isinstance(result, Rejected)
        suspect = self._jobs[number].suspect
        if suspect and isinstance(result, Page):
            self.friends[suspect].penalise()
        return self._finish(number, result)

    def _friend_lost(self, friend: int, now: float) -> list[Action]:
        """Send the friend's queries to others; drop the results that it waits for.

        An absence costs no trust: a friend that is often offline could otherwise lose all of it.
        """
        self.friends[friend].connected = False
        actions: list[Action] = []
        for at in [hop for hop in self._hops if hop[0] == friend]:
            self._give_up(*at)
            number = self._close_hop(*at)
            self.counts["queries_lost"] += 1
            actions += self._forward(number, now) if number is not None else []
        for job in self._jobs.values():
            job.orphan = job.orphan or (job.origin is not None and job.origin[0] == friend)
        return actions

    def _timer_fired(self, now: float) -> list[Action]:
        """Penalise friends that did not reply in time, and send their queries to others."""
        actions: list[Action] = []
        while self._timers and self._timers[0][0] <= now:
            due, number, hop = heapq.heappop(self._timers)
            job = self._jobs.get(number)
            if job is None or job.hop != hop or job.due != due:
                continue
            self._give_up(*hop)
            self._close_hop(*hop)
            self.friends[hop[0]].penalise()
            self.friends[hop[0]].timeouts += 1
            self.counts["timeouts"] += 1
            actions += self._forward(number, now)
        return actions

    # decisions

    def _new_job(self, text: str, now: float, number: int = 0, origin: _FriendHop | None = None) -> int:
        self._last_job += 1
        excluded = [False] * (len(self.friends) + 1)
        self._jobs[self._last_job] = _Job(text, now, excluded, number, origin)
        return self._last_job

    def _refusal_reason(self, friend: int, hop: str, now: float) -> str:
        """Return the counter of the reason to refuse a query; empty if it is accepted."""
        state = self.friends[friend]
        if hop in state.seen:
            state.protocol_errors += 1
            return "queries_replayed"
        if state.rate.take(now):
            state.penalise()
            state.rate_excesses += 1
            return "rate_limited"
        if state.pending >= self.settings.waiting or len(self._jobs) >= self.settings.in_flight:
            return "queries_over_capacity"
        state.rate_excesses = 0
        return "" if state.accepts(self._draw(), now) else "queries_declined"

    def _forward(self, number: int, now: float) -> list[Action]:
        """Send a query to a drawn friend, or submit it by draw, by time or after enough attempts."""
        job = self._jobs[number]
        own = text_hash(job.text) in self._own_texts
        while now - job.begun < self.settings.answer_within and job.attempts < MAX_ATTEMPTS:
            who = self._draw_next(job)
            if who <= 0:
                self.counts["no_friend_left"] += who < 0
                break
            state = self.friends[who]
            if state.connected and (not own or state.may_receive_own):
                return [self._send_query(number, who, now)]
            self.counts["own_held_back" if state.connected else "friend_absent"] += 1
            job.exclude(who)
        return self._submit(number)

    def _draw_next(self, job: _Job) -> int:
        equally = job.attempts > 0 and self.settings.redraw == "alike"
        if job.origin is not None or equally:
            return rules.draw_forward(len(self.friends), job.excluded, job.refused, self._draw())
        return rules.draw_weighted(self.own_weights(), job.excluded, self._draw())

    def own_weights(self) -> list[int]:
        """Return the weights for own queries, from the draws of the vector and the friends' friend counts."""
        if self._weights is not None:
            return self._weights
        if self._vector is None:
            self._vector = [self._draw(), self._draw(), self._draw()]
        for_copies, for_share, begin = self._vector
        settings = self.settings
        share = settings.least_cut + (settings.most_cut - settings.least_cut) * for_share
        self._weights = [0] * (len(self.friends) + 1)
        friends_of = [state.friends for state in self.friends.values()]
        rules.cut_weights(friends_of, 1 + int(for_copies * settings.copies), share, begin, self._weights)
        return self._weights

    def _send_query(self, number: int, who: int, now: float) -> Send:
        job, hop, mark = self._jobs[number], self._new_hop(), text_hash(self._jobs[number].text)
        job.hop, job.accepted = (who, hop), False
        job.attempts += 1
        self._hops[who, hop] = number
        self._set_timer(number, now + self.settings.accept_within)
        self.counts["queries_sent"] += 1
        self.counts["queries_sent_own"] += job.origin is None
        if mark in self._own_texts:  # also an own query that returned on its way
            self.friends[who].own += 1
        elif mark not in self.friends[who].texts:  # the friend recognises its own queries
            self.friends[who].passed += 1
        return Send(who, Query(hop, job.text))

    def _set_timer(self, number: int, due: float) -> None:
        job = self._jobs[number]
        assert job.hop is not None
        job.due = due
        heapq.heappush(self._timers, (due, number, job.hop))

    def _close_hop(self, friend: int, hop: str) -> int | None:
        """End a hop and exclude the friend from further attempts; return the job, None if it is unknown."""
        number = self._hops.pop((friend, hop), None)
        if number is None:
            self._unexpected(friend, hop)
            return None
        self._jobs[number].hop = None
        self._jobs[number].exclude(friend)
        return number

    def _give_up(self, friend: int, hop: str) -> None:
        """Remember a hop whose replies can still arrive late."""
        self.friends[friend].given_up.add(hop)
        if not self._jobs[self._hops[friend, hop]].accepted:
            self.friends[friend].not_accepted.add(hop)

    def _unexpected(self, friend: int, hop: str, ends: bool = True) -> None:
        """Count a reply that is late, or that belongs to no query; each reply may be late once."""
        state = self.friends[friend]
        late = (state.given_up if ends else state.not_accepted).remove(hop)
        if ends:
            state.not_accepted.remove(hop)
        self.counts["late_replies" if late else "protocol_errors"] += 1
        state.protocol_errors += not late

    def _submit(self, number: int) -> list[Action]:
        self.counts["queries_submitted"] += 1
        return [SubmitToEngine(number, self._jobs[number].text)]

    def _finish(self, number: int, result: EngineResult) -> list[Action]:
        """Return the result to the user or the friend that waits for it."""
        job = self._jobs.pop(number)
        for friend in job.unanswered if isinstance(result, Page) else ():  # they claimed that there was none
            self.friends[friend].timeouts += 1
        if job.origin is None:
            self.counts["searches_answered" if isinstance(result, Page) else "searches_failed"] += 1
            return [DeliverToUser(job.number, result)]
        friend, hop = job.origin
        self.friends[friend].pending -= 1
        if not isinstance(result, Page):
            self.friends[friend].refund()
        if job.orphan:
            self.counts["answers_dropped"] += 1
            return []
        self.counts["answers_returned"] += 1
        return [Send(friend, reply(hop, result))]
