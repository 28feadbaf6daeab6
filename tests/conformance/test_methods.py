"""Every registered method passes every check, on stored logs and on drawn ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from querycloak.registry import METHODS
from querycloak.testing.conformance import CHECKS, run_checks
from querycloak.testing.strategies import cuts, logs
from tests.conformance.corpus import corpus

#: The stored logs hold the power. At night (`QUERYCLOAK_HYPOTHESIS=deep`) 80 are drawn for each settings,
#: some 250 for a method; 250 for each settings took an hour.
DRAWN = 8 if settings.default.max_examples < 100 else 80


def tried():
    """Yield each method with each of its example settings."""
    for name in METHODS.names():
        method = METHODS.get(name)
        marks = [getattr(pytest.mark, method.extra)] if method.extra else []
        for place, example in enumerate(method.examples()):
            yield pytest.param(name, example, id=f"{name}-{place}", marks=marks)


TRIED = list(tried())


@pytest.mark.parametrize(("name", "example"), TRIED)
def test_every_method_conforms_on_stored_logs(name, example):
    failed = []
    for stored, (log, at) in corpus().items():
        try:
            run_checks(METHODS.get(name), log, at, examples=[example])
        except ExceptionGroup as group:
            group.add_note(f"on the stored log `{stored}`")
            failed.append(group)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {len(corpus())} logs", failed)


@pytest.mark.parametrize(("name", "example"), TRIED)
@settings(max_examples=DRAWN)
@given(log=logs(min_size=8), at=cuts())
def test_every_method_conforms_on_drawn_logs(name, example, log, at):
    run_checks(METHODS.get(name), log, at, examples=[example])


@pytest.mark.parametrize("name", METHODS.names())
def test_every_exemption_names_a_check_and_a_reason(name):
    known = {check.__name__ for check in CHECKS}
    for check, reason in METHODS.get(name).exempt.items():
        assert check in known
        assert len(reason) > 20
