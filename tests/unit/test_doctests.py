"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = (
    "querycloak",
    "querycloak.measures.counts",
    "querycloak.measures.delay",
    "querycloak.measures.histories",
    "querycloak.measures.partitions",
    "querycloak.text.distance",
    "querycloak.text.normalise",
    "querycloak.text.senses",
    "querycloak.text.urls",
    "tests.reference.plain_measures",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name):
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
