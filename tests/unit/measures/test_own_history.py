"""What one history says, in counts."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.measures import own_history as own
from querycloak.text.taxonomy import load

few = st.frozensets(st.sampled_from("abcdef"))


@given(mine=few, crowd=st.lists(few, max_size=5), known=st.integers(1, 4))
def test_who_is_left_is_the_mean_over_all_choices(mine, crowd, known):
    choices = list(combinations(sorted(mine), known))
    found = own.left_by_topics(mine, crowd, known)
    if not choices:
        assert found is None
    else:
        left = [sum(set(choice) <= other for other in crowd) for choice in choices]
        assert found == pytest.approx(sum(left) / len(left))


def test_sensitive_matters_are_counted_by_topic():
    paths = ["Health", "Health/Sexual Health/x", "Healthy", "Society/Religion/a/b", "Sports", "Adult"]
    assert own.sensitive(paths) == {"health": 2, "sex life": 2, "religion": 1}


def test_sensitive_topics_are_in_the_taxonomy():
    known = {own.cut(path, level) for path in load().paths for level in (1, 2)}
    assert {root for roots in own.SENSITIVE.values() for root in roots} <= known


def test_queries_that_come_back_are_found_whatever_their_case():
    asked = ["My  Page", "my page", "MY PAGE", "other", "other"]
    assert own.repeated(asked) == {"my page": 3}


def test_the_quiet_hours_may_go_over_midnight():
    by_hour = [1 if 4 <= hour < 22 else 0 for hour in range(24)]
    assert own.quiet_hours(by_hour) == (22, 0.0)
    assert own.quiet_hours([0] * 24) == (0, 0.0)
