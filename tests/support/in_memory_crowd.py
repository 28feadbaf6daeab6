"""A crowd without sockets: delivers members' messages in any order, or loses them."""

from __future__ import annotations

import random
from collections import Counter

from querycloak.clients.crowd.config import PeerSettings
from querycloak.clients.crowd.member import Member
from querycloak.clients.crowd.messages import (
    DeliverToUser,
    EngineReply,
    FriendConnected,
    FriendLost,
    Inbound,
    LocalQuery,
    Page,
    Query,
    Rejected,
    SubmitToEngine,
    TimerFired,
)


def page_of(text: str) -> Page:
    return Page("text/plain", text[::-1].encode())


class InMemoryNetwork:
    """Members 0, 1, …; time passes only when nothing else is to be done."""

    def __init__(self, pairs, seed=0, engine_fails=0.0, lost=0.0, vectors=None, rejects=None, **settings):
        self.rng = random.Random(seed)
        self.members, self.now, self.letters = {}, 0.0, []
        self.engine_fails, self.lost, self.rejects = engine_fails, lost, rejects
        self.submitted, self.delivered, self.searches = [], Counter(), {}
        self.failed, self.hops = set(), Counter()
        self.friends = {
            m: sorted({a + b - m for a, b in pairs if m in (a, b)})
            for m in {end for pair in pairs for end in pair}
        }
        unlimited = {"rate": 1e6, "burst": 10**6, "waiting": 10**5, "in_flight": 10**6, "most_own": 1.0}
        chosen = PeerSettings(**unlimited | settings)
        for m, friends in self.friends.items():
            stored = {"vector": vectors[m]} if vectors else None
            names = [str(f) for f in friends]
            self.members[m] = Member(names, chosen, self.rng.random, self.new_hop, stored)
        for m in self.members:
            for n, friend in enumerate(self.friends[m], 1):
                self.members[m].handle(FriendConnected(n, len(self.friends[friend])), 0.0)

    def new_hop(self):
        return f"{self.rng.getrandbits(128):032x}"

    def search(self, m, text):
        number = len(self.searches)
        self.searches[m, number] = text
        self.happen(m, LocalQuery(number, text))

    def happen(self, m, event):
        """Pass an event to a member, and take its actions."""
        self.post(m, self.members[m].handle(event, self.now))

    def post(self, m, actions):
        """Take the actions of a member, and check that they make sense."""
        for action in actions:
            if isinstance(action, DeliverToUser):
                text = self.searches[m, action.number]
                self.delivered[m, action.number] += 1
                if not isinstance(action.result, Page):
                    self.failed.add((m, action.number))
                else:
                    assert action.result == page_of(text)
            elif isinstance(action, SubmitToEngine):
                self.letters.append((m, m, action))
            else:
                friend = self.friends[m][action.friend - 1]
                assert self.members[m].friends[action.friend].connected
                if isinstance(action.message, Query):
                    self.hops[action.message.hop] += 1
                if self.rng.random() >= self.lost:
                    self.letters.append((m, friend, action.message))

    def carry(self, letter):
        sender, to, content = letter
        if isinstance(content, SubmitToEngine):
            good = self.rng.random() >= self.engine_fails
            self.submitted.append((to, content.text))
            found = page_of(content.text) if good else None
            if self.rejects and content.text.startswith(self.rejects):
                found = Rejected()
            self.happen(to, EngineReply(content.job, found))
            return
        at = self.friends[to].index(sender) + 1
        if self.members[to].friends[at].connected:
            self.happen(to, Inbound(at, content))

    def part(self, a, b):
        """Two friends lose their connection; messages between them are lost."""
        self.letters = [one for one in self.letters if {one[0], one[1]} != {a, b}]
        for one, other in ((a, b), (b, a)):
            at = self.friends[one].index(other) + 1
            if self.members[one].friends[at].connected:
                self.happen(one, FriendLost(at))

    def meet(self, a, b):
        for one, other in ((a, b), (b, a)):
            at = self.friends[one].index(other) + 1
            self.happen(one, FriendConnected(at, len(self.friends[other])))

    def settle(self, in_order=True):
        """Deliver everything, and let time pass, until nobody has anything to do."""
        for _ in range(1_000_000):
            if self.letters:
                at = 0 if in_order else self.any_first()
                self.carry(self.letters.pop(at))
                continue
            timers = [due for member in self.members.values() if (due := member.next_timer()) is not None]
            if not timers:
                return
            self.now = max(self.now, min(timers))
            for m in self.members:
                self.happen(m, TimerFired())
        raise AssertionError("it never ends")

    def any_first(self):
        """Choose any connection, and its oldest letter: a connection keeps its order."""
        sender, to, _ = self.rng.choice(self.letters)
        return next(i for i, one in enumerate(self.letters) if one[:2] == (sender, to))
