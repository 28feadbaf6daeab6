"""The conformance suite catches every planted fault, by the check that is there for it."""

from __future__ import annotations

import pytest
from hypothesis import Phase, find, given, settings

from querycloak.testing import conformance
from querycloak.testing.strategies import cuts, logs
from tests.conformance.broken_methods import CAUGHT_BY
from tests.reference.tally import Tally


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


@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
@given(log=logs(), at=cuts())
def test_a_plain_table_passes_all_but_what_its_memory_costs(check, log, at):
    if check.__name__ != "memory_stays_bounded":  # it keeps every record, to be simple
        conformance.run_check(check, Tally, log, at)
