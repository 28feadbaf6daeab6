"""What commands write and print for fixed seeds is as stored; see tests/README.md."""

from __future__ import annotations

import pytest

from tests.golden import adapter, stored
from tests.golden.cases import cases
from tests.golden.desk import Desk

CASES = list(cases())


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    return Desk(tmp_path_factory.mktemp("golden"))


def marked(case):
    marks = [getattr(pytest.mark, case.extra)] if case.extra else []
    return pytest.param(case, id=case.id, marks=[*marks, pytest.mark.timeout(900)])


@pytest.mark.parametrize("case", [marked(case) for case in CASES])
def test_output_is_as_stored(case, desk, monkeypatch):
    adapter.seed_noise(monkeypatch)
    adapter.keep_keys(monkeypatch)
    held = stored.read(case.group)
    assert case.name in held, "not stored: run `python -m tests.golden.update`"
    found = stored.plain(case.make(desk))
    changed = list(stored.differences(case.id, held[case.name], found))
    if changed:
        hint = f"if this is meant: python -m tests.golden.update '{case.id}', with the reason in the commit"
        pytest.fail("\n".join([*changed, hint]), pytrace=False)


def test_nothing_is_stored_that_is_no_longer_made():
    made = {case.id for case in CASES}
    assert {f"{group}/{name}" for group in stored.groups() for name in stored.read(group)} <= made


def test_a_difference_names_the_entry_and_both_values():
    was = {"a": {"b": [1, 2.0], "gone": "x"}, "same": 0.1}
    now = {"a": {"b": [1, 2.5], "new": "y"}, "same": 0.1 + 1e-16}
    assert list(stored.differences("top", was, now)) == [
        "top › a › b › 1: was 2.0, is 2.5",
        'top › a › gone: gone; was "x"',
        'top › a › new: new: "y"',
    ]
