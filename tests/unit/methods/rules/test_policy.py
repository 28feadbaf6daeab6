from __future__ import annotations

import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.dictionary import Dictionaries
from querycloak.errors import UsageError
from querycloak.log import Batch
from querycloak.methods.rules import TOO_LONG, Rules, _detectors
from querycloak.methods.rules import audit as patterns
from querycloak.methods.shared.labels import is_email_or_ip
from querycloak.text.entities import find_entities, name_list

KEY = b"k" * 32


def judge(queries: list[str], **settings) -> dict[str, str]:
    """Give each query's reason, or an empty text where it may leave."""
    texts = Dictionaries()
    rules = Rules(Rules.Settings(**settings), KEY, texts)
    row = np.arange(len(queries))
    batch = Batch.of(
        {
            "row": row,
            "seq": row + 1,
            "query": texts.query.intern(queries),
            "user": texts.user.intern(["u"] * len(queries)),
        },
        texts,
    )
    dropped: dict[int, str] = {}
    rules.drop = lambda rows, reason: dropped.update(dict.fromkeys(rows.tolist(), reason))  # type: ignore[method-assign]
    left = set(rules.push(batch).row.tolist())
    assert left == set(row.tolist()) - set(dropped)
    return {query: dropped.get(place, "") for place, query in enumerate(queries)}


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("cheap flights", ""),
        ("windows 98", "a digit"),
        ("٣ apples", "a digit"),
        ("write to jo@made-up.example now", "an e-mail address"),
        ("@ home", ""),
        ("4111 1111 1111 1111", "a card number"),
        ("4000-0000-0000-0100", "a digit"),
        ("٠١٢٣٤٥٦", "a telephone number"),
        ("123456789012345", "a telephone number"),
        ("mary o'brien", "a person's name"),
        ("Conan O’Brien mary", "a person's name"),
        ("Máry Johnson", "a person's name"),
        ("call (555) 010-9999", "a telephone number"),
        ("mary johnson", "a person's name"),
        ("Johnson, Mary", "a person's name"),
        ("mary poppins", ""),
        ("one two three four five six seven eight nine", "too many words or letters"),
        ("x" * 81, "too many words or letters"),
    ],
)
def test_each_rule_finds_what_it_is_for(query, reason):
    assert judge([query])[query] == reason


def test_every_rule_has_its_own_switch():
    off = {"digits": False, "emails": False, "phones": False, "cards": False, "names": False}
    queries = ["windows 98", "a@b.example", "555 010 9999", "4111 1111 1111 1111", "mary johnson"]
    assert set(judge(queries, **off).values()) == {""}
    assert judge(["hotels in new york"], places=True)["hotels in new york"] == "a place"
    assert judge(["hotels in new york"])["hotels in new york"] == ""


def test_the_operator_brings_phrases(tmp_path):
    file = tmp_path / "phrases.txt"
    file.write_text("Project Falcon\n\nacme\n")
    found = judge(["the project-falcon plan", "acmes", "buy ACME"], phrases=str(file))
    assert list(found.values()) == ["a listed phrase", "", "a listed phrase"]
    with pytest.raises(UsageError, match="cannot be read"):
        judge([""], phrases=str(tmp_path / "absent"))


alphabet = st.sampled_from("aA1٣@. -_()ſK'’\x1c\t  \u2003é") | st.characters(codec="utf-8")
queries = st.lists(st.text(alphabet, max_size=30), max_size=10, unique=True)
pieces = st.lists(
    st.sampled_from(
        [
            "mary",
            "SMITH",
            "new",
            "york",
            "4111",
            "1111",
            "1111",
            "1111",
            "a@b.c",
            " ",
            "-",
            "Kim",
            "ſmith",
            ",",
            "\x1f",
        ]
    ),
    max_size=12,
)


@given(queries=queries | st.lists(pieces.map("".join), unique=True))
def test_the_audit_finds_nothing_that_the_method_let_through(queries):
    clean = [query for query, reason in judge(queries, places=True).items() if not reason]
    for why, test in _detectors(Rules.Settings(places=True)).items():
        assert not any(map(test, clean)), why


@given(queries=queries, listed=st.lists(st.text(alphabet, min_size=1, max_size=8), min_size=1, max_size=4))
def test_the_audit_finds_no_listed_phrase_that_the_method_let_through(queries, listed):
    found = find_entities(pl.Series(queries, dtype=pl.String), ["listed"], frozenset(listed))[:, 0]
    test = patterns.has_phrase(listed)
    assert not any(test(query) for query, hit in zip(queries, found, strict=True) if not hit)


@pytest.mark.parametrize(
    "label",
    [
        "jo@made-up.example",
        "10.0.0.1",
        "203.0.113.254",
        "10.0.0.1:80",
        "fe80::1",
        "2001:db8::7",
        " a@b.co ",
    ],
)
def test_addresses_are_recognised(label):
    assert is_email_or_ip(label)


@pytest.mark.parametrize("label", ["1268", "user-7", "a1b2c3", "12:30", "1.2.3", "x@y", "deadbeef"])
def test_plain_ids_are_not_addresses(label):
    assert not is_email_or_ip(label)


def test_telephone_numbers_in_the_audit_by_hand():
    assert patterns.has_phone("call 555-0199 now")
    assert not patterns.has_phone("flight 555 019")


def test_luhn_in_the_audit_by_hand():
    assert patterns.has_card("pay 4111 1111 1111 1111 now")
    assert not patterns.has_card("pay 4000-0000-0000-0100 now")
    assert patterns.has_card("x" + "0" * 13)


def test_a_list_of_names_holds_single_lower_case_words():
    for name in ("first_names.txt", "last_names.txt"):
        assert len(name_list(name)) > 300
        assert all(word == word.lower() and " " not in word for word in name_list(name))
    assert pl.Series(list(name_list("place_names.txt"))).str.contains("^[a-z ]+$").all()


def test_a_long_query_counts_as_too_long_before_anything_else():
    assert judge(["4111 1111 1111 1111 " + "x" * 80]).popitem()[1] == TOO_LONG


def test_long_runs_of_digits_and_long_lists_take_little_time(tmp_path):
    """A query of 1 MiB kept the only worker busy for 40 s, and 20,000 phrases took 1 ms a query."""
    file = tmp_path / "phrases.txt"
    file.write_text("\n".join(f"{'abcdefgh'[number % 8]}{number} project" for number in range(20_000)))
    queries = ["1" * 400_000, *(f"plan {number} of mine" for number in range(20_000))]
    begin = time.process_time()
    found = judge(queries, phrases=str(file), digits=False, max_letters=1 << 20)
    assert time.process_time() - begin < 5
    assert set(list(found.values())[1:]) == {""}


def test_words_are_counted_as_everywhere():
    assert judge(["a-b-c d"], max_words=3)["a-b-c d"] == TOO_LONG
    assert judge(["a - b"], max_words=2)["a - b"] == ""


def test_a_listed_sign_is_found_as_it_is_spelt(tmp_path):
    """The normal form of `C++` is no word of the audit, which finds `c` in the query."""
    file = tmp_path / "phrases.txt"
    file.write_text("C++\n")
    assert judge(["vitamin c"], phrases=str(file)) == {"vitamin c": "a listed phrase"}
    assert _detectors(Rules.Settings(phrases=str(file)))["a listed phrase"]("vitamin c")
