"""`link-repeat` against its slow twin, and what repeated strings give away."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.attacks import link_repeat
from querycloak.attacks.link_repeat import by_string, cohorts, commonest, run_em, window
from querycloak.attacks.release_order import read_stream
from tests.reference.naive_links import settled
from tests.unit.attacks.made import COHORT, SWAP, K, found, guess, hits, made, table

RECORDS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=30
)


@given(RECORDS, st.integers(1, 4), st.integers(1, 6), st.integers(1, 4))
def test_the_kernel_believes_what_its_slow_twin_believes(records, k, reach, rounds):
    frame = table(
        [f"u{label}" for label, _, _ in records],
        [f"q{string}" for _, _, string in records],
        category=[f"C{c}" for _, c, _ in records],
        time=list(range(len(records))),  # no two rows are one search
    ).with_columns(pl.col("time").cast(pl.Datetime("us", "UTC")))
    seen = read_stream(frame, 1)
    members, groups = by_string(seen)
    who, belief = run_em(seen, (members, groups), window(seen, k, reach), 1.0, rounds, best=6)
    for g in range(groups.size - 1):
        group = members[groups[g] : groups[g + 1]].tolist()
        expected = settled(
            seen.label.tolist(), seen.category.tolist(), group,
            scale=k, reach=reach, steady=link_repeat.STEADY, spread=1.0, rounds=rounds,
        )  # fmt: skip
        for place, one in zip(group, expected, strict=True):
            got = {int(w): float(b) for w, b in zip(who[place], belief[place], strict=True) if w >= 0}
            assert got == pytest.approx(one, rel=2e-3, abs=1e-5)


def test_a_string_asked_once_is_guessed_as_by_link_window():
    case = made("swap")
    single = case.release.select(pl.len().over("query") == 1).to_series()
    windows, repeats = (
        guess(name, case.release, case.certificate) for name in ("link-window", "link-repeat")
    )
    assert single.sum() > 1000
    assert windows.guess.filter(single).equals(repeats.guess.filter(single))


def test_who_is_near_every_time_is_the_author():
    labels, strings = [], []
    for turn in range(6):
        labels += [f"x{turn}", "ann", f"y{turn}", *(f"n{turn}{i}" for i in range(30))]
        strings += ["odd string", f"a{turn}", f"b{turn}", *(f"c{turn}{i}" for i in range(30))]
    frame = table(labels, strings, category=["S"] * len(labels))
    answer = guess("link-repeat", frame, SWAP, reach=5)
    assert answer.guess.filter(frame["query"] == "odd string").to_list() == ["ann"] * 6


def test_it_breaks_the_bound_on_a_naive_swap_most_of_all_on_repeated_strings():
    repeat, near = found("link-repeat", "swap"), found("link-window", "swap")
    assert repeat.low > 1.5 / K
    assert repeat.details["repeated"]["low"] > 4 / K
    assert repeat.details["repeated"]["low"] > near.details["repeated"]["high"]
    assert repeat.success > near.success + 0.05


@pytest.mark.parametrize("attack", ["link-window", "link-repeat", "link-time"])
def test_no_release_only_attack_beats_a_naive_cohort(attack):
    """Seeded: one draw, kept. With fresh draws each interval would miss on this side once in forty."""
    finding = found(attack, "cohort")
    assert finding.low <= 1 / K
    assert finding.details["repeated"]["low"] <= 1 / K


def test_on_a_cohort_nearly_every_tenth_guess_is_right_and_not_more():
    """Five standard deviations around 1/k, with rows of a user and of a string taken as one draw each.

    600 users: a fresh draw falls outside less than once in a million.
    """
    case = made("cohort")
    right = hits(guess("link-repeat", case.release, case.certificate), case)
    rows = pl.DataFrame({"right": right, "author": case.author, "query": case.release["query"]})
    groups = rows.group_by("author", "query").agg(error=(pl.col("right").cast(pl.Float64) - 1 / K).sum())
    deviation = float((groups["error"] ** 2).sum()) ** 0.5 / rows.height
    assert abs(right.mean() - 1 / K) < 5 * deviation


def test_cohorts_are_told_apart_by_their_repeated_strings():
    members = {"red": ["a", "b", "c"], "blue": ["d", "e", "f"]}
    labels, strings = [], []
    for turn in range(30):
        for name, people in members.items():
            labels += [people[turn % 3], people[(turn + 1) % 3]]
            strings += [f"{name} {turn}"] * 2
    seen = read_stream(table(labels, strings), 0)
    sets = cohorts(seen, by_string(seen), 3)
    of = dict(zip(seen.labels.texts().to_list(), sets.tolist(), strict=True))
    assert of["a"] == of["b"] == of["c"] != of["d"] == of["e"] == of["f"]


def test_the_commonest_label_of_a_string_is_taken_within_one_cohort():
    frame = table(["a", "z", "a", "b", "z", "z"], ["x"] * 6, time=list(range(6)))
    seen = read_stream(frame.with_columns(pl.col("time").cast(pl.Datetime("us"))), 0)
    a, z, b = seen.label[[0, 1, 3]]
    sets = np.zeros(3, np.int64)
    sets[z] = 1
    best = commonest(seen, by_string(seen), sets)
    assert best.tolist() == [a, z, a, a, z, z]
    assert a != b


def test_edges():
    for certificate in (SWAP, COHORT):
        assert guess("link-repeat", table([], []), certificate).guess.to_list() == []
        lonely = guess("link-repeat", table(["a"], [None]), certificate).guess.to_list()
        assert lonely == ([None] if certificate is SWAP else ["a"])
