"""Algorithm 2: the kernel against its twin, the paper's example, and what the three rules may do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.attacks.base import AttackerView
from querycloak.attacks.link_replay import LinkFrequent, LinkProfile, LinkRandom
from querycloak.attacks.release_order import replay
from querycloak.errors import NotApplicable, ParameterError
from querycloak.kernels import siphash
from querycloak.kernels.order import group
from tests.reference import naive_attacks

RULES = {"random": replay.RANDOM, "frequent": replay.FREQUENT, "profile": replay.PROFILE}
ATTACKS = (LinkRandom, LinkFrequent, LinkProfile)
KEY = bytes(range(16))
records = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6)), max_size=60)


def run_kernel(rule, k, barring, categories, users):
    category, user = np.array(categories, np.int64), np.array(users, np.int64)
    order, starts = group(category, 3)
    guess, linked = replay.relink(RULES[rule], k, barring, *siphash.key_words(KEY), order, starts, user, 7)
    return [None if g < 0 else g for g in guess.tolist()], linked


@given(records, st.sampled_from(sorted(RULES)), st.integers(1, 8), st.booleans())
def test_the_kernel_does_what_its_twin_does(made, rule, k, barring):
    categories, users = [c for c, _ in made], [u for _, u in made]
    expected = naive_attacks.relink(rule, k, barring, naive_attacks.keyed(KEY), categories, users)
    assert run_kernel(rule, k, barring, categories, users) == expected


@given(records, st.sampled_from(sorted(RULES)), st.integers(1, 8))
def test_a_record_never_goes_to_its_own_label_and_always_to_a_user_of_its_category(made, rule, k):
    categories, users = [c for c, _ in made], [u for _, u in made]
    guesses, _ = run_kernel(rule, k, True, categories, users)
    for category, user, guess in zip(categories, users, guesses, strict=True):
        there = {u for c, u in made if c == category}
        assert guess in there - {user} if len(there) > 1 else guess is None


@given(records, st.sampled_from(sorted(RULES)), st.integers(1, 8))
def test_without_the_restriction_each_user_gets_back_as_many_records_as_labels(made, rule, k):
    categories, users = [c for c, _ in made], [u for _, u in made]
    guesses, _ = run_kernel(rule, k, False, categories, users)
    assert Counter(zip(categories, guesses, strict=True)) == Counter(made)


def test_any_token_is_drawn_alike():
    # Labels 0, 1, 1, 2, 2, 2, 3 in one category, k = 3: at the seventh record linking starts. Given
    # which record goes first, its guess is uniform over the tokens of the others. Chi-square over 4,000 keys:
    # 12 cells less 4 rows are 8 degrees; 35 is exceeded with probability 3e-5, the false-alarm rate.
    users = np.array([0, 1, 1, 2, 2, 2, 3], np.int64)
    order, starts = group(np.zeros(7, np.int64), 1)
    seen = Counter()
    for n in range(4000):
        key = siphash.key_words(n.to_bytes(16, "little"))
        word = siphash.draw(n.to_bytes(16, "little"), 0, np.array([0]))[0]
        row = (int(word) * 7) >> 64
        guess, linked = replay.relink(replay.RANDOM, 3, True, *key, order, starts, users, 4)
        assert linked >= 1
        seen[int(users[row]), int(guess[row])] += 1
    tokens, statistic = Counter(users.tolist()), 0.0
    for label in tokens:
        total = sum(count for (own, _), count in seen.items() if own == label)
        for other in set(tokens) - {label}:
            expected = total * tokens[other] / (7 - tokens[label])
            statistic += (seen[label, other] - expected) ** 2 / expected
    assert 0 < statistic < 35


def view(rows, k=2, level=1, method="swap", **settings):
    users, queries, categories = zip(*rows, strict=True)
    release = pl.DataFrame({"user": users, "query": queries, "category": categories}).with_row_index(
        "released_row"
    )
    return AttackerView(
        release, {"methods": [{"method": method, "settings": {"k": k, "level": level} | settings}]}
    )


#: What Table 2 of the paper releases, in its order.
RELEASED = [
    ("Charlie", "piano", "Arts/Music"),
    ("Bob", "google", "Computers/Internet"),
    ("Alice", "drums", "Arts/Music"),
    ("Bob", "guitar", "Arts/Music"),
]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("seed", range(5))
def test_the_papers_example_as_far_as_it_is_determined(attack, seed):
    # Arts sees its third user with the fourth record: one record is linked, two wait at the end.
    # Computers shows Bob alone, and the record that carries his label is not his: nobody can be named.
    made = attack(attack.Settings(seed=seed)).guess(view(RELEASED))
    guesses = made.guess.to_list()
    assert made.details["linked_before_the_end"] == 1
    assert guesses[1] is None
    for place in (0, 2, 3):
        assert guesses[place] in {"Alice", "Bob", "Charlie"} - {RELEASED[place][0]}


def test_the_papers_example_gives_up_one_record_of_three_at_random():
    # Frequent: all wait once, so the first seen of the others is chosen, whichever record is drawn.
    seen = {tuple(LinkFrequent(LinkFrequent.Settings(seed=s)).guess(view(RELEASED)).guess) for s in range(40)}
    assert len(seen) > 1
    assert {guesses[0] for guesses in seen} <= {"Alice", "Bob"}


def test_frequent_and_profile_name_who_they_say():
    # Columns: user, waiting tokens, weight. User 4 waits once and issued five, 6 waits twice and issued two.
    profile = np.array([[4, 1, 5], [6, 2, 2], [2, 1, 4]], np.int64)
    assert replay._best_user(-1, profile, 3) == 0
    assert replay._best_user(4, profile, 3) == 2  # 6 and 2 weigh the same: 2 was seen first
    frequent = profile.copy()
    frequent[:, 2] = 1
    assert replay._best_user(-1, frequent, 3) == 1
    assert replay._best_user(6, frequent, 3) == 2
    assert replay._best_user(4, frequent, 1) == replay.NOBODY


def test_the_most_frequent_label_is_used_up_first():
    # Without the restriction, labels a a b with k = 1: a and a go before the end, b is left.
    rows = [(user, f"q{place}", "News") for place, user in enumerate("aab")]
    made = LinkFrequent(LinkFrequent.Settings(k=1, own="maybe")).guess(view(rows))
    assert made.details["linked_before_the_end"] == 2
    assert sorted(made.guess.to_list()) == ["a", "a", "b"]


def test_a_wrong_k_or_level_is_the_attackers_own():
    rows = [(user, f"q{place}", f"News/{place % 2}") for place, user in enumerate("abcabcabcdd")]
    one = LinkRandom(LinkRandom.Settings(k=3, level=2)).guess(view(rows))
    assert (one.details["attacker_k"], one.details["attacker_level"]) == (3, 2)
    stated = LinkRandom(LinkRandom.Settings()).guess(view(rows, k=2))
    assert (stated.details["attacker_k"], stated.details["attacker_level"]) == (2, 1)
    assert LinkRandom(LinkRandom.Settings()).guess(view(rows, level="auto")).details["attacker_level"] == 1
    with pytest.raises(ParameterError, match="at most 13"):
        LinkRandom.Settings(level=14)


def test_a_level_separates_categories():
    rows = [("a", "q", "News/Local"), ("b", "q", "News/World")]
    assert LinkRandom(LinkRandom.Settings(level=1)).guess(view(rows)).guess.to_list() == ["b", "a"]
    assert LinkRandom(LinkRandom.Settings(level=2)).guess(view(rows)).guess.to_list() == [None, None]


def test_the_own_label_is_out_only_where_labels_are_always_those_of_others():
    rows = [("a", "q", "News")]
    own = AttackerView(view(rows).release, {"methods": [{"method": "z-anonymity", "settings": {}}]})
    assert LinkRandom(LinkRandom.Settings(k=2)).guess(own).guess.to_list() == ["a"]
    assert LinkRandom(LinkRandom.Settings()).guess(view(rows)).guess.to_list() == [None]
    assert LinkRandom(LinkRandom.Settings()).guess(view(rows, method="cohort")).guess.to_list() == ["a"]
    assert LinkRandom(LinkRandom.Settings(own="maybe")).guess(view(rows)).guess.to_list() == ["a"]


def test_rows_without_label_or_category_are_borne():
    rows = [("a", "q", None), (None, "q", "News"), ("b", "q", None), ("a", "q", "News")]
    assert LinkFrequent(LinkFrequent.Settings()).guess(view(rows)).guess.to_list() == ["b", None, "a", None]


def test_without_k_there_is_nothing_to_replay():
    blind = AttackerView(view(RELEASED).release, {})
    with pytest.raises(NotApplicable, match="neither k nor a bound"):
        LinkRandom(LinkRandom.Settings()).guess(blind)
    assert LinkRandom(LinkRandom.Settings(k=2)).guess(blind).details["attacker_level"] == 1


def test_the_k_of_another_method_is_not_taken():
    both = view(RELEASED).certificate["methods"] + [{"method": "frequent-only", "settings": {"k": 7}}]
    made = LinkRandom(LinkRandom.Settings()).guess(AttackerView(view(RELEASED).release, {"methods": both}))
    assert made.details["attacker_k"] == 2


@pytest.mark.parametrize("attack", ATTACKS)
def test_equal_seeds_give_equal_guesses(attack):
    rows = [(user, f"q{place}", "News") for place, user in enumerate("abcdeabcdeaabbcc" * 5)]
    made = [attack(attack.Settings(seed=seed)).guess(view(rows)).guess.to_list() for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
