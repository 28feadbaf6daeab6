"""`link-background`: a few known searches of a person, and the label they lead to."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.attacks import run
from querycloak.attacks.auxiliary import KnownSearches
from querycloak.attacks.case import Case
from querycloak.errors import NotApplicable
from tests.reference import naive_overlap
from tests.unit.attacks.made import COHORT, SWAP, K, found, guess, table

KEPT = {"methods": [{"method": "rules", "settings": {}}]}
KM = {"methods": [{"method": "km", "settings": {"k": 5, "m": 2, "history": "all", "window": "none"}}]}


def _known(**queries: list[str]) -> dict[str, pl.DataFrame]:
    rows = [(target, query) for target, some in queries.items() for query in some]
    return {"samples": pl.DataFrame(rows, schema=["user", "query"], orient="row")}


def test_the_label_that_goes_with_all_known_strings_wins():
    frame = table(["a", "b", "a", "b", "c"], ["x", "x", "y", "z", "y"])
    answer = guess("link-background", frame, KEPT, _known(t1=["x", "y"], t2=["z", "x"]))
    assert dict(zip(answer.target, answer.guess, strict=True)) == {"t1": "a", "t2": "b"}
    assert answer.candidates.tolist() == [1, 1]
    assert answer.details["share_with_one_candidate"] == 1


def test_a_rare_string_says_more_than_a_common_one():
    frame = table(["a", "b", "c", "d", "e"], ["common", "common", "common", "common", "rare"])
    answer = guess("link-background", frame, KEPT, _known(t=["common", "rare"]))
    assert answer.guess.to_list() == ["e"]
    assert answer.candidates.tolist() == [5]


def test_strings_that_were_not_released_find_nobody():
    answer = guess("link-background", table(["a"], ["x"]), KEPT, _known(t=["other"], s=["x"]))
    assert answer.guess.to_list() == [None, "a"]
    assert answer.details["share_not_found"] == 0.5
    assert answer.details["candidates"] == {"smallest": 1, "empty": 0.5, "median": 1.0}


@pytest.mark.parametrize("certificate", [SWAP, COHORT])
def test_strings_the_release_never_showed_are_no_trouble(certificate):
    answer = guess("link-background", table(["a", "b"], ["x", "y"]), certificate, _known(t=["p", "q"]))
    assert answer.guess.to_list() == [None]


def test_swap_gives_most_people_away_and_cohort_one_in_k():
    """Seeded: 600 users; by fresh draws the second line would fail less than once in a million."""
    assert found("link-background", "swap").low > 3 / K
    cohort = found("link-background", "cohort")
    assert cohort.success < 1 / K + 5 * (0.1 * 0.9 / cohort.n) ** 0.5
    assert cohort.bound is None


def test_it_needs_samples():
    with pytest.raises(NotApplicable, match="samples"):
        guess("link-background", table(["a"], ["x"]), KEPT)


def _terms(**terms: list[str]) -> dict[str, pl.DataFrame]:
    rows = [(target, term) for target, some in terms.items() for term in some]
    return {"samples": pl.DataFrame(rows, schema={"user": pl.String, "term": pl.String}, orient="row")}


def _named(answer) -> dict[str, set[str] | None]:
    pairs = zip(answer.target.to_list(), answer.guess.to_list(), strict=True)
    return {user: set(labels) if labels is not None else None for user, labels in pairs}


def test_labels_that_hold_all_known_terms_are_the_candidates():
    frame = table(["a", "a", "b", "c", None], ["Red shoes", "hats", "red hats", "red", "red shoes hats"])
    samples = _terms(t1=["red", "hats"], t2=["red"], t3=["shoes", "gone"], t4=["shoes", "red", "hats"])
    answer = guess("link-background", frame, KEPT, samples, known="terms")
    assert _named(answer) == {"t1": {"a", "b"}, "t2": {"a", "b", "c"}, "t3": None, "t4": {"a"}}
    assert answer.candidates.tolist() == [2, 3, 0, 1]
    assert answer.details["candidates"] == {"smallest": 1, "empty": 0.25, "median": 2.0}


@given(
    rows=st.lists(st.tuples(st.sampled_from("uvwxyz"), st.lists(st.sampled_from("abcdef"))), max_size=12),
    known=st.lists(st.sets(st.sampled_from("abcdefg"), min_size=1, max_size=4), min_size=1, max_size=5),
)
def test_candidates_are_those_that_looking_through_everything_finds(rows, known):
    frame = table([label for label, _ in rows], [" ".join(terms) for _, terms in rows])
    samples = {f"t{n}": sorted(terms) for n, terms in enumerate(known)}
    pairs = [(label, term) for label, terms in rows for term in terms]
    histories = naive_overlap.histories([label for label, _ in pairs], [term for _, term in pairs])
    expected = {who: naive_overlap.holding_all(terms, histories) or None for who, terms in samples.items()}
    assert _named(guess("link-background", frame, KEPT, _terms(**samples), known="terms")) == expected


def _case(authors, labels, queries, released=None):
    """A release of an original, row by row, as the runner takes it; some terms may have been deleted."""
    rows = range(len(authors))
    original = pl.DataFrame({"row": rows, "user": authors, "query": queries})
    release = pl.DataFrame({"released_row": rows, "user": labels, "query": released or queries})
    truth = {"released_row": rows, "original_row": rows, "original_user": authors, "released_after": 0}
    return release, original, pl.DataFrame(truth)


def _finding(case, certificate, terms=2, known="terms"):
    release, original, truth = case
    settings = {"known": known, "queries": str(terms)}
    (finding,) = run.attack(release, certificate, original, truth, ["link-background"], settings)
    return finding


PEOPLE = [f"u{n}" for n in range(40)]


def test_up_to_m_terms_find_one_in_k_where_km_keeps_its_promise():
    case = _case(PEOPLE, PEOPLE, [f"topic{n // 5} detail{n // 5}" for n in range(40)])
    finding = _finding(case, KM)
    assert (finding.bound, finding.holds) == (1 / 5, True)
    assert finding.success == pytest.approx(1 / 5)
    assert finding.details["bound_from"] == "promised by km"
    assert finding.details["candidates"] == {"smallest": 5, "empty": 0.0, "median": 5.0}


def test_a_broken_promise_of_km_shows():
    finding = _finding(_case(PEOPLE, PEOPLE, [f"topic{n} detail{n}" for n in range(40)]), KM)
    assert (finding.success, finding.bound, finding.holds) == (1.0, 1 / 5, False)
    assert finding.details["candidates"]["smallest"] == 1


def test_deleted_terms_find_nobody():
    gone = ["topic" if n % 2 else "other" for n in range(40)]
    finding = _finding(_case(PEOPLE, PEOPLE, [f"{word} detail" for word in gone], gone), KM)
    assert (finding.success, finding.holds) == (0.0, True)
    assert finding.details["candidates"] == {"smallest": None, "empty": 1.0, "median": None}
    assert finding.details["chance"] == 0.0


def test_only_up_to_m_terms_and_only_km_have_a_bound():
    case = _case(PEOPLE, PEOPLE, ["one two three"] * 40)
    assert _finding(case, KM, terms=3).bound is None
    assert _finding(case, KM, known="queries", terms=1).bound is None
    assert _finding(case, KEPT).bound is None
    rules, km, swap = (certificate["methods"] for certificate in (KEPT, KM, SWAP))
    assert _finding(case, {"methods": rules + km}).bound == 1 / 5
    assert _finding(case, {"methods": km + swap}).bound is None


def test_any_label_of_a_split_history_is_right():
    authors = ["u1", "u1", "u2"]
    case = _case(authors, ["p", "q", "r"], ["red hats", "hats red", "red hats"])
    (km,) = KM["methods"]
    split = {"methods": [km | {"settings": km["settings"] | {"window": "day"}}]}
    assert _finding(case, split).success == pytest.approx((2 / 3 + 1 / 3) / 2)


def test_known_terms_are_different_ones_of_people_who_have_enough():
    queries = [" ".join(f"T{n}x{i} t{n}x{i}" for i in range(1 + n % 3)) for n in range(40)]
    finding = _finding(_case(PEOPLE, PEOPLE, queries), KEPT, terms=2)
    assert finding.n == sum(n % 3 > 0 for n in range(40))  # the others have one term, twice
    assert finding.success == 1
    nobody = _finding(_case(PEOPLE, PEOPLE, queries), KEPT, terms=5)
    assert nobody.not_applicable == "the attacker knows no samples"


def test_drawn_terms_are_the_targets_own_and_follow_the_seed():
    queries = ["x"] * 30 + [f"a{n} b{n} c{n} d{n}" for n in range(10)]  # most people have too few terms
    release, original, truth = _case(PEOPLE, PEOPLE, queries)
    case = Case.of(release, KEPT, original, truth)
    seeds = [KnownSearches(targets=4, unit="term", seed=seed).draw(case) for seed in (1, 1, 2)]
    for drawn in seeds:
        terms = drawn.frame.group_by("user").agg("term")
        assert set(terms["user"]) == set(drawn.people) == {f"target {n}" for n in range(4)}
        for name, some in terms.iter_rows():
            assert len(set(some)) == len(some) == 3
            assert set(some) <= set(queries[PEOPLE.index(drawn.people[name])].split())
    assert seeds[0].frame.equals(seeds[1].frame)
    assert not seeds[0].frame.equals(seeds[2].frame)
