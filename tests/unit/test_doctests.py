"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = (
    "querycloak",
    "querycloak.measures.distributions",
    "querycloak.measures.kept",
    "querycloak.measures.marketing",
    "querycloak.topics.distance",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name):
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
