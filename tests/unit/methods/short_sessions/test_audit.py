"""The audits of `short-sessions` find each fault that is planted, and nothing in a good release."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from querycloak.audits.evidence import Evidence
from querycloak.methods.short_sessions.audit import Limits, audits

START = datetime(2006, 3, 1, tzinfo=UTC)
HALF_HOUR = 30 * 60 * 1_000_000
LIMITS = Limits(k=2, gap=HALF_HOUR, most=2, terms=False, daily=False)
#: user, query, minutes since the start
ASKED = [
    ("a", "rain", 5),
    ("a", "snow fall", 10),
    ("b", "rain", 12),
    ("b", "snow fall", 20),
    ("a", "rain", 90),
    ("a", "alone", 95),
    ("b", "rain", 24 * 60),
]
#: label, query, hour, original row, rows read when it left
GOOD = [
    ("l1", "rain", 0, 0, 7),
    ("l1", "snow fall", 0, 1, 7),
    ("l2", "rain", 0, 2, 7),
    ("l2", "snow fall", 0, 3, 7),
    ("l3", "rain", 1, 4, 7),
    ("l4", "rain", 24, 6, 7),
]


def moments(minutes):
    return pl.Series([START + timedelta(minutes=at) for at in minutes], dtype=pl.Datetime("us", "UTC"))


def evidence(shown, *, truth=True, asked=ASKED, **more):
    log = pl.DataFrame(
        {
            "row": range(len(asked)),
            "user": [one[0] for one in asked],
            "query": [one[1] for one in asked],
            "time": moments(one[2] for one in asked),
        }
    )
    release = pl.DataFrame(
        {
            "released_row": range(len(shown)),
            "user": [one[0] for one in shown],
            "query": [one[1] for one in shown],
            "time": moments(60 * one[2] for one in shown),
        }
    )
    told = pl.DataFrame(
        {
            "released_row": range(len(shown)),
            "original_row": [one[3] for one in shown],
            "original_user": [asked[one[3]][0] for one in shown],
            "released_after": [one[4] for one in shown],
        }
    )
    if not truth:
        return Evidence(release.lazy(), **more)
    return Evidence(release.lazy(), log.lazy(), told.lazy(), **more)


def verdicts(given, limits=LIMITS):
    return {audit.check: audit(given).verdict for part in audits(limits) for audit in part}


def broken(given, limits=LIMITS):
    return [check for check, verdict in verdicts(given, limits).items() if verdict == "broken"]


def changed(place, **columns):
    names = ("label", "query", "hour", "row", "after")
    one = dict(zip(names, GOOD[place], strict=True)) | columns
    return [*GOOD[:place], tuple(one.values()), *GOOD[place + 1 :]]


SHORT = "no label has more than 2 searches or continues after midnight"
ORDER = "days follow each other, and the rows of a label are adjacent"
LABELS = "each released query stands under at least 2 labels"
PEOPLE = "each released query is of at least 2 users before its release"
SESSION = "a label is of one session of one user with at most 2 searches"
SAME = "every released query is the one that was asked"


def test_a_good_release_passes_everything():
    assert set(verdicts(evidence(GOOD)).values()) == {"kept"}


def test_without_truth_what_a_reader_can_see_is_tested():
    found = verdicts(evidence(GOOD, truth=False))
    assert {check for check, verdict in found.items() if verdict == "kept"} == {SHORT, ORDER, LABELS}
    assert {found[check] for check in (PEOPLE, SESSION, SAME)} == {"not checkable"}


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(changed(4, label="l2"), {SHORT, SESSION}, id="a label of two people"),
        pytest.param(changed(5, label="l3"), {SHORT, SESSION}, id="a label of two days"),
        pytest.param([*GOOD[:4], GOOD[5], GOOD[4]], {ORDER}, id="a later day first"),
        pytest.param([GOOD[0], GOOD[2], GOOD[1], *GOOD[3:]], {ORDER}, id="a label torn apart"),
        pytest.param([*GOOD[:5], ("l5", "alone", 1, 5, 7), GOOD[5]], {LABELS, PEOPLE}, id="a rare query"),
        pytest.param(changed(0, after=2), {PEOPLE}, id="left too early"),
        pytest.param(changed(2, label="l1", query="rain"), {SESSION}, id="one label for two people"),
        pytest.param(changed(4, query="snow fall"), {SAME}, id="another query than was asked"),
    ],
)
def test_each_fault_is_found(shown, expected):
    assert set(broken(evidence(shown))) == expected


def test_a_session_goes_on_only_without_a_silence():
    asked = [("a", "rain", 5), ("b", "rain", 5), ("a", "rain", 40)]
    shown = [("l1", "rain", 0, 0, 3), ("l1", "rain", 0, 2, 3), ("l2", "rain", 0, 1, 3)]
    assert broken(evidence(shown, asked=asked)) == [SESSION]
    between = [*asked, ("a", "rare", 20)]  # she searched on, though it was not shown
    assert broken(evidence(shown, asked=between)) == []


def test_too_many_alike_searches_are_seen_with_the_truth():
    asked = [("a", "rain", 1), ("a", "rain", 2), ("a", "rain", 3), ("b", "rain", 4)]
    shown = [(label, "rain", 0, row, 4) for label, row in (("l1", 0), ("l1", 1), ("l1", 2), ("l2", 3))]
    assert broken(evidence(shown, asked=asked)) == [SESSION]


def test_terms_are_counted_by_labels_and_by_people():
    limits = Limits(k=2, gap=HALF_HOUR, most=2, terms=True, daily=False)
    asked = [("a", "rain on me", 1), ("b", "rain on you", 2), ("a", "me", 90)]
    good = [("l1", "rain on", 0, 0, 3), ("l2", "rain on", 0, 1, 3)]
    assert broken(evidence(good, asked=asked), limits) == []
    bad = [("l1", "rain on me", 0, 0, 3), ("l2", "rain on", 0, 1, 3), ("l3", "me", 1, 2, 3)]
    labels = "each released term stands under at least 2 labels"
    people = "each released term is of at least 2 users before its release"
    assert broken(evidence(bad, asked=asked), limits) == [people]
    assert broken(evidence(bad[:2], asked=asked), limits) == [labels, people]


def test_users_count_whose_own_searches_were_suppressed():
    """A term of k users may be released although only one of them has a released search; no rarer one may."""
    daily = Limits(k=2, gap=HALF_HOUR, most=2, terms=True, daily=True)
    asked = [("b", "rain you", 1), ("a", "rain", 2), ("a", "me", 90)]
    people = "each released term is of at least 2 users before its release"
    assert broken(evidence([("l1", "rain", 0, 1, 3)], asked=asked), daily) == []
    assert broken(evidence([("l1", "rain", 0, 1, 3), ("l3", "me", 1, 2, 3)], asked=asked), daily) == [people]


def test_what_earlier_days_or_later_methods_took_away_is_nobodys_fault():
    daily = Limits(k=2, gap=HALF_HOUR, most=2, terms=False, daily=True)
    alone = [GOOD[5]]
    assert verdicts(evidence(alone, truth=False), daily)[LABELS] == "not checkable"
    assert verdicts(evidence(alone), daily)[LABELS] == "not applicable", "users are counted"
    found = verdicts(evidence(alone, truth=False, later=("rules",)))
    assert (found[LABELS], found[ORDER]) == ("not checkable", "kept")
    torn = [GOOD[0], GOOD[2], GOOD[1], *GOOD[3:]]
    assert verdicts(evidence(torn, later=("cohort",)))[ORDER] == "not checkable"
    rewritten = verdicts(evidence(GOOD, earlier=("a plug-in",), rewritten_earlier=True))
    assert rewritten[PEOPLE] == rewritten[SAME] == "not checkable"
