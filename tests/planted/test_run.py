"""The list of planted faults fits the code, and the runner notices when it does not."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.planted.run import ROOT, Fault, Misplanted, chosen, find, judge, main, read

FAULTS = read()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.number))
def test_every_fault_can_be_planted(fault):
    """If you changed the line, change the fault with it, so that it stays the same fault."""
    assert find(fault, ROOT).is_file()
    for test in fault.tests:
        path, _, name = test.partition("[")[0].partition("::")
        text = (ROOT / path).read_text("utf-8")
        for word in name.split("::") if name else ():
            assert re.search(rf"^ *(def|class) {word}\b|^{word} = ", text, re.MULTILINE), test


def fault(**changes):
    made = Fault(1, "about", "src/a.py", "x = 1", "x = 2", ("tests/test_a.py",))
    return dataclasses.replace(made, **changes)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "a.py").write_text("x = 1\n")
    return tmp_path


def test_a_fault_is_found_where_its_code_has_moved_to(tree):
    (tree / "src" / "a.py").rename(tree / "src" / "deep" / "b.py")
    assert find(fault(), tree) == tree / "src" / "deep" / "b.py"


@pytest.mark.parametrize("text", ["x = 1\nx = 1\n", "y = 1\n"])
def test_a_text_that_does_not_occur_exactly_once_is_refused(tree, text):
    (tree / "src" / "a.py").write_text(text)
    with pytest.raises(Misplanted, match="occurs"):
        find(fault(), tree)


def test_outcomes_are_judged_by_what_was_expected():
    survivor = fault(expected="survives today", reason="no test yet")
    assert judge(fault(), 1) == judge(survivor, 0) == ""
    assert judge(fault(), 0) == "not noticed"
    assert "noticed now" in judge(survivor, 1)
    assert "could not run" in judge(fault(), 2)


def test_faults_are_chosen_by_number():
    many = [fault(number=n) for n in range(1, 7)] + [fault(number=7, expected="survives today")]
    assert [one.number for one in chosen(many, [], "3:1", everything=False)] == [1, 4]
    assert [one.number for one in chosen(many, [], "3:1", everything=True)] == [1, 4, 7]
    assert [one.number for one in chosen(many, [], "3:0xf2a7c1", everything=False)] == [2, 5]
    assert 0xF2A7C1 % 3 == 2
    assert [one.number for one in chosen(many, [7, 2], None, everything=False)] == [2, 7]
    with pytest.raises(Misplanted, match="no fault 9"):
        chosen(many, [9], None, everything=False)


def test_a_sample_without_any_fault_runs_no_test(capsys):
    assert main(["--sample", "100000:99999"]) == 0
    assert capsys.readouterr().out == "0 of 0 as expected\n"
