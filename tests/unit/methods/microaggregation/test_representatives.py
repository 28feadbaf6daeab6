"""A group's history is made of its members' records, in proportion, the same for the same draws."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from querycloak.methods.microaggregation import representatives as sharing
from querycloak.text.urls import labels_of, names_target
from tests.reference import naive_microagg as naive

records = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=40)
PICKS = ["proportional", "ranked"]


def pick(how, member, string, draws):
    if how == "proportional":
        return sharing.proportional_picks(member, string, draws[:, 0].copy())
    return sharing.ranked_picks(member, string, draws[:, 0].copy(), draws[:, 1].copy())


def arrays(pairs, seed):
    member, string = np.array(pairs, np.int64).T
    draws = np.random.default_rng(seed).integers(0, 2**64, (len(pairs), 2), np.uint64, endpoint=False)
    return member, string, draws


def near(shares, exact):
    return all(abs(share - wanted) < 1 for share, wanted in zip(shares, exact, strict=True))


@pytest.mark.parametrize("how", PICKS)
@given(pairs=records, seed=st.integers(0, 99))
def test_members_give_in_proportion_and_the_rounded_mean_in_all(how, pairs, seed):
    member, string, draws = arrays(pairs, seed)
    picked = pick(how, member, string, draws)
    sizes = Counter(member.tolist())
    total = int(len(pairs) / len(sizes) + 0.5)
    assert len(set(picked.tolist())) == len(picked) == total
    given_by = Counter(member[picked].tolist())
    assert near([given_by[m] for m in sizes], [many / len(sizes) for many in sizes.values()])


@given(pairs=records, seed=st.integers(0, 99))
def test_each_member_keeps_the_frequencies_of_her_strings(pairs, seed):
    member, string, draws = arrays(pairs, seed)
    picked = pick("proportional", member, string, draws)
    for m in set(member.tolist()):
        before, after = Counter(string[member == m].tolist()), string[picked][member[picked] == m]
        found = Counter(after.tolist())
        assert near([found[s] for s in before], naive.split(list(before.values()), len(after)))


@pytest.mark.parametrize("how", PICKS)
@given(pairs=records, seed=st.integers(0, 99), chance=st.randoms(use_true_random=False))
def test_the_order_of_the_records_makes_no_difference(how, pairs, seed, chance):
    member, string, draws = arrays(pairs, seed)
    assume(len(set(draws[:, 0].tolist())) == len(pairs))
    order = list(range(len(pairs)))
    chance.shuffle(order)
    mixed = pick(how, member[order], string[order], draws[order])
    assert sorted(order[place] for place in mixed) == pick(how, member, string, draws).tolist()


@given(pairs=records, seed=st.integers(0, 99))
def test_ranked_picks_are_those_of_algorithm_6(pairs, seed):
    member, string, draws = arrays(pairs, seed)
    picked = pick("ranked", member, string, draws)
    for m in set(member.tolist()):
        hers, quota = member == m, int((member[picked] == m).sum())
        order, coins = draws[hers].T.tolist()
        expected = naive.algorithm6(string[hers].tolist(), len(pairs), quota, order, coins)
        assert sorted(string[picked][member[picked] == m].tolist()) == sorted(expected)


def test_a_query_is_added_as_often_as_contribution_and_coin_say():
    """The thesis's example: 3 repetitions at a contribution of 0.4 are one, and another with probability 0.2.

    A wrong alarm is five deviations away, one in a million; the seed is fixed.
    """
    member, string = np.array([0] * 4 + [1] * 6), np.array([7, 7, 7, 8, *range(10, 16)])
    draws = np.array([1, 2, 3, 0, *range(4, 10)], np.uint64)
    twice = []
    for coin in np.random.default_rng(5).integers(0, 2**64, 4000, np.uint64, endpoint=False):
        coins = np.full(10, np.iinfo(np.uint64).max)
        coins[0] = coin
        picked = sharing.ranked_picks(member, string, draws, coins)
        assert len(picked) == 5
        twice.append((string[picked] == 7).sum() == 2)
    assert abs(np.mean(twice) - 0.2) < 5 * np.sqrt(0.2 * 0.8 / 4000)


def test_means_are_of_known_values_and_exact():
    key, values = np.array([0, 0, 1, 1, 2]), np.array([2**62, 2**62 + 1, 5, -1, -1])
    assert sharing.means(key, values, values >= 0, -1).tolist() == [2**62 + 1, 2**62 + 1, 5, 5, -1]


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        (["http://www.a.example/x", "https://mail.a.example"], ("example", "a")),
        (["http://a.example", "http://A.EXAMPLE:8080/"], ("example", "a")),
        (["http://a.example", "http://a.test"], ()),
        (["http://a.example", "http://b.a.example"], ("example", "a")),
        (["http://b.a.example"], ("example", "a", "b")),
    ],
)
def test_domain_names_are_cut_to_what_all_end_in(urls, expected):
    assert sharing.common_right_part(map(labels_of, urls)) == expected


@pytest.mark.parametrize(
    ("query", "url", "host", "name"),
    [
        ("shop.example", "http://www.shop.example/cart", True, True),
        ("http://www.shop.example/cart", "http://www.shop.example/cart", True, True),
        ("red shoes shop", "http://www.shop.example", False, True),
        ("red shoes", "http://www.shop.example", False, False),
        ("example", "http://www.shop.example", False, False),
        ("", "http://", False, False),
    ],
)
def test_a_query_can_name_what_was_clicked_on(query, url, host, name):
    assert (names_target(query, url), names_target(query, url, "name")) == (host, name)
