"""`link-overlap`: whole histories, and the labels that have most in common with them."""

from __future__ import annotations

import sys
import unicodedata

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.attacks import run
from querycloak.attacks.auxiliary import Histories
from querycloak.attacks.case import Case
from querycloak.attacks.link_overlap import drawn
from querycloak.attacks.searches import in_terms
from querycloak.errors import NotApplicable
from querycloak.kernels.overlap import closest, pieces
from querycloak.text.normalise import words
from tests.reference import naive_overlap
from tests.reference.plain_measures import terms
from tests.unit.attacks.made import SWAP, guess, made, table

KEPT = {"methods": [{"method": "rules", "settings": {}}]}
PARTS = {"methods": [{"method": "short-sessions", "settings": {}}]}
EVERYTHING = np.iinfo(np.int64).max

records = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=60)


def known(**histories: list[str]) -> dict[str, pl.DataFrame]:
    rows = [(user, query) for user, queries in histories.items() for query in queries]
    return {"histories": pl.DataFrame(rows, schema={"user": pl.String, "query": pl.String}, orient="row")}


def named(answer) -> dict[str, set[str] | None]:
    return {user: set(some) if some is not None else None for user, some in answer_rows(answer)}


def answer_rows(answer):
    return zip(answer.target.to_list(), answer.guess.to_list(), strict=True)


def columns(rows):
    return tuple(np.array(column, np.int64) for column in (zip(*rows, strict=True) if rows else ((), ())))


@given(
    before=records,
    after=records,
    room=st.sampled_from([1, 7, 1 << 20]),
    cuts=st.sampled_from([(1, 2, EVERYTHING), (0, 3, EVERYTHING), (EVERYTHING,)]),
)
def test_it_finds_what_comparing_everything_finds(before, after, room, cuts):
    found: dict[int, set[int]] = {}
    for who, label in closest(columns(before), columns(after), room, cuts):
        for one in np.unique(who).tolist():
            assert one not in found  # each history is settled once
            found[one] = set(label[who == one].tolist())
    people, labels = (naive_overlap.histories(*columns(rows)) for rows in (before, after))
    expected = {who: naive_overlap.best(history, labels) for who, history in people.items()}
    assert found == {who: labels for who, labels in expected.items() if labels}


def test_a_label_with_frequent_things_only_may_still_tie():
    # 0 has a rare and a frequent thing; one label has the rare one, two others have the frequent one.
    ((who, label),) = [
        pairs
        for pairs in closest(
            columns([(0, 0), (0, 1)]), columns([(5, 0), (6, 1), (7, 1)]), cuts=(1, EVERYTHING)
        )
        if pairs[0].size
    ]
    assert (who.tolist(), label.tolist()) == ([0, 0, 0], [5, 6, 7])


def test_it_finds_the_same_on_a_log_with_common_and_rare_queries():
    case = made("swap")
    seen = case.release.filter(pl.col("released_row") % 3 > 0)
    answer = guess("link-overlap", seen, SWAP, {"histories": case.original})
    labels = naive_overlap.histories(seen["user"], seen["query"])
    theirs = naive_overlap.histories(case.original["user"], case.original["query"])
    for person, some in list(answer_rows(answer))[::40]:
        best = naive_overlap.best(theirs[person], labels)
        assert set(some or ()) <= best
        assert len(some or ()) == min(len(best), 100)


def test_repetitions_count_and_nothing_is_divided():
    frame = table(["x", "x", "y", "y", "y", "z"], ["a", "b", "a", "a", "c", "c"])
    answer = guess("link-overlap", frame, KEPT, known(one=["a", "a", "d"], two=["a", "b"], three=["c"]))
    assert named(answer) == {"one": {"y"}, "two": {"x"}, "three": {"y", "z"}}
    assert answer.candidates.tolist() == [1, 1, 2]


def test_who_shares_nothing_is_not_linked():
    answer = guess("link-overlap", table(["x"], ["a"]), KEPT, known(one=["b"], two=["a"]))
    assert named(answer) == {"one": None, "two": {"x"}}
    assert answer.details["candidates"] == {"smallest": 1, "empty": 0.5, "median": 1.0}
    nobody = guess("link-overlap", table(["x"], ["a"]), KEPT, known(one=["b"]))
    assert nobody.details["candidates"] == {"smallest": None, "empty": 1.0, "median": None}


def test_terms_and_categories_find_what_queries_do_not():
    frame = table(["x", "y"], ["Red-shoes", "blue hats"], category=["Shopping/Shoes", "Shopping/Hats"])
    histories = pl.DataFrame(
        {"user": ["one", "two"], "query": ["shoes, red", "odd"], "category": ["Arts", "Shopping/Hats"]}
    )
    given_ = {"histories": histories}
    assert named(guess("link-overlap", frame, KEPT, given_)) == {"one": None, "two": None}
    assert named(guess("link-overlap", frame, KEPT, given_, on="terms")) == {"one": {"x"}, "two": None}
    assert named(guess("link-overlap", frame, KEPT, given_, on="categories")) == {"one": None, "two": {"y"}}


def test_what_it_cannot_work_without():
    frame = table(["x"], ["a"])
    with pytest.raises(NotApplicable, match="knows no histories"):
        guess("link-overlap", frame, KEPT)
    with pytest.raises(NotApplicable, match="the history has no category"):
        guess("link-overlap", frame, KEPT, known(one=["a"]), on="categories")
    with pytest.raises(NotApplicable, match="the release has no query"):
        guess("link-overlap", frame.drop("query"), KEPT, known(one=["a"]))


