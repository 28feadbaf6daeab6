"""The conformance suite catches every planted fault, by the check that is there for it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from querycloak.registry import METHODS
from querycloak.testing import conformance
from querycloak.testing.strategies import CATEGORIES, START, URLS, USERS, cuts, frame_of, logs
from tests.conformance.broken_methods import CAUGHT_BY, GrowsForEver
from tests.conformance.corpus import corpus
from tests.conformance.test_methods import DRAWN
from tests.reference.tally import Tally

#: It keeps every record, to be simple.
TALLYS = [check for check in conformance.CHECKS if check.__name__ != "memory_stays_bounded"]


def shows(method, log, at, examples=None) -> bool:
    """Whether the check that is there for a broken method fails on a log."""
    try:
        conformance.run_checks(method, log, at, [getattr(conformance, CAUGHT_BY[method])], examples)
    except ExceptionGroup:
        return True
    return False


@pytest.mark.parametrize("method", CAUGHT_BY, ids=lambda method: method.__name__)
def test_a_planted_fault_is_caught_on_two_stored_logs(method):
    assert sum(shows(method, log, at) for log, at in corpus().values()) >= 2


@pytest.mark.parametrize("method", CAUGHT_BY, ids=lambda method: method.__name__)
def test_the_whole_suite_names_the_check_that_catches_a_fault(method):
    log, at = next(stored for stored in corpus().values() if shows(method, *stored))
    with pytest.raises(ExceptionGroup) as caught:
        conformance.run_checks(method, log, at)
    notes = [note for error in caught.value.exceptions for note in error.__notes__]
    assert any(CAUGHT_BY[method] in note and f"`{method.name}` with" in note for note in notes)


def test_a_plain_table_passes_all_but_what_its_memory_costs_on_stored_logs():
    for log, at in corpus().values():
        conformance.run_checks(Tally, log, at, TALLYS)


def test_a_window_that_the_log_does_not_fill_is_no_growth():
    """Many records in one moment: a method with a window of time keeps them until it has passed."""
    record = {"query": "weather", "time": START, "rank": 1, "url": URLS[1], "category": CATEGORIES[0]}
    log = frame_of([{"user": USERS[number % 6]} | record for number in range(24)])
    conformance.run_checks(METHODS.get("z-anonymity"), log, [], [conformance.memory_stays_bounded])
    assert shows(GrowsForEver, log, [])


@settings(max_examples=5 * DRAWN)
@given(log=logs(), at=cuts())
def test_a_plain_table_passes_all_but_what_its_memory_costs(log, at):
    conformance.run_checks(Tally, log, at, TALLYS)
