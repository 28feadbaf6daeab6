"""The gate: what was not measured does not pass, and a wrong value is refused as such."""

from __future__ import annotations

import pytest

from querycloak.compare.gate import Check, Gate
from querycloak.errors import UsageError
from tests.unit.report.comparisons import made


def faults(candidate, **check):
    return list(Check(**check).faults(candidate))


def test_a_release_that_no_attack_was_run_on_does_not_pass():
    unattacked = made("a", "a", terms=0.5)  # labels are mixed, and no attack has a number
    assert faults(unattacked, max_linked=0.5) == ["no attack of the attacker `any` was measured"]
    assert faults(unattacked, attacks={"link-time": 0.5}) == [
        "link-time has no numbers: there is nothing to link"
    ]
    assert faults(unattacked, bounds=True) == ["no attack was measured, so no bound was tested"]
    assert faults(unattacked) == []


def test_an_attacker_who_was_not_measured_does_not_pass():
    one = made("a", "a", knowing=0.1, labels="one person each", terms=0.5)
    assert faults(one, max_linked=0.5, attacker="knowing") == []
    assert faults(one, max_linked=0.5, attacker="release") == [
        "no attack of the attacker `release` was measured"
    ]


@pytest.mark.parametrize("labels", ["table", "none", "made up", "empty"])
def test_a_release_without_anything_to_link_passes(labels):
    one = made("a", "a", labels=labels, terms=0.5)
    assert faults(one, max_linked=0.0, attacks={"link-time": 0.0}, bounds=True) == []


def test_the_upper_end_counts_only_if_it_is_asked_for():
    one = made("a", "a", knowing=0.10, terms=0.5, repeats=1)
    assert faults(one, max_linked=0.105) == []
    assert faults(one, max_linked=0.105, certain=True) == [
        "link-overlap on=<terms> links 11.00 %, more than 10.50 %"
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("attacks = 0.1", "`attacks` must be a table"),
        ("min_kept = 0.1", "`min_kept` must be a table"),
        ("attacks = {link-repeat = '5 %'}", "`link-repeat` must be a share"),
        ("max_linked = true", "`max_linked` must be a share"),
        ("certain = 'no'", "`certain` must be true or false"),
        ("bounds = 1", "`bounds` must be true or false"),
        ("promises = 'yes'", "`promises` must be true or false"),
        ("candidate = 3", "`candidate` must be a text"),
        ("attacker = ['any']", "`attacker` must be a text"),
    ],
)
def test_a_value_of_another_type_is_refused(tmp_path, line, said):
    (tmp_path / "gate.toml").write_text(f"[[check]]\n{line}\n")
    with pytest.raises(UsageError, match=said):
        Gate.read(tmp_path / "gate.toml")


def test_checks_that_are_no_tables_are_refused(tmp_path):
    (tmp_path / "gate.toml").write_text("check = [1, 2]\n")
    with pytest.raises(UsageError, match="tables and nothing else"):
        Gate.read(tmp_path / "gate.toml")
