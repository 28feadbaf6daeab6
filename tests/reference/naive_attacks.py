"""Algorithm 2 on plain lists, slowly: the twin of `attacks/release_order/replay.py`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from tests.reference.naive import siphash

#: Gives the n-th draw of a category as a 64-bit number.
Draws = Callable[[int, int], int]
Bag = list[list[int]]


def keyed(key: bytes) -> Draws:
    """The draws that the kernel makes: SipHash of category and counter."""
    return lambda category, n: siphash(key, category.to_bytes(8, "little") + n.to_bytes(8, "little"))


def below(word: int, size: int) -> int:
    return (word * size) >> 64


def relink(
    rule: str, k: int, barring: bool, draws: Draws, categories: Sequence[int], users: Sequence[int]
) -> tuple[list[int | None], int]:
    """Replay a release in its order; give a guess for each record, and how many came before the end."""
    bags: dict[int, Bag] = defaultdict(list)
    waiting: dict[int, list[int]] = defaultdict(list)
    issued: dict[int, Counter[int]] = defaultdict(Counter)
    drawn: Counter[int] = Counter()
    guesses: list[int | None] = [None] * len(users)

    def link(category: int) -> None:
        bag, rows = bags[category], waiting[category]
        place = below(draws(category, drawn[category]), len(rows))
        word = draws(category, drawn[category] + 1)
        drawn[category] += 2
        row = rows[place]
        rows[place] = rows[-1]
        rows.pop()
        barred = users[row] if barring else None
        chosen = choose(rule, bag, barred, word, issued[category])
        if chosen is None:
            others = [user for user in issued[category] if user != barred]
            busiest = sorted(others, key=lambda user: (-issued[category][user], user))
            guesses[row] = busiest[0] if busiest else None
            chosen = barred
        else:
            guesses[row] = chosen
        take(bag, chosen)

    linked = 0
    for row, (category, user) in enumerate(zip(categories, users, strict=True)):
        issued[category][user] += 1
        waiting[category].append(row)
        add(bags[category], user)
        while len(bags[category]) > k:
            link(category)
            linked += 1
    for category, rows in waiting.items():
        while rows:
            link(category)
    return guesses, linked


def add(bag: Bag, user: int) -> None:
    for entry in bag:
        if entry[0] == user:
            entry[1] += 1
            return
    bag.append([user, 1])


def take(bag: Bag, user: int | None) -> None:
    place = next(place for place, entry in enumerate(bag) if entry[0] == user)
    bag[place][1] -= 1
    if not bag[place][1]:
        bag[place] = bag[-1]
        bag.pop()


def choose(rule: str, bag: Bag, barred: int | None, word: int, issued: Counter[int]) -> int | None:
    """Say who is thought to have written a record; nobody when only the barred user is left."""
    others = [(user, many) for user, many in bag if user != barred]
    if not others:
        return None
    if rule == "random":
        tokens = [user for user, many in others for _ in range(many)]
        return tokens[below(word, len(tokens))]
    weight = {"frequent": lambda user: 1, "profile": lambda user: issued[user]}[rule]
    return min(others, key=lambda entry: (-entry[1] * weight(entry[0]), entry[0]))[0]
