"""Rare, personal queries for rules and attacks to find: addresses, numbers, e-mails; all invented.

Every number lies in a range that nobody holds: phone numbers 555-01xx, postal codes below 00500, card
numbers from 9999 on, social-security numbers in area 900-999 with groups below 50. E-mails end in
`.example`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from querycloak.synthetic.block import Block
from querycloak.synthetic.people import People
from querycloak.synthetic.sessions import Plan
from querycloak.synthetic.streams import IntArray
from querycloak.synthetic.subjects import Subjects

_LETTERS = "abcdefghjkmnpqrstuvwxyz"
#: What a private query holds, by running share.
KINDS = ("address", "phone", "email", "part", "parcel", "postcode", "card", "security")
SHARES = (0.34, 0.52, 0.64, 0.80, 0.88, 0.95, 0.975, 1.0)


def private_texts(
    block: Block, people: People, plan: Plan, subjects: Subjects, searches: IntArray
) -> list[str]:
    """Write the text of each given search; about the user's own data where the subject says so."""
    rng, world, size = block.stream("private"), block.world, plan.user.size
    kind = np.searchsorted(SHARES, rng.random(size), side="right")[searches]
    digits = rng.integers(0, 10**9, (size, 2))[searches]
    own, user = subjects.own[searches] == 1, plan.user[searches]
    house = np.where(own, people.house[user], 1 + digits[:, 0] % 9_999)
    street = np.where(own, people.street[user], digits[:, 1] % len(world.streets))
    phone = np.where(own, people.phone[user], digits[:, 0] % 80_000)
    first, last = (
        _own(own, getattr(people, n)[user], getattr(subjects, n)[searches]) for n in ("first", "last")
    )
    town = subjects.town[searches]
    names = (world.texts("first"), world.texts("last"), world.texts("town"))
    facts = zip(
        house.tolist(),
        street.tolist(),
        phone.tolist(),
        first.tolist(),
        last.tolist(),
        town.tolist(),
        strict=True,
    )
    return [
        _WRITERS[KINDS[k]](fact, d, names, world.streets)
        for k, fact, d in zip(kind.tolist(), facts, digits.tolist(), strict=True)
    ]


def _own(own: np.ndarray[tuple[int], np.dtype[np.bool_]], mine: IntArray, other: IntArray) -> IntArray:
    return np.where(own, mine, other)


Fact = tuple[int, int, int, int, int, int]
Names = tuple[list[str], list[str], list[str]]


def _address(fact: Fact, digits: list[int], names: Names, streets: list[str]) -> str:
    house, street, _, _, _, town = fact
    return f"{house} {streets[street]}" + (f" {names[2][town]}" if digits[1] % 3 else "")


def _phone(fact: Fact, digits: list[int], _names: Names, _streets: list[str]) -> str:
    area, line = 200 + fact[2] // 100, fact[2] % 100
    gap = "- "[digits[1] % 2]
    return f"{area}{gap}555{gap}01{line:02d}"


def _email(fact: Fact, digits: list[int], names: Names, _streets: list[str]) -> str:
    mark = ("", ".", "_")[digits[0] % 3]
    return f"{names[0][fact[3]]}{mark}{names[1][fact[4]]}{digits[1] % 100}@{names[2][fact[5]]}.example"


def _part(_fact: Fact, digits: list[int], _names: Names, _streets: list[str]) -> str:
    a, b = digits
    return f"{_LETTERS[a % 23]}{_LETTERS[a // 23 % 23]}{b % 10_000}{'-' if a % 2 else ''}{a // 529 % 100}"


def _parcel(_fact: Fact, digits: list[int], _names: Names, _streets: list[str]) -> str:
    return f"tracking 000{digits[0]:09d}"


def _postcode(fact: Fact, digits: list[int], names: Names, _streets: list[str]) -> str:
    return f"{names[2][fact[5]]} {100 + digits[0] % 400:05d}"


def _card(_fact: Fact, digits: list[int], _names: Names, _streets: list[str]) -> str:
    body = f"9999{digits[0]:09d}{digits[1] % 100:02d}"
    return body + _luhn(body)


def _security(_fact: Fact, digits: list[int], _names: Names, _streets: list[str]) -> str:
    a, b = digits
    return f"{900 + a % 100}-{1 + a // 100 % 49:02d}-{b % 10_000:04d}"


def _luhn(body: str) -> str:
    """Give the check digit that makes a card number pass its checksum."""
    doubled = [int(d) * (2 - i % 2) for i, d in enumerate(reversed(body))]
    return str(-sum(d - 9 * (d > 9) for d in doubled) % 10)


_WRITERS: dict[str, Callable[[Fact, list[int], Names, list[str]], str]] = {
    "address": _address,
    "phone": _phone,
    "email": _email,
    "part": _part,
    "parcel": _parcel,
    "postcode": _postcode,
    "card": _card,
    "security": _security,
}
