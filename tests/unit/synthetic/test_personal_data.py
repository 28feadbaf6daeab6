"""Nobody real: every name is invented, every number lies where nobody has one; yet rules find plenty."""

from __future__ import annotations

import re

import polars as pl
import pytest

from querycloak.synthetic import generate
from querycloak.synthetic.world import world

# Common enough that a generator which used real ones would hit some (public knowledge, no person meant).
REAL_NAMES = {
    "james", "john", "robert", "michael", "william", "david", "mary", "linda", "susan", "karen", "maria",
    "greta", "emma", "smith", "johnson", "williams", "brown", "jones", "garcia", "miller", "davis", "wilson",
    "anderson", "taylor", "thomas", "moore", "martin", "lee", "clark", "lewis", "weber", "schmidt", "rossi",
}  # fmt: skip
REAL_TOWNS = {"boston", "chicago", "dallas", "houston", "denver", "seattle", "london", "paris", "springfield"}
REAL_SITES = {"google", "yahoo", "ebay", "mapquest", "myspace", "amazon", "hotmail", "aol", "msn"}


@pytest.fixture(scope="module")
def queries() -> list[str]:
    return generate(4_000, seed=11).frame["query"].unique(maintain_order=True).to_list()


def test_invented_names_are_no_real_ones() -> None:
    around = world()
    assert not REAL_NAMES & {*around.texts("first"), *around.texts("last")}
    assert not REAL_TOWNS & set(around.texts("town"))
    assert not REAL_SITES & set(around.texts("site"))


def test_invented_names_are_all_different_and_in_no_vocabulary() -> None:
    around = world()
    words = set(around.texts("word"))
    for kind in ("first", "last", "town", "region", "site"):
        texts = around.texts(kind)
        assert len(set(texts)) == len(texts)
        assert not words & set(texts)


def test_addresses_of_sites_are_invented() -> None:
    around = world()
    names = {re.sub(r"^http://www\.|\.(com|net|org)$", "", url) for url in around.urls}
    assert names <= set(around.texts("site"))


def found(pattern: str, queries: list[str]) -> list[str]:
    return [query for query in queries if re.search(pattern, query)]


def test_emails_end_in_a_reserved_domain(queries: list[str]) -> None:
    emails = found("@", queries)
    assert len(emails) > 50
    assert all(re.fullmatch(r"[a-z._]+\d+@[a-z]+\.example", email) for email in emails)


def test_phone_numbers_are_in_the_range_kept_for_fiction(queries: list[str]) -> None:
    phones = found(r"^\d{3}[- ]\d{3}[- ]\d{4}$", queries)
    assert len(phones) > 50
    assert all(re.fullmatch(r"[2-9]\d\d[- ]555[- ]01\d\d", phone) for phone in phones)


def test_card_numbers_pass_the_checksum_and_belong_to_no_network(queries: list[str]) -> None:
    cards = found(r"\d{16}", queries)
    assert len(cards) > 10
    assert all(card.startswith("9999") and passes_luhn(card) for card in cards)


def passes_luhn(number: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(number)):
        value = int(digit) * (1 + place % 2)
        total += value if value < 10 else value - 9
    return total % 10 == 0


def test_security_numbers_were_never_issued(queries: list[str]) -> None:
    numbers = found(r"^\d{3}-\d{2}-\d{4}$", queries)
    assert len(numbers) > 10
    assert all(number[0] == "9" and int(number[4:6]) < 50 for number in numbers)


def test_people_look_for_themselves_and_their_family() -> None:
    """Some users ask for one family name again and again, with different first names."""
    frame = generate(2_000, seed=4).frame
    around = world()
    asked = frame.with_columns(last=pl.col("query").str.extract(r"^\w+ (\w+)")).filter(
        pl.col("last").is_in(around.texts("last"))
    )
    family = asked.group_by("user", "last").agg(pl.col("query").n_unique())
    assert family.filter(pl.col("query") >= 3).height > 100


def test_own_address_comes_back(queries: list[str]) -> None:
    addresses = found(r"^\d+ [a-z]+ (st|ave|lane|rd|drive|court|blvd)( |$)", queries)
    assert len(addresses) > 200
