"""Audits find what is wrong in a release that no method of ours would make."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import LINEAGE
from querycloak.audits.users import asked_by, askers_within, in_company
from querycloak.methods.z_anonymity import ZAnonymity
from tests.reference import naive

SECOND = 1_000_000


def original(rows):
    time = pl.Series([when * SECOND for _, _, when in rows], dtype=pl.Datetime("us", "UTC"))
    return pl.DataFrame(
        {
            "row": range(len(rows)),
            "user": [u for u, _, _ in rows],
            "query": [q for _, q, _ in rows],
            "time": time,
        }
    )


def evidence(log, shown, **more):
    """Release (query, original row, released_after) triples."""
    release = pl.DataFrame({"released_row": range(len(shown)), "query": [q for q, _, _ in shown]})
    rows = [row for _, row, _ in shown]
    truth = pl.DataFrame(
        {
            "released_row": range(len(shown)),
            "original_row": pl.Series(rows, dtype=pl.Int64),
            "original_user": [
                log["user"][row] if row is not None and row < log.height else None for row in rows
            ],
            "released_after": [after for _, _, after in shown],
        }
    )
    return Evidence(release.lazy(), log.lazy(), truth.lazy(), **more)


LOG = original([("a", "x", 1), ("b", "x", 2), ("a", "y", 3), ("b", "z", 4)])
GOOD = [("x", 0, 2), ("x", 1, 2)]


def broken(audits, given_evidence):
    return [audit.check for audit in audits if audit(given_evidence).verdict == "broken"]


def test_a_good_release_passes_everything():
    assert broken([*asked_by(2), *LINEAGE], evidence(LOG, GOOD)) == []


@pytest.mark.parametrize(
    ("shown", "fault"),
    [
        ([*GOOD, ("y", 2, 3)], "each released query was asked by at least 2 people"),
        ([("x", 0, 1), ("x", 1, 2)], "no query left before 2 people had asked it"),
        ([("x", 0, 2), ("x", 0, 2)], "no row of the original is shown twice"),
        ([*GOOD, ("x", 77, 4)], "every released row comes from a row of the original"),
        ([*GOOD, ("x", 3, 4)], "every released query is the one that was asked"),
        ([("x", 0, 2)], "each released query stands in at least 2 rows"),
    ],
)
def test_each_fault_is_found_by_its_audit(shown, fault):
    assert fault in broken([*asked_by(2), *LINEAGE], evidence(LOG, shown))


def test_later_methods_may_remove_rows_without_breaking_an_earlier_promise():
    found = {audit.check: audit(evidence(LOG, GOOD[:1], later=("cohort",))).verdict for audit in asked_by(2)}
    assert found["each released query stands in at least 2 rows"] == "not checkable"
    assert found["each released query was asked by at least 2 people"] == "kept"


def test_without_the_truth_an_audit_says_that_it_cannot_tell():
    alone = Evidence(pl.LazyFrame({"released_row": [0], "query": ["x"]}))
    assert {audit(alone).verdict for audit in LINEAGE} == {"not checkable"}


def test_a_window_audit_counts_people_not_searches():
    log = original([("a", "x", 1), ("a", "x", 2), ("b", "x", 3), ("b", "x", 100)])
    check = in_company(2, 10 * SECOND, 0)
    assert check(evidence(log, [("x", 2, 3)])).verdict == "kept"
    assert check(evidence(log, [("x", 1, 2)])).verdict == "broken"
    assert check(evidence(log, [("x", 3, 4)])).verdict == "broken"
    assert check(evidence(log, [("w", 2, 3)])).verdict == "broken"


def test_the_audit_of_z_anonymity_looks_at_the_methods_own_window():
    log = original([("a", "x", 0), ("b", "x", 59), ("c", "y", 100), ("d", "y", 160)])
    (check, _) = ZAnonymity.promise(ZAnonymity.Settings(z=2, window=60, generalise=False)).audits
    assert check(evidence(log, [("x", 1, 2)])).verdict == "kept"
    assert check(evidence(log, [("y", 3, 4)])).verdict == "broken"


events = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 20)), max_size=50)


@given(events=events, span=st.integers(1, 10), z=st.integers(1, 3))
def test_the_audit_of_windows_agrees_with_the_naive_count(events, span, z):
    events = sorted(events, key=lambda event: event[2])
    exposed = naive.exposed(
        [[g] for g, _, _ in events], [u for _, u, _ in events], [t for _, _, t in events], span, z
    )
    order = sorted(range(len(events)), key=lambda i: (events[i][0], i))
    arrays = [np.array([events[i][part] for i in order], np.int64) for part in range(3)]
    counts = askers_within(*arrays, span)
    assert [(count >= z) for count in counts] == [exposed[i] == 0 for i in order]
