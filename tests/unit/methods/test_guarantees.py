"""Every sentence of a guarantee names the checks that test it, and a certificate has a verdict for each."""

from __future__ import annotations

import pytest

import querycloak as qc
from querycloak import certificate, registry
from querycloak.engines.audit import cell_rules, not_audited
from querycloak.engines.pipeline import Stage
from querycloak.guarantee import Audit, Finding, Guarantee, NotCheckable, Sentence
from querycloak.log import CANONICAL
from tests.support.logs import made_up

CASES = [
    (name, settings)
    for name in registry.METHODS.names()
    for settings in registry.METHODS.get(name).examples()
]


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_every_sentence_names_its_checks(name, settings):
    promise, rules = Stage(name, settings).promise(), cell_rules([Stage(name, settings)])
    assert promise.statement == "; ".join(one.text for one in promise.sentences)
    for one in promise.sentences:
        assert one.audits or one.columns, one.text
        assert set(one.audits) <= set(promise.audits)
        assert set(one.columns) <= set(CANONICAL)
        assert not set(one.columns) & set(rules.written), "the method sets these cells itself"
    tested = {audit.check for one in promise.sentences for audit in one.audits}
    assert {audit.check for audit in promise.audits} == tested, "a check of no sentence"


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_settings_that_empty_or_coarsen_a_column_state_it(name, settings):
    """A sentence about cells is tested by their check, so the words of that check must be about the same."""
    traits, rules = Stage(name, settings).traits, cell_rules([Stage(name, settings)])
    for one in Stage(name, settings).promise().sentences:
        for column in one.columns:
            if "empty" in one.text and column in traits.empties:
                assert rules.check(column) == f"every `{column}` is empty"
            if "truncated" in one.text and column == "time" and column not in traits.empties:
                assert "truncated" in rules.check(column)


def finding(check, verdict):
    return Finding(check, verdict, "")


def part_of(*sentences, checks):
    promise = Guarantee.of(*sentences, limits=())
    names = {
        one.text: [a.check for a in one.audits] + [f"cells of {c}" for c in one.columns] for one in sentences
    }
    return certificate.method_part("toy", {}, promise, names, checks)


def test_a_check_that_was_not_made_is_not_hidden_behind_one_that_passed():
    one, other = (Audit(name, lambda e: "") for name in ("a", "b"))
    part = part_of(
        Sentence("x", (one,)),
        Sentence("y", (one, other)),
        checks=[finding("a", "kept"), finding("b", "not checkable")],
    )
    judged = certificate.judged(part, [])
    assert [line["audit"] for line in judged["sentences"]] == ["kept", "not checkable"]
    assert judged["audit"] == "not checkable"


@pytest.mark.parametrize("verdict", ["kept", "broken", "not checkable", "not applicable"])
def test_the_cells_of_a_column_decide_a_sentence_about_it(verdict):
    part = part_of(Sentence("x", (), ("user",)), checks=[])
    judged = certificate.judged(part, [finding("cells of user", verdict)])
    assert judged["audit"] == judged["sentences"][0]["audit"] == verdict


def test_cells_that_were_not_audited_are_not_tested():
    assert (
        certificate.judged(part_of(Sentence("x", (), ("user",)), checks=[]), [])["audit"] == "not checkable"
    )


@pytest.mark.parametrize("name", ["cohort", "frequent-only", "short-sessions"])
def test_methods_that_were_not_audited_are_not_tested(name):
    (part,) = not_audited([Stage(name, registry.METHODS.get(name).Settings())]).methods
    assert part["sentences"]
    assert {part["audit"], *(one["audit"] for one in part["sentences"])} == {"not checkable"}


def test_a_guarantee_without_sentences_is_one_sentence_that_all_audits_test():
    audits = tuple(Audit(name, lambda e: "") for name in "ab")
    assert Guarantee("x", (), audits).sentences == (Sentence("x", audits),)


def test_protect_states_what_was_not_tested(tmp_path):
    release = qc.protect(made_up(60, seed=2), "dp-semantic", epsilon=5.0, seed=1)
    (part,) = release.certificate["methods"]
    assert release.certificate["audit"] == part["audit"] == "not checkable"
    privacy, columns = part["sentences"]
    assert "differential privacy" in privacy["text"]
    assert (privacy["audit"], columns["audit"]) == ("not checkable", "kept")


def test_an_audit_that_cannot_decide_raises_what_its_finding_states():
    def undecided(evidence):
        raise NotCheckable("why")

    class Nothing:
        table, part, original, truth = False, None, None, None

    assert Audit("a", undecided)(Nothing()) == Finding("a", "not checkable", "why")
