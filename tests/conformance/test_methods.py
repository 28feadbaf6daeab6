"""Every registered method passes every check."""

from __future__ import annotations

import pytest
from hypothesis import given

from querycloak.registry import METHODS
from querycloak.testing.conformance import CHECKS, run_check
from querycloak.testing.strategies import cuts, logs


def marked(name):
    extra = METHODS.get(name).extra
    return pytest.param(name, marks=[getattr(pytest.mark, extra)] if extra else [])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", [marked(name) for name in METHODS.names()])
@given(log=logs(), at=cuts())
def test_every_method_conforms(name, check, log, at):
    run_check(check, METHODS.get(name), log, at)


@pytest.mark.parametrize("name", METHODS.names())
def test_every_exemption_names_a_check_and_a_reason(name):
    known = {check.__name__ for check in CHECKS}
    for check, reason in METHODS.get(name).exempt.items():
        assert check in known
        assert len(reason) > 20
