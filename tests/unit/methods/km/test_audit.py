"""The audit of `km` finds what the plain definition finds, and nothing else."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.audits.evidence import Evidence
from querycloak.methods.km import audit, is_km_anonymous, supports

HISTORIES = st.lists(st.sets(st.sampled_from("abcdef"), max_size=5), max_size=10)


def arrays(histories):
    pairs = [(h, ord(term)) for h, history in enumerate(histories) for term in history]
    return (np.array([pair[i] for pair in pairs], np.int64) for i in range(2))


@given(histories=HISTORIES, k=st.integers(1, 4), m=st.integers(1, 4), at_once=st.sampled_from([1, 3, 10**9]))
def test_exactly_the_terms_of_rare_combinations_are_marked(histories, k, m, at_once):
    history, term = arrays(histories)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "_AT_ONCE", at_once)
        bad = audit.rare(history, term, np.zeros_like(history), k, m)
    counts = supports(histories, m)
    expected = [
        any(
            counts[c] < k
            for size in range(1, m + 1)
            for c in combinations(sorted(histories[h]), size)
            if chr(t) in c
        )
        for h, t in zip(history, term, strict=True)
    ]
    assert bad.tolist() == expected
    assert bad.any() != is_km_anonymous(histories, k, m)


def evidence(rows):
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("user", "query", "url"))}
    times = pl.Series([row[3] * 86_400_000_000 for row in rows], dtype=pl.Datetime("us", "UTC"))
    frame = pl.DataFrame(columns | {"time": times, "released_row": range(len(rows))})
    return Evidence(frame.lazy())


ROWS = [("u", "a b", "x.com", 0), ("v", "b", "x.com", 0), ("v", "a", None, 1), ("w", "b a", None, 1)]


def test_windows_without_times_cannot_be_told_apart():
    check, _ = audit.audits(2, 1, "day", urls=False)
    timeless = Evidence(evidence(ROWS).text().with_columns(time=pl.lit(None, pl.Datetime("us", "UTC"))))
    assert check(timeless).verdict == "not checkable"


@pytest.mark.parametrize(
    ("k", "m", "window", "urls", "verdict"),
    [
        (3, 2, "none", False, "kept"),
        (4, 1, "none", False, "broken"),
        (3, 2, "none", True, "broken"),
        (2, 2, "none", True, "kept"),
        (2, 1, "day", False, "broken"),
        (2, 1, "week", False, "kept"),
    ],
)
def test_histories_are_put_together_from_rows(k, m, window, urls, verdict):
    check, people = audit.audits(k, m, window, urls=urls)
    found = check(evidence(ROWS))
    assert people(evidence(ROWS)).verdict == "not checkable"
    assert found.verdict == verdict
    assert not {"a b", "x.com"} & set(found.detail.split())
