"""Scoring by hand, and intervals that cover what they should."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from querycloak import intervals
from querycloak.attacks import scoring
from querycloak.attacks.base import Attribution, Identification, PairGuesses
from querycloak.attacks.case import Truth, aligned
from querycloak.attacks.finding import Finding
from querycloak.errors import DataError, NotApplicable, UsageError
from querycloak.intervals import Clusters


def answers(authors, queries=None, labels=None):
    rows = range(len(authors))
    release = pl.DataFrame({"released_row": rows, "query": queries or [f"q{row}" for row in rows]})
    truth = pl.DataFrame(
        {"released_row": rows, "original_row": rows, "original_user": authors, "released_after": 0},
        schema_overrides={"original_user": pl.String},
    )
    if labels:
        truth = truth.with_columns(original_label=pl.Series(labels))
    return Truth.of(release, truth)


def guessed(*names):
    return Attribution(pl.Series(names, dtype=pl.String))


def test_attribution_is_the_share_of_rows_with_the_right_label():
    score = scoring.attribution(guessed("a", "b", "b", None), answers(["a", "a", "b", "b"]))
    assert (score.unit, score.share.value, score.share.n) == ("record", 0.5, 4)
    assert (score.median_user, score.details["guessed"]) == (0.5, 0.75)


def test_fresh_labels_are_what_a_right_guess_says():
    truth = answers(["a", "b"], labels=["x1", "x2"])
    assert scoring.attribution(guessed("x1", "b"), truth).share.value == 0.5


def test_rows_without_an_author_are_not_scored():
    assert scoring.attribution(guessed("a", "a"), answers(["a", None])).share.n == 1
    with pytest.raises(NotApplicable, match="no released row has an author"):
        scoring.attribution(guessed("a"), answers([None]))


def test_the_wrong_number_of_guesses_is_the_attacks_fault():
    with pytest.raises(UsageError, match="2 guesses for 1 rows"):
        scoring.attribution(guessed("a", "a"), answers(["a"]))


def test_success_is_split_by_how_often_an_author_repeats_a_string():
    authors = ["a"] * 5 + ["b", "b", "c", "b"]
    queries = ["five"] * 5 + ["two", "two", "two", "once"]
    guesses = guessed("a", "a", "a", "a", "z", "b", "z", "c", "z")
    parts = scoring.attribution(guesses, answers(authors, queries), bound=0.1).details["by_repeats"]
    assert {name: (part["success"], part["n"]) for name, part in parts.items()} == {
        "1": (0.5, 2),  # c asked `two` once; that b asked it too does not count
        "2-4": (0.5, 2),
        "5+": (0.8, 5),
    }
    score = scoring.attribution(guesses, answers(authors, queries), bound=0.1)
    assert score.details["repeated"] == parts["5+"]
    assert scoring.attribution(guessed("a"), answers(["a"])).details["repeated"] is None


def test_users_are_told_apart_by_median_and_worst_decile():
    authors = [f"u{n // 2}" for n in range(22)]  # eleven authors with two rows each
    right = [f"u{n // 2}" if n // 2 >= 9 or (n // 2 >= 5 and n % 2) else "nobody" for n in range(22)]
    score = scoring.attribution(guessed(*right), answers(authors))
    assert (score.median_user, score.worst_decile_user) == (0.5, 1.0)


def test_the_truth_is_lined_up_by_row_and_a_foreign_one_is_refused():
    release = pl.DataFrame({"released_row": [0, 1]})
    truth = pl.DataFrame({"released_row": [1, 0], "original_user": ["b", "a"], "released_after": [2, 2]})
    assert aligned(release, truth)["original_user"].to_list() == ["a", "b"]
    with pytest.raises(DataError, match="does not belong to this release"):
        aligned(pl.DataFrame({"released_row": [0, 7]}), truth)


def pairs(scores, *places):
    first, second = (np.array(side, np.int64) for side in zip(*places, strict=True))
    return PairGuesses(first, second, np.array(scores, np.float64))


def test_linkage_by_hand():
    truth = answers(["a", "a", "b", "b"])
    made = pairs([0.9, 0.2, 0.8, 0.1], (0, 1), (2, 3), (0, 2), (1, 3))  # two true pairs, two false ones
    score = scoring.pairs(made, truth)
    # Upper half: (0,1) and (0,2): one right, one wrong; likewise below. Of four comparisons three are won.
    assert (score.unit, score.share.value, score.share.n) == ("pair", 0.5, 4)
    assert score.details["area_under_curve"] == 0.75
    assert score.details["precision_at_true_pairs"] == 0.5
    assert (score.details["pairs"], score.details["true_pairs"], score.details["chance"]) == (4, 2, 0.5)


def test_linkage_without_any_idea_is_chance():
    truth = answers(["a", "a", "b", "b"])
    score = scoring.pairs(pairs([1.0] * 4, (0, 1), (2, 3), (0, 2), (1, 3)), truth)
    assert (score.share.value, score.details["area_under_curve"]) == (0.5, 0.5)
    assert score.details["precision_at_true_pairs"] == 0.5


def test_pairs_that_tie_at_the_cut_are_called_as_by_a_coin():
    truth = answers(["a", "a", "b", "b"])
    score = scoring.pairs(pairs([0.5, 0.5, 0.5, 0.1], (0, 1), (2, 3), (0, 2), (1, 3)), truth)
    # Two of the three pairs that tie are called one author's: 2/3 and 2/3 of the true ones, 1/3 of the other.
    assert score.share.value == pytest.approx((2 / 3 + 2 / 3 + 1 / 3 + 1) / 4)


def test_linkage_balances_and_a_perfect_attack_is_perfect():
    truth = answers(["a"] * 3 + ["b"] * 5)
    places = [(i, j) for i in range(8) for j in range(i)]
    right = [float((i < 3) == (j < 3)) for i, j in places]
    score = scoring.pairs(pairs(right, *places), truth)
    assert (score.share.value, score.details["area_under_curve"], score.share.n) == (1.0, 1.0, 26)


def test_linkage_needs_both_kinds_and_known_rows():
    with pytest.raises(NotApplicable, match="not both"):
        scoring.pairs(pairs([1.0], (0, 1)), answers(["a", "a"]))
    with pytest.raises(UsageError, match="does not have"):
        scoring.pairs(pairs([1.0], (0, 9)), answers(["a", "b"]))


def test_the_area_under_the_curve_is_scipys():
    draws = np.random.default_rng(5)
    same, score = draws.random(300) < 0.3, draws.integers(0, 20, 300).astype(float)
    won = stats.mannwhitneyu(score[same], score[~same]).statistic / (same.sum() * (~same).sum())
    assert scoring.area_under_curve(score, same) == pytest.approx(won)


PEOPLE = {"target 0": "a", "target 1": "b", "target 2": "gone"}


def test_identification_by_label():
    truth = answers(["a", "b"], labels=["x1", "x2"])
    made = Identification(pl.Series(list(PEOPLE)), pl.Series(["x1", "x1", None]), np.array([4, 4, 1]))
    score = scoring.identification(made, truth, PEOPLE)
    assert (score.unit, score.share.value, score.share.n) == ("user", pytest.approx(1 / 3), 3)
    assert score.details["chance"] == pytest.approx(0.5)


def test_identification_by_row_and_by_several_rows():
    truth = answers(["a", "b", "b"])
    one = Identification(pl.Series(["target 0", "target 1"]), pl.Series([0, 0]))
    assert scoring.identification(one, truth, PEOPLE).share.value == 0.5
    several = Identification(pl.Series(["target 0", "target 1"]), pl.Series([[0], [0, 1, 2]]))
    assert scoring.identification(several, truth, PEOPLE).share.value == pytest.approx((1 + 2 / 3) / 2)


def test_identification_of_strangers_is_the_attacks_fault():
    with pytest.raises(UsageError, match="not given"):
        scoring.identification(Identification(pl.Series(["who"]), pl.Series(["a"])), answers(["a"]), PEOPLE)


@pytest.mark.parametrize("degrees", [1, 1.1, 1.5, 1.9, 2, 2.5, 2.9, 3, 4, 10, 30, 1000])
def test_the_t_point_is_students(degrees):
    assert intervals.t_point(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=0.004)


@pytest.mark.parametrize(("hits", "n"), [(3, 10), (50, 200), (1, 40)])
def test_wilson_is_scipys(hits, n):
    theirs = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert intervals.wilson(hits / n, n) == pytest.approx((theirs.low, theirs.high))


def test_at_zero_and_one_the_number_of_clusters_decides():
    # A hundred authors with ten rows each: as if there were a hundred rows, about the rule of three.
    authors = np.repeat(np.arange(100), 10)
    none, every = (intervals.share(np.full(1000, value), [authors]) for value in (0.0, 1.0))
    assert none is not None
    assert every is not None
    assert none.low == 0.0
    assert 0.03 < none.high < 0.045
    assert (every.high, every.low) == (1.0, pytest.approx(1 - none.high))
    lone = intervals.share(np.zeros(1000), [np.zeros(1000, np.int64)])
    assert lone is not None
    assert lone.high > 0.9  # one author tells next to nothing
    assert intervals.share(np.empty(0), []) is None


def test_the_widest_clustering_counts():
    draws = np.random.default_rng(1)
    hits = np.repeat(draws.random(50) < 0.3, 20).astype(float)  # whole authors are right or wrong
    authors, strings = np.repeat(np.arange(50), 20), np.arange(1000)
    alone, both = (intervals.share(hits, c) for c in ([strings], [strings, authors]))
    assert alone is not None
    assert both is not None
    assert both.high - both.low > 3 * (alone.high - alone.low)


@pytest.mark.parametrize("spread", [0.5, 5.0], ids=["unlike people", "like people"])
@pytest.mark.parametrize(("authors", "most"), [(80, 200), (400, 2000)])
def test_intervals_cover_clustered_shares(spread, authors, most):
    # 400 made-up logs of authors with heavy-tailed numbers of rows and success rates of their own around
    # 0.1. Each side of a 95 % interval may miss 2.5 %, 10 of 400; the seed is fixed, and for another one more
    # than 26 come by chance with probability 5e-6: the false-alarm rate of each assertion. Taking rows
    # as independent misses many times as often.
    draws = np.random.default_rng(11)
    above = below = careless = 0
    for _ in range(400):
        sizes = np.minimum(draws.zipf(1.8, authors), most)
        rates = draws.beta(0.1 * spread, 0.9 * spread, authors)
        hits = (draws.random(sizes.sum()) < np.repeat(rates, sizes)).astype(float)
        found = intervals.share(hits, [np.repeat(np.arange(authors), sizes)])
        assert found is not None
        above, below = above + (found.low > 0.1), below + (found.high < 0.1)
        low, high = intervals.wilson(found.value, hits.size)
        careless += not low <= 0.1 <= high
    assert above <= 26
    assert below <= 26
    assert careless > 80


def test_the_variance_of_a_mean_by_hand():
    # Authors with values (1, 1), (0, 0), (1, 0): mean 1/2. Leaving one out gives 1/4, 3/4, 1/2.
    clusters = Clusters.of(np.array([0, 0, 1, 1, 2, 2]), np.array([1.0, 1, 0, 0, 1, 0]))
    assert clusters.jackknife_variance() == pytest.approx(2 / 3 * (1 / 16 + 1 / 16))
    # Pairs agree with products 1/4, 1/4, -1/4, on average 1/12: a third of the spread 1/4.
    assert clusters.pooled_variance() == pytest.approx(0.25 * (1 + 1 / 3) / 6)
    assert clusters.effective() == pytest.approx(3)
    one_large = Clusters.of(np.array([0] * 8 + [1, 2]), np.zeros(10))
    assert one_large.effective() == pytest.approx(1 / (0.64 + 0.01 + 0.01))


def test_a_bound_holds_while_the_interval_reaches_down_to_it():
    finding = Finding("x", "attribution", "record", 0.12, 0.09, 0.15, 0.1, n=10)
    assert finding.holds is True
    assert Finding("x", "attribution", "record", 0.12, 0.11, 0.15, 0.1).holds is False
    assert Finding("x", "attribution", "record", 0.12, 0.11, 0.15).holds is None
    assert Finding("x", "attribution", "record", bound=0.1, not_applicable="why").holds is None


def test_a_finding_as_plain_values():
    assert list(Finding("x", "linkage", "pair", 0.5, 0.4, 0.6).as_dict()) == [
        "attack", "game", "unit", "success", "low", "high", "bound", "holds",
        "n", "seconds", "median_user", "worst_decile_user", "details", "not_applicable",
    ]  # fmt: skip
    assert not math.isnan(Finding("x", "linkage", "pair", 0.5).as_dict()["success"])


def test_rows_without_a_query_are_not_counted_with_another_authors_rows():
    rows = [(author, query) for author in "abc" for query in ("x", "y", None)]
    known = answers([author for author, _ in rows], [query for _, query in rows])
    assert known.repeats.tolist() == [1] * len(rows)
