"""The conformance suite catches every planted fault, by the check that is there for it."""

from __future__ import annotations

import pytest
from hypothesis import Phase, find, settings

from querycloak.testing import conformance
from querycloak.testing.strategies import cuts, logs
from tests.conformance.broken_methods import CAUGHT_BY


def _fails(check, method, log, at) -> bool:
    try:
        conformance.run_check(check, method, log, at)
    except Exception:
        return True
    return False


@pytest.mark.parametrize("method", CAUGHT_BY, ids=lambda method: method.__name__)
def test_a_planted_fault_is_caught(method):
    check = getattr(conformance, CAUGHT_BY[method])
    hunt = settings(max_examples=500, phases=[Phase.generate], derandomize=True)
    from hypothesis import strategies as st

    found = find(
        st.tuples(logs(min_size=5), cuts()), lambda tried: _fails(check, method, *tried), settings=hunt
    )
    assert _fails(check, method, *found)
