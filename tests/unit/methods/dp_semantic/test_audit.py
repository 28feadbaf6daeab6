"""Audits of replaced queries find what `dp-semantic` would never show, and say what they cannot tell."""

from __future__ import annotations

import polars as pl
import pytest

from querycloak.audits.evidence import Evidence
from querycloak.errors import DataError
from querycloak.methods.dp_semantic.audit import audits

KNOWN = {"dog": "Home/Pets", "cat": "Home/Pets", "bill of rights": "Society/Law"}
HOUR = 3_600_000_000
WORDS, CATEGORY, DRAWS = range(3)


def shown(*rows):
    """Make a release of (user, query, time in microseconds, rank, url)."""
    schema = {"user": pl.String, "query": pl.String, "time": pl.Int64, "rank": pl.Int64, "url": pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row").cast({"time": pl.Datetime("us", "UTC")})
    return frame.with_row_index("released_row").cast({"released_row": pl.Int64})


GOOD = [
    ("a", "dog", HOUR, None, None),
    ("a", "cat, dog", None, None, ""),
    ("b", "bill of rights", 0, None, None),
]


def findings(release, limit=None, words=lambda: KNOWN, **more):
    evidence = Evidence(release.lazy(), **more)
    found = [audit(evidence) for audit in audits(words, limit)]
    assert found[DRAWS].verdict == "not checkable", "no single release can show how it was drawn"
    return found[:DRAWS] + found[DRAWS + 1 :]


def test_a_good_release_passes():
    assert [f.verdict for f in findings(shown(*GOOD))] == ["kept"] * 2


def test_the_words_are_read_once_for_all_audits_and_parts():
    read = []

    def words():
        read.append(1)
        return KNOWN

    tests = audits(words, None)
    for _ in range(3):
        assert tests[WORDS](Evidence(shown(*GOOD).lazy())).verdict == "kept"
        assert tests[CATEGORY](Evidence(shown(*GOOD).lazy())).verdict == "kept"
    assert len(read) == 1


def test_a_release_may_lack_columns():
    bare = shown(*GOOD).select("released_row", "query")
    assert [f.verdict for f in findings(bare)] == ["kept"] * 2


def test_an_empty_release_passes():
    assert [f.verdict for f in findings(shown())] == ["kept"] * 2


BAD = [
    (WORDS, ("a", "zanzibar", HOUR, None, None)),
    (WORDS, ("a", "dog, zanzibar", HOUR, None, None)),
    (WORDS, ("a", "zanzibar, dog", HOUR, None, None)),
    (WORDS, ("a", "dog cat", HOUR, None, None)),
    (WORDS, ("a", "dog,cat", HOUR, None, None)),
    (WORDS, ("a", "Dog", HOUR, None, None)),
    (WORDS, ("a", "dog,  cat", HOUR, None, None)),
    (WORDS, ("a", "", HOUR, None, None)),
    (WORDS, ("a", None, HOUR, None, None)),
]


@pytest.mark.parametrize(("which", "row"), BAD, ids=str)
def test_one_bad_row_is_found_and_not_repeated(which, row):
    found = findings(shown(*GOOD, row))
    assert [f.verdict for f in found] == ["broken" if i == which else "kept" for i in range(2)]
    assert "1 row of the release, the first: 3" in found[which].detail
    assert "zanzibar" not in found[which].detail


def _gone():
    raise DataError("the taxonomy file cannot be opened")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"words": None}, "words of the original were put back"),
        ({"words": _gone}, "the taxonomy is not here"),
        ({"rewritten_later": True}, "a later method rewrites queries"),
    ],
)
def test_what_cannot_be_told_is_said_so(settings, reason):
    found = findings(shown(*GOOD), **settings)
    assert found[WORDS].verdict == "not checkable"
    assert reason in found[WORDS].detail


def test_a_category_is_that_of_the_first_concept():
    own = pl.Series("category", ["Home/Pets", "Home/Pets", "Society/Law"])
    assert findings(shown(*GOOD).with_columns(own))[CATEGORY].verdict == "kept"
    for other in ("Society/Law", "zanzibar", None):
        found = findings(shown(*GOOD).with_columns(own.scatter(1, other)))[CATEGORY]
        assert found.verdict == "broken"
        assert "the first: 1" in found.detail
        assert "zanzibar" not in found.detail


def limited(rows, original, limit=3, **more):
    """Audit the number of concepts with the truth: each row comes from the original row of its place."""
    log = pl.DataFrame(
        original, schema={"user": pl.String, "query": pl.String, "time": pl.Int64}, orient="row"
    )
    log = log.cast({"time": pl.Datetime("us", "UTC")}).with_row_index("row").cast({"row": pl.Int64})
    truth = pl.DataFrame({"released_row": range(len(rows)), "original_row": range(len(rows))})
    truth = truth.with_columns(original_user=log["user"][: len(rows)], released_after=pl.lit(1))
    return findings(shown(*rows), limit=limit, original=log.lazy(), truth=truth.lazy(), **more)[-1]


LOG = [("x", "one", 1), ("x", "one", 1), ("x", "two", 2), ("y", "three", 3)]


def test_too_many_concepts_of_a_label_are_found():
    rows = [("a", "dog, cat", 0, None, None)] * 2 + [("a", "dog", 0, None, None), ("b", "cat", 0, None, None)]
    assert limited(rows, LOG).verdict == "kept", "two rows of one search show one draw each"
    found = limited([*rows[:2], ("a", "dog, cat", 0, None, None), rows[3]], LOG)
    assert found.verdict == "broken"
    assert "3 rows of the release, the first: 0" in found.detail
    assert limited(rows, LOG, limit=2).verdict == "broken"


def test_the_number_of_concepts_needs_the_truth_and_whole_lists():
    rows = [("a", "dog, cat", 0, None, None)]
    assert findings(shown(*rows), limit=3)[-1].verdict == "not checkable"
    assert limited(rows, LOG[:1], words=None).verdict == "not checkable"
    assert limited(rows, LOG[:1], rewritten_later=True).verdict == "not checkable"
