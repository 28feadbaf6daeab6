"""Algorithm 1 of paper 000 as it is printed (with `> k`), on lists; choices are made by the caller."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Algorithm1:
    """Holds records and user tokens by category; `choose_record` and `choose_token` give indexes."""

    k: int
    choose_record: Callable[[str, list], int]
    choose_token: Callable[[str, list, object], int]
    users: dict = field(default_factory=lambda: defaultdict(list))
    queries: dict = field(default_factory=lambda: defaultdict(list))

    def arrive(self, user, record, category) -> list[tuple]:
        """Take one record in; give the (label, record) pairs that leave."""
        self.users[category].append(user)
        self.queries[category].append((record, user))
        sent = []
        while len(set(self.users[category])) > self.k:
            place = self.choose_record(category, self.queries[category])
            chosen, author = take(self.queries[category], place)
            token = self.choose_token(category, self.users[category], author)
            assert self.users[category][token] != author
            sent.append((take(self.users[category], token), chosen))
        return sent

    def erase(self, user, drop_record, drop_token) -> tuple[list, int]:
        """Forget a user; give the records that go, and how many tokens of others go to keep the balance."""
        gone, lost = [], 0
        for category, queries in self.queries.items():
            users = self.users[category]
            before = len(queries), len(users)
            for place in reversed(range(len(queries))):
                if queries[place][1] == user:
                    gone.append(take(queries, place)[0])
            for place in reversed(range(len(users))):
                if users[place] == user:
                    take(users, place)
            if before == (len(queries), len(users)):
                continue
            while len(queries) > len(users):
                gone.append(take(queries, drop_record(category, queries))[0])
            while len(users) > len(queries):
                take(users, drop_token(category, users))
                lost += 1
        return gone, lost


def take(items: list, place: int):
    """Take an item out and put the last in its place."""
    items[place], items[-1] = items[-1], items[place]
    return items.pop()
