"""The audits of `swap` and `cohort` find labels that tell something."""

from __future__ import annotations

import random
from statistics import NormalDist

import polars as pl
import pytest

from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import shown_after_erasure
from querycloak.methods.cohort import audit as cohorts
from querycloak.methods.swap import audit as swapping

SECOND = 1_000_000
#: Members of each cohort, and searches of each member.
K, EACH = 4, 150
COHORTS = [[f"c{cohort}-{member}" for member in range(K)] for cohort in range(3)]


def evidence(rows, sizes=K, **further):
    """Release rows of (author, label, query, cohort), one second after the other."""
    time = pl.Series([n * SECOND for n in range(len(rows))], dtype=pl.Datetime("us", "UTC"))
    author, label, query, cohort = (list(part) for part in zip(*rows, strict=True))
    number = pl.Series(range(len(rows)), dtype=pl.Int64)
    log = pl.DataFrame({"row": number, "user": author, "query": query, "time": time, **further})
    release = pl.DataFrame({"released_row": number, "user": label, "query": query, "time": time, **further})
    truth = pl.DataFrame(
        {
            "released_row": number,
            "original_row": number,
            "original_user": author,
            "released_after": number + 1,
        }
    ).with_columns(cohort=pl.Series(cohort, dtype=pl.Int64), cohort_size=pl.lit(sizes, pl.Int64))
    return Evidence(release.lazy(), log.lazy(), truth.lazy())


def released(label_of):
    """Let every member search; `label_of(members, place, n)` draws the label of a search."""
    rows = []
    for cohort, members in enumerate(COHORTS):
        for place, author in enumerate(members):
            texts = [f"q{n % 5}" for n in range(EACH)]
            rows += [(author, label_of(members, place, n), text, cohort) for n, text in enumerate(texts)]
    return rows


def even(members, place, n):
    """Draw any label with the same probability; the draw has a fixed seed."""
    return random.Random(f"{members[place]} {n}").choice(members)


def broken(audits, shown):
    return [audit.check for audit in audits if audit(shown).verdict == "broken"]


def test_labels_drawn_alike_pass():
    """A right audit fails here with a chance of 1e-6, once and for all: the seed is fixed."""
    assert broken(cohorts.audits(K), evidence(released(even))) == []


