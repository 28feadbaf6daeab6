"""Every method keeps across releases what its traits declare."""

from __future__ import annotations

import pytest

from querycloak.dictionary import Dictionaries
from querycloak.registry import METHODS


@pytest.mark.parametrize("name", METHODS.names())
def test_stored_state_is_there_if_and_only_if_it_is_declared(name):
    method = METHODS.get(name)
    for settings in method.examples():
        declared = method.traits(settings).stored_state
        state = method(settings, b"k" * 32, Dictionaries()).source_state
        assert (state and state.name) == (declared and declared.name)
