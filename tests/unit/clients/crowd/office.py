"""A crowd without a network: a post office that carries what members say, in any order, or loses it."""

from __future__ import annotations

import random
from collections import Counter

from querycloak.clients.crowd.doings import Accept, Answer, Ask, Deliver, Refuse, Rejected, Return, Submit
from querycloak.clients.crowd.exposure import Exposure
from querycloak.clients.crowd.manners import Manners
from querycloak.clients.crowd.member import Member

KEY = b"k" * 32


def answer_to(text: str) -> Answer:
    return Answer("text/plain", text[::-1].encode())


class Office:
    """Members 0, 1, …; time goes on only when nothing else is to be done."""

    def __init__(self, pairs, seed=0, engine_fails=0.0, lost=0.0, vectors=None, rejects=None, **manners):
        self.chance = random.Random(seed)
        self.members, self.now, self.letters = {}, 0.0, []
        self.engine_fails, self.lost, self.rejects = engine_fails, lost, rejects
        self.submitted, self.delivered, self.searches = [], Counter(), {}
        self.failed, self.hops = set(), Counter()
        self.friends = {
            m: sorted({a + b - m for a, b in pairs if m in (a, b)})
            for m in {end for pair in pairs for end in pair}
        }
        lavish = {"rate": 1e6, "burst": 10**6, "waiting": 10**5, "in_flight": 10**6, "most_own": 1.0}
        settings = Manners(**lavish | manners)
        for m, friends in self.friends.items():
            kept = {"vector": vectors[m]} if vectors else None
            self.members[m] = Member(
                [str(f) for f in friends], settings, Exposure(KEY), self.chance.random, self.token, kept
            )
        for m in self.members:
            for n, friend in enumerate(self.friends[m], 1):
                self.members[m].joined(n, len(self.friends[friend]))

    def token(self):
        return f"{self.chance.getrandbits(128):032x}"

    def search(self, m, text):
        number, doings = self.members[m].search(text, self.now)
        self.searches[m, number] = text
        self.post(m, doings)
        return number

    def post(self, m, doings):
        """Take what a member does; check that it makes sense."""
        for doing in doings:
            if isinstance(doing, Deliver):
                text = self.searches[m, doing.job]
                self.delivered[m, doing.job] += 1
                if not isinstance(doing.answer, Answer):
                    self.failed.add((m, doing.job))
                else:
                    assert doing.answer == answer_to(text)
            elif isinstance(doing, Submit):
                self.letters.append((m, m, doing))
            else:
                friend = self.friends[m][doing.friend - 1]
                assert self.members[m].standing[doing.friend].connected
                if isinstance(doing, Ask):
                    self.hops[doing.hop] += 1
                if self.chance.random() >= self.lost:
                    self.letters.append((m, friend, doing))

    def carry(self, letter):
        sender, to, doing = letter
        member = self.members[to]
        if isinstance(doing, Submit):
            good = self.chance.random() >= self.engine_fails
            self.submitted.append((to, doing.text))
            found = answer_to(doing.text) if good else None
            if self.rejects and doing.text.startswith(self.rejects):
                found = Rejected()
            return self.post(to, member.submitted(doing.job, found))
        at = self.friends[to].index(sender) + 1
        if not member.standing[at].connected:
            return None
        if isinstance(doing, Ask):
            found = member.asked(at, doing.hop, doing.text, self.now)
        elif isinstance(doing, Accept):
            found = member.accepted(at, doing.hop, self.now)
        elif isinstance(doing, Refuse):
            found = member.refused(at, doing.hop, self.now)
        else:
            assert isinstance(doing, Return)
            found = member.returned(at, doing.hop, doing.answer, self.now)
        return self.post(to, found)

    def part(self, a, b):
        """Two friends lose their connection; what was under way between them is lost."""
        self.letters = [one for one in self.letters if {one[0], one[1]} != {a, b}]
        for one, other in ((a, b), (b, a)):
            at = self.friends[one].index(other) + 1
            if self.members[one].standing[at].connected:
                self.post(one, self.members[one].left(at, self.now))

    def meet(self, a, b):
        for one, other in ((a, b), (b, a)):
            self.members[one].joined(self.friends[one].index(other) + 1, len(self.friends[other]))

    def settle(self, in_order=True):
        """Carry everything, and let time pass, until nobody has anything to do."""
        for _ in range(1_000_000):
            if self.letters:
                at = 0 if in_order else self._any_first()
                self.carry(self.letters.pop(at))
                continue
            dues = [due for member in self.members.values() if (due := member.due) is not None]
            if not dues:
                return
            self.now = max(self.now, min(dues))
            for m, member in self.members.items():
                self.post(m, member.wake(self.now))
        raise AssertionError("it never ends")

    def _any_first(self):
        """Choose any connection, and its oldest letter: a connection keeps its order."""
        sender, to, _ = self.chance.choice(self.letters)
        return next(i for i, one in enumerate(self.letters) if one[:2] == (sender, to))