def test_labels_dealt_in_turn_are_found():
    """Every label exactly as often as the others comes up by chance once in 1e12 times."""
    in_turn = evidence(released(lambda members, place, n: members[(place + n // 5 + n) % K]))
    assert "all labels of a cohort are drawn with equal probability" in broken(cohorts.audits(K), in_turn)


@pytest.mark.parametrize(
    ("label_of", "check"),
    [
        (
            lambda members, place, n: members[place],
            "searches carry the label of their author as often as at random",
        ),
        (
            lambda members, place, n: members[(place + n) % 2],
            "all labels of a cohort are drawn with equal probability",
        ),
        (lambda members, place, n: members[n % 5 % K], "labels do not depend on the text"),
        (lambda members, place, n: COHORTS[n % 3][place], "every user is in one cohort of at least 4 users"),
    ],
)
def test_labels_that_tell_something_are_found(label_of, check):
    assert check in broken(cohorts.audits(K), evidence(released(label_of)))


def crowd(label_of, users=1_000, each=30, k=10):
    """Release searches of many users in turn, twelve minutes apart: each user has one a day, or fewer.

    `label_of(place, n, hour, rng)` returns the place of the label of a user's n-th search, or None for any.
    """
    rng, rows = random.Random(3), []
    for n in range(each):
        for user in rng.sample(range(users), users):
            hour = len(rows) // 5 % 24
            place = label_of(user, n, hour, rng)
            drawn = rng.randrange(k) if place is None else place % k
            rows.append((f"u{user}", f"u{user // k * k + drawn}", f"q{rng.randrange(50)}", user // k))
    shown = evidence(rows, sizes=k)
    time = pl.lit(pl.Series(range(len(rows)), dtype=pl.Int64) * 720 * SECOND).cast(pl.Datetime("us", "UTC"))
    return Evidence(shown.release, shown.original.with_columns(time=time), shown.truth)


def test_labels_of_many_users_drawn_alike_pass():
    """A right audit fails here with a chance of 1e-6, once and for all: the seed is fixed."""
    assert broken(cohorts.audits(10), crowd(lambda user, n, hour, rng: None)) == []


@pytest.mark.parametrize(
    ("label_of", "check"),
    [
        pytest.param(
            lambda user, n, hour, rng: user if user < 50 and rng.random() < 0.3 else None,
            "the labels of every single user are drawn at random",
            id="fifty users have their own label in more than one of three searches",
        ),
        pytest.param(
            lambda user, n, hour, rng: user + 3 if rng.random() < 0.15 else None,
            "labels do not depend on the author",
            id="every user has one label a little too often, another's",
        ),
        pytest.param(
            lambda user, n, hour, rng: user + n * (n + 1) // 2 if user < 100 else None,
            "labels do not depend on the author",
            id="labels of a hundred users follow from the number of the search",
        ),
        pytest.param(
            lambda user, n, hour, rng: user + hour if user < 50 else None,
            "labels do not depend on the time or on the label before",
            id="labels of fifty users follow from the hour of day",
        ),
    ],
)
def test_labels_that_tell_something_about_some_users_are_found(label_of, check):
    """No test of one user, and none of own labels, finds these."""
    assert check in broken(cohorts.audits(10), crowd(label_of))


SINGLE = "the labels of every single user are drawn at random"
#: Labels of one user that only one test of single users finds.
OF_ONE = {
    "have too many searches under one label": lambda members, n: (
        members[1] if n % 2 else even([members[0], *members[2:]], 0, n)
    ),
    "have too few searches under their own label": lambda members, n: even(members[1:], 0, n),
    "have too many searches with the label of the one before": lambda members, n: members[n // 2 % K],
    "have too many equal queries with one label": lambda members, n: members[n % 5 % K],
}


@pytest.mark.parametrize("fault", OF_ONE)
def test_labels_that_tell_something_of_one_user_are_found(fault):
    def label_of(members, place, n):
        of_one = members is COHORTS[0] and place == 0
        return OF_ONE[fault](members, n) if of_one else even(members, place, n)

    (check,) = (audit for audit in cohorts.audits(K) if audit.check == SINGLE)
    assert check(evidence(released(label_of))).detail == f"1 users {fault}"


@pytest.mark.parametrize("of", ["its cohort", "its author"])
def test_labels_that_depend_on_the_one_before_are_found(of):
    """Members search in turn; every second search of the cohort, or of each author, repeats a label."""
    rows, last = [], {}
    for n in range(EACH):
        for place, author in enumerate(COHORTS[0]):
            sequence, at = (0, n * K + place) if of == "its cohort" else (author, n)
            label = last[sequence] if at % 2 else even(COHORTS[0], place, n)
            last[sequence] = label
            rows.append((author, label, f"q{n}", 0))
    (check,) = (audit for audit in cohorts.audits(K) if "label before" in audit.check)
    assert f"the label of the one before of {of};" in check(evidence(rows)).detail


def test_a_cohort_with_too_few_members_is_found():
    check = "every user is in one cohort of at least 4 users"
    assert check in broken(cohorts.audits(K), evidence(released(even), sizes=K - 1))


def test_what_leaves_after_an_erasure_is_found():
    shown = evidence(released(even))
    erased = pl.LazyFrame({"user": [COHORTS[0][0]], "erased_after": [3]})
    late = Evidence(shown.release, shown.original, shown.truth, erased=erased)
    assert "every user is in one cohort of at least 4 users" in broken(cohorts.audits(K), late)


@pytest.mark.parametrize(("author", "label"), [("a", "b"), ("b", "a")])
def test_an_erased_user_is_neither_the_author_nor_the_label_of_a_later_record(author, label):
    shown = evidence([("a", "a", "q", 0), (author, label, "q", 0), ("b", "c", "q", 0)])
    for erased_after, found in ((1, True), (2, False)):
        erased = pl.LazyFrame({"user": ["a"], "erased_after": [erased_after]})
        late = shown_after_erasure(Evidence(shown.release, shown.original, shown.truth, erased=erased))
        assert bool(late) is found


@pytest.mark.parametrize("audits", [cohorts.audits(2), swapping.audits(2, 1, "suppress")])
def test_two_labels_of_one_search_are_found(audits):
    rows = [("a", "b", "q", 0), ("b", "a", "q", 0)]
    shown = evidence([*rows, *rows], category=["t"] * 4)
    time = pl.lit(0).cast(pl.Datetime("us", "UTC"))
    one = Evidence(
        shown.release.with_columns(time=time),
        shown.original.with_columns(time=time, user=pl.lit("a")),
        shown.truth.with_columns(original_user=pl.lit("a")),
    )
    assert "all rows of one search carry one label" in broken(audits, one)


def test_chance_tests_are_as_strict_as_they_say():
    """Twenty-two tails share the chance of an alarm; a sum of many may have 1.6 times the normal tail."""
    assert cohorts.FALSE_ALARM == 1e-6
    assert cohorts.FALSE_ALARM / 22 == cohorts._TAIL
    assert 0.5 < (1 - NormalDist().cdf(cohorts._Z)) / (cohorts._TAIL / 1.6) <= 1


@pytest.mark.parametrize(
    ("labels", "check"),
    [
        (["a", "c", "b"], "no record is released under the label of its author"),
        (["b", "a", "b"], "no label is released more often than its user searched in the category"),
        (["b", "c", "a"], "more than 2 users are present at each release"),
    ],
)
def test_faults_of_swap_are_found(labels, check):
    """Three people search once each; the last label leaves when only one user is there."""
    rows = [(author, label, "q" + author, 0) for author, label in zip("abc", labels, strict=True)]
    shown = evidence(rows, category=["t"] * 3)
    late = shown.truth.with_columns(released_after=pl.lit(3, pl.Int64))
    again = Evidence(shown.release, shown.original, late)
    assert check in broken(swapping.audits(2, 1, "suppress"), again)


def test_k_users_are_too_few_for_swap():
    """Two people search, and one record leaves under the other's label."""
    shown = evidence([("a", "b", "x", 0), ("b", "a", "y", 0)], category=["t"] * 2)
    alone = [frame.filter(pl.col("released_row") == 0) for frame in (shown.release, shown.truth)]
    late = alone[1].with_columns(released_after=pl.lit(2, pl.Int64))
    found = broken(swapping.audits(2, 1, "suppress"), Evidence(alone[0], shown.original, late))
    assert found == ["more than 2 users are present at each release"]
