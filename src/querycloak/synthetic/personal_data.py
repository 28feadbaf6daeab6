"""Rare personal queries for rules and attacks to find: addresses, numbers, e-mails; all invented.

Every number is in a range that nobody holds: phone numbers 555-01xx, postal codes below 00500, card
numbers from 9999 on, social-security numbers in area 900-999 with groups below 50. E-mails end in
`.example`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from querycloak.synthetic.people import People
from querycloak.synthetic.rng import IntArray
from querycloak.synthetic.sessions import Plan
from querycloak.synthetic.world import Block, World

if TYPE_CHECKING:
    from querycloak.synthetic.queries import Intents

_LETTERS = "abcdefghjkmnpqrstuvwxyz"
#: Kinds of personal queries, by running share.
KINDS = ("address", "phone", "email", "part", "parcel", "postcode", "card", "security")
SHARES = (0.34, 0.52, 0.64, 0.80, 0.88, 0.95, 0.975, 1.0)


def personal_queries(
    block: Block, people: People, plan: Plan, intents: Intents, searches: IntArray
) -> list[str]:
    """Return the text of each given search; about the user's own data where the intent is that."""
    rng, world, size = block.stream("private"), block.world, plan.user.size
    kind = np.searchsorted(SHARES, rng.random(size), side="right")[searches]
    digits = rng.integers(0, 10**9, (size, 2))[searches]
    own, user = intents.own[searches] == 1, plan.user[searches]
    facts = (
        np.where(own, people.house[user], 1 + digits[:, 0] % 9_999),
        np.where(own, people.street[user], digits[:, 1] % len(world.streets)),
        np.where(own, people.phone[user], digits[:, 0] % 80_000),
        np.where(own, people.first[user], intents.first[searches]),
        np.where(own, people.last[user], intents.last[searches]),
        intents.town[searches],
    )
    names = world.texts("first"), world.texts("last"), world.texts("town")
    rows = zip(kind.tolist(), np.stack(facts, axis=1).tolist(), digits.tolist(), strict=True)
    return [_text(KINDS[k], fact, drawn, names, world) for k, fact, drawn in rows]


def _text(  # noqa: PLR0911 - one form for each kind
    kind: str,
    facts: list[int],
    digits: list[int],
    names: tuple[list[str], list[str], list[str]],
    world: World,
) -> str:
    house, street, phone, first, last, place = facts
    a, b = digits
    town = names[2][place]
    match kind:
        case "address":
            return f"{house} {world.streets[street]}" + (f" {town}" if b % 3 else "")
        case "phone":
            gap = "- "[b % 2]
            return f"{200 + phone // 100}{gap}555{gap}01{phone % 100:02d}"
        case "email":
            return f"{names[0][first]}{('', '.', '_')[a % 3]}{names[1][last]}{b % 100}@{town}.example"
        case "part":
            gap = "-" if a % 2 else ""
            return f"{_LETTERS[a % 23]}{_LETTERS[a // 23 % 23]}{b % 10_000}{gap}{a // 529 % 100}"
        case "parcel":
            return f"tracking 000{a:09d}"
        case "postcode":
            return f"{town} {100 + a % 400:05d}"
        case "card":
            body = f"9999{a:09d}{b % 100:02d}"
            return body + _luhn(body)
        case _:
            return f"{900 + a % 100}-{1 + a // 100 % 49:02d}-{b % 10_000:04d}"


def _luhn(body: str) -> str:
    """Return the check digit with which a card number passes its checksum."""
    doubled = [int(d) * (2 - i % 2) for i, d in enumerate(reversed(body))]
    return str(-sum(d - 9 * (d > 9) for d in doubled) % 10)
