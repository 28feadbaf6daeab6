"""The study of paper 001 measures what it says."""

from __future__ import annotations

import pytest
from papers.p001.results import COLUMNS
from papers.p001.run import Plan, Study


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(users=200)


@pytest.mark.parametrize("target", ["logsize", "random", "clicks"])
def test_a_setting_keeps_a_part_of_each_column_and_its_audit_holds(study, target):
    line = study.measure(Plan(target, 2, 2))
    assert line["holds"] is True
    assert set(line["kept"]) == set(COLUMNS)
    assert all(0 < kept < 100 for kept in line["kept"].values())


def test_more_is_deleted_for_a_larger_k(study):
    kept = [study.measure(Plan("logsize", k, 2))["kept"]["logsize"] for k in (2, 10)]
    assert kept[0] > kept[1]


def test_the_first_line_describes_the_log(study):
    about = study.about()
    assert 0 < about["users"] <= 200
    assert about["occurrences"] >= about["user_terms"] > about["terms"]
    assert len(about["correlations"]) == 15