def test_some_people_are_drawn_where_there_are_many():
    people = [f"u{n}" for n in range(30)]
    case = Case.of(*case_of(people, people, ["a"] * 30))
    some = [Histories(10, seed).draw(case) for seed in (1, 1, 2)]
    assert [len(drawn.people) for drawn in some] == [10] * 3
    assert some[0].people == some[1].people != some[2].people
    assert set(some[0].people.values()) != set(some[2].people.values())
    assert set(Histories().draw(case).people.values()) == set(people)
    (finding,) = run.attack(*case_of(people, people, people), ["link-overlap"], {"targets": "10"})
    assert (finding.n, finding.success) == (10, 1.0)


def case_of(authors, labels, queries, certificate=KEPT, **truth):
    """A release of an original, row by row, as the runner takes it."""
    rows = range(len(authors))
    original = pl.DataFrame({"row": rows, "user": authors, "query": queries})
    release = pl.DataFrame({"released_row": rows, "user": labels, "query": queries})
    known_ = {"released_row": rows, "original_row": rows, "original_user": authors, "released_after": 0}
    return release, certificate, original, pl.DataFrame(known_ | truth)


def success(*case) -> float:
    (finding,) = run.attack(*case, ["link-overlap"])
    assert (finding.game, finding.unit, finding.bound, finding.holds) == (
        "identification",
        "user",
        None,
        None,
    )
    return finding.success


def test_ties_share_the_success():
    people = ["u1", "u2", "u3", "u4"]
    assert success(*case_of(people, people, ["a", "a", "a", "b"])) == pytest.approx((3 * (1 / 3) + 1) / 4)


def test_fresh_labels_are_found_by_what_they_stand_for():
    truth = {"original_label": ["f1", "f2"], "label_user": ["u1", "u2"]}
    assert success(*case_of(["u1", "u2"], ["f1", "f2"], ["a", "b"], **truth)) == 1


@pytest.mark.parametrize("truth", [{}, {"original_label": ["u1", "u1", "u2"], "label_user": ["u2"] * 3}])
def test_any_part_of_a_split_history_is_right(truth):
    # u1's searches left under two labels of their own; each has one in common with her history.
    authors, labels = ["u1", "u1", "u2"], ["p", "q", "r"]
    assert success(*case_of(authors, labels, ["a", "b", "c"], PARTS, **truth)) == 1
    mixed = ["p", "r", "r"]  # r holds rows of both, so it is neither's; u1 is half right
    assert success(*case_of(authors, mixed, ["a", "b", "c"], PARTS, **truth)) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("labels", "truth"),
    [
        (["u2", "u3"], {}),
        (["f2", "f3"], {"original_label": ["f1", "f2"], "label_user": ["u2", "u3"]}),
    ],
)
def test_a_label_that_was_swapped_is_not_right_for_who_wrote_under_it(labels, truth):
    # u3's own rows were held back, and only u2 wrote under her label: it is still u3's.
    release, certificate, _, known_ = case_of(["u1", "u2"], labels, ["a", "b"], **truth)
    original = pl.DataFrame({"row": [0, 1, 2], "user": ["u1", "u2", "u3"], "query": ["a", "b", "c"]})
    assert success(release, certificate, original, known_) == 0


@given(query=st.text(st.characters(exclude_categories=["Cn", "Cs"]), max_size=20))
def test_terms_are_split_as_the_measures_split_them(query):
    assert words(pl.Series([query]))[0].to_list() == terms(query)


def test_every_character_is_split_as_the_measures_split_it():
    assigned = (chr(n) for n in range(sys.maxunicode) if unicodedata.category(chr(n)) not in ("Cn", "Cs"))
    queries = [f"a{one}B" for one in assigned]
    assert words(pl.Series(queries)).to_list() == [terms(query) for query in queries]


def test_terms_keep_their_repetitions():
    rows = pl.DataFrame({"user": ["u", "u"], "thing": ["new new york", "?!"]})
    assert sorted(in_terms(rows)["thing"]) == ["new", "new", "york"]
    assert in_terms(rows, pl.Series(["york"]))["thing"].to_list() == ["york"]


def test_of_many_labels_some_are_drawn_evenly():
    """Seeded. 4,000 draws of 5 in 20: a label is off by 5 deviations less than once in 80,000 runs."""
    who, label = np.zeros(20, np.int64), np.arange(20)
    draws, hits = np.random.default_rng(3), np.zeros(20)
    for _ in range(4000):
        kept = drawn((who, label), 5, draws)
        assert (kept[0].size, set(kept[2].tolist())) == (5, {20})
        hits[kept[1]] += 1
    assert np.abs(hits - 1000).max() < 5 * (4000 * 0.25 * 0.75) ** 0.5
    few = drawn((np.array([0, 0, 3]), np.array([1, 2, 1])), 5, draws)
    assert [part.tolist() for part in few] == [[0, 0, 3], [1, 2, 1], [2, 2, 1]]


@given(cost=st.lists(st.integers(0, 9), max_size=20), room=st.integers(1, 20))
def test_pieces_cover_everything_and_fit(cost, room):
    cut = list(pieces(np.array(cost, np.int64), room))
    assert [n for part in cut for n in cost[part]] == cost
    assert all(sum(cost[part]) <= room or part.stop - part.start == 1 for part in cut)


def test_terms_keep_accents_and_the_marks_of_their_script():
    rows = pl.DataFrame({"user": ["u"], "thing": ["Müller हिन्दी"]})
    assert sorted(in_terms(rows)["thing"]) == ["müller", "हिन्दी"]
