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


def take(items: list, place: int):
    """Take an item out and put the last in its place."""
    items[place], items[-1] = items[-1], items[place]
    return items.pop()
