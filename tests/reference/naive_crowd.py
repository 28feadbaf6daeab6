"""Paper 003, 4.3, with dictionaries and lists: one query after the other, one friend after the other."""

from __future__ import annotations

import random


def vector(me, friends, copies, share, begin):
    """4.3.4: the searcher once and each friend as often as she has friends, repeated, less an interval."""
    whole = ([me] + [f for f, many in friends.items() for _ in range(many)]) * copies
    first, cut = int(begin * len(whole)), int(share * len(whole))
    gone = {(first + i) % len(whole) for i in range(cut)}
    return [who for place, who in enumerate(whole) if place not in gone]


class Crowd:
    def __init__(self, friends, seed, penalty=0.03, selfish=(), cut=(0.6, 0.8), copies=3, back=True):
        self.friends = {u: sorted(theirs) for u, theirs in friends.items()}
        self.trust = {(u, v): 1.0 for u, theirs in friends.items() for v in theirs}
        self.chance, self.penalty, self.selfish, self.back = random.Random(seed), penalty, set(selfish), back
        self.vectors = {
            u: vector(
                u,
                {f: len(self.friends[f]) for f in theirs},
                self.chance.randint(1, copies),
                self.chance.uniform(*cut),
                self.chance.random(),
            )
            for u, theirs in self.friends.items()
        }

    def offer(self, u, v):
        """Υ, 4.3.5: say whether v takes a query from u, and settle the trust of both."""
        if v in self.selfish or self.chance.random() >= self.trust[v, u]:
            self.trust[u, v] = max(0.0, self.trust[u, v] - self.penalty)
            return False
        self.trust[u, v] = min(1.0, self.trust[u, v] + 2 * self.penalty)
        self.trust[v, u] = max(0.0, self.trust[v, u] - self.penalty)
        return True

    def send(self, author):
        """Give everybody who has had the query, the author first, the submitter last."""
        way = [author]
        while True:
            u, asked = way[-1], set()
            if len(way) == 1:
                asked |= {u} & self.selfish
            elif not self.back:
                asked.add(way[-2])
            while True:
                pool = self.vectors[u] if len(way) == 1 else [u, *self.friends[u]]
                left = [who for who in pool if who not in asked]
                who = self.chance.choice(left) if left else u
                if who == u:
                    return way
                if self.offer(u, who):
                    way.append(who)
                    break
                asked.add(who)
