"""Two certificates compared: what counts as weaker, and what nobody can rank."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from querycloak import certificate as certificates
from querycloak.errors import DataError, UsageError
from querycloak.ledger import Ledger
from querycloak.registry import METHODS
from querycloak.report.certificate_diff import diff, diff_files
from querycloak.settings import _strength
from tests.unit.report.made import certificate, checks, finding, method


def told(changes):
    return [(c.about, c.what, c.before, c.after) for c in changes]


def settings(method_name, before, after):
    return diff(certificate(method(method_name, **before)), certificate(method(method_name, **after)))


def test_the_same_certificate_has_no_difference():
    found = diff(certificate(), certificate())
    assert (found.weaker, found.stronger, found.changed) == ([], [], [])
    assert found.same > 5
    assert found.not_weaker


@pytest.mark.parametrize(
    ("name", "setting", "weak", "strong"),
    [
        ("cohort", "k", 5, 10),
        ("cohort", "time", "keep", "coarsen"),
        ("cohort", "time", "coarsen", "drop"),
        ("swap", "labels", "keep", "fresh"),
        ("swap", "guard", "off", 0.5),
        ("swap", "guard", 0.5, 0.1),
        ("km", "m", 1, 2),
        ("km", "window", "day", "none"),
        ("dp-semantic", "epsilon", 8.0, 2),
        ("dp-semantic", "budget", 0, 10.0),
        ("microagg-topic", "closeness", 1.0, 0.2),
        ("microagg-topic", "diversity", 1, 3),
        ("z-anonymity", "window", 3600.0, 60.0),
        ("rules", "names", False, True),
        ("rules", "max_words", 8, 4),
        ("threshold-dp", "output", "log", "counts"),
    ],
)
def test_a_setting_that_protects_less_is_weaker_and_the_other_way_round_stronger(name, setting, weak, strong):
    worse = settings(name, {setting: strong}, {setting: weak})
    better = settings(name, {setting: weak}, {setting: strong})
    assert [(c.about, c.what) for c in worse.weaker] == [(name, setting)]
    assert [(c.about, c.what) for c in better.stronger] == [(name, setting)]
    assert (worse.not_weaker, better.not_weaker) == (False, True)


def test_every_choice_of_a_ranked_setting_is_ranked():
    for name in METHODS.names():
        for f in fields(METHODS.get(name).Settings):
            if f.metadata["stronger"]:
                choices = f.metadata["choices"] or (
                    [True, False] if f.metadata["kind"] is bool else [f.default]
                )
                ranks = [_strength(f, choice) for choice in choices]
                assert None not in ranks, (name, f.name)
                assert len(set(ranks)) == len(ranks), (name, f.name)


@pytest.mark.parametrize("value", [None, "5", [5], {"k": 5}, True, float("nan")])
def test_a_value_that_is_no_number_is_not_ranked(value):
    found = settings("cohort", {"k": 5}, {"k": value})
    assert (found.weaker, found.stronger) == ([], [])
    assert len(found.changed) == 1


def test_a_whole_number_that_no_float_holds_is_ranked():
    assert settings("cohort", {"k": 10**400}, {"k": 5}).weaker


def test_a_setting_that_cannot_be_ranked_is_changed_only():
    found = settings("cohort", {"assign": "arrival"}, {"assign": "similar"})
    assert found.not_weaker
    assert told(found.changed) == [("cohort", "assign", "arrival", "similar")]


def test_a_promise_that_is_gone_is_weaker_and_a_new_one_stronger():
    found = diff(certificate(method("rules"), method("cohort")), certificate(method("cohort"), method("km")))
    assert [(c.about, c.note) for c in found.weaker] == [("rules", "this promise is lost")]
    assert [(c.about, c.note) for c in found.stronger] == [("km", "this promise is new")]


def test_a_method_that_runs_twice_is_compared_with_itself_in_its_place():
    before = certificate(method("rules", max_words=8), method("rules", max_words=4))
    after = certificate(method("rules", max_words=8), method("rules", max_words=6))
    assert told(diff(before, after).weaker) == [("rules 2", "max_words", "4", "6")]


def test_a_larger_stated_epsilon_is_weaker_and_told_once():
    before = certificate(method("threshold-dp", facts={"epsilon": 1.0, "delta": 1e-6}))
    after = certificate(method("threshold-dp", facts={"epsilon": 2.0, "delta": 1e-6}))
    assert told(diff(before, after).weaker) == [("threshold-dp", "stated epsilon", "1", "2")]
    same = [certificate(method("dp-histogram", epsilon=e, facts={"epsilon": e})) for e in (1.0, 2.0)]
    assert told(diff(*same).weaker) == [("dp-histogram", "epsilon", "1", "2")]


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("kept", "broken", "weaker"),
        ("kept", "not checkable", "weaker"),
        ("broken", "kept", "stronger"),
        ("not checkable", "not applicable", "changed"),
    ],
)
def test_audits_are_compared_check_by_check(before, after, where):
    found = diff(certificate(method(audit=before)), certificate(method(audit=after)))
    assert [c.what for c in getattr(found, where)] == ["check: everyone is in a group"]


def test_a_check_with_another_number_is_the_same_check():
    before, after = certificate(), certificate()
    before["lineage"] = checks(each_asked_by_5_people="kept")
    after["lineage"] = checks(each_asked_by_10_people="kept")
    assert diff(before, after).changed == []
    after["lineage"] = []
    assert [c.note for c in diff(before, after).weaker] == ["no longer checked"]


def test_a_limit_that_is_newly_stated_is_a_change_not_a_weakness():
    found = diff(certificate(method(limits=["text"])), certificate(method(limits=["text", "sessions"])))
    assert told(found.changed) == [("cohort", "does not protect against", "–", "sessions")]
    assert found.not_weaker


def test_an_attack_is_worse_only_when_intervals_do_not_overlap():
    def of(success, **more):
        return certificate(findings=[finding(success=success, **more)])

    assert told(diff(of(0.10), of(0.20)).weaker)[0][1] == "success"
    assert told(diff(of(0.20), of(0.10)).stronger)[0][1] == "success"
    near = diff(of(0.10), of(0.13))
    assert near.not_weaker
    assert [c.note for c in near.changed] == ["the intervals overlap: it may be chance"]
    assert diff(of(0.10), of(0.10)).changed == []


def test_a_control_is_never_worse():
    pair = [certificate(findings=[finding("guess", "control", success=s)]) for s in (0.1, 0.9)]
    assert diff(*pair).not_weaker


def test_a_bound_that_is_now_beaten_is_weaker_whatever_the_file_claims():
    before = certificate(findings=[finding(success=0.10, bound=0.10, holds=True)])
    after = certificate(findings=[finding(success=0.125, bound=0.10, holds=True)])
    assert [c.note for c in diff(before, after).weaker] == ["now beaten"]


def test_attacks_that_were_run_once_only_are_told():
    found = diff(certificate(findings=[finding("a")]), certificate(findings=[finding("b")]))
    assert [c.note for c in found.changed] == ["not run any more", "not run before"]
    beaten = certificate(findings=[finding("b", success=0.5, bound=0.1)])
    assert [c.note for c in diff(certificate(), beaten).weaker] == ["not run before"]
    twice = certificate(findings=[finding("a"), finding("a", success=0.5)])
    assert len(diff(twice, certificate()).changed) == 2


def test_a_release_that_may_not_be_published_is_weaker():
    after = certificate(publishable=False, reproducible=True, secret="seed")
    found = diff(certificate(), after)
    assert told(found.weaker) == [("release", "publishable", "yes", "no")]
    assert {c.what for c in found.changed} == {"reproducible", "secret"}


def test_a_column_more_that_passes_as_it_is_is_weaker_and_a_lost_signature_too():
    before, after = certificate(), certificate()
    after["release"]["layout"]["kept"] = ["session"]
    before["signature"] = {"algorithm": "ed25519", "public_key": "k", "value": "v"}
    assert {c.what for c in diff(before, after).weaker} == {"columns kept as they are", "signature"}


def test_releases_of_one_source_follow_each_other():
    def place(entry, earlier):
        return {"head": "cd" * 32, "entry": entry, "earlier_releases_of_source": earlier}

    def relation(first, second, **more):
        return " ".join(diff(certificate(ledger=first), certificate(ledger=second, **more)).relation)

    assert "follows the first" in relation(place(1, 0), place(2, 1))
    assert "with 1 between them" in relation(place(1, 0), place(5, 2))
    assert "before the first" in relation(place(2, 1), place(1, 0))
    assert "different sources" in relation(place(1, 0), place(2, 0), source="shop")
    assert "names no source" in relation(None, None, source=None)


def test_heads_are_looked_up_in_the_ledger(tmp_path):
    ledger = Ledger(tmp_path / "state")
    entries = [ledger.append({"source": "web"}) for _ in range(2)]
    places = [
        {"head": e["hash"], "entry": e["number"], "earlier_releases_of_source": e["number"] - 1}
        for e in entries
    ]
    both = [certificate(ledger=place) for place in places]
    found = diff(*both, state=tmp_path / "state")
    assert sum("whose chain is whole" in line for line in found.relation) == 2
    both[1]["ledger"]["head"] = "ef" * 32
    wrong = diff(*both, state=tmp_path / "state")
    assert [c.note for c in wrong.weaker] == ["not in the named ledger"]
    (tmp_path / "state/ledger.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match="ledger"):
        diff(*both, state=tmp_path / "state")


def test_looking_for_a_ledger_makes_no_folder(tmp_path):
    found = diff(certificate(), certificate(), state=tmp_path / "nowhere")
    assert "there is no ledger in the named folder" in found.relation
    assert not (tmp_path / "nowhere").exists()


def test_nothing_in_a_certificate_can_move_the_terminal():
    nasty = "a\x1b[2Jb\u202ec\nd"
    found = diff(certificate(method("x", promise=nasty, **{nasty: nasty})), certificate())
    text = json.dumps(found.as_dict(), ensure_ascii=False)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_files_that_are_no_certificates_are_refused_in_words(tmp_path):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_bytes(certificates.to_bytes(certificate()))
    assert diff_files(good, good).not_weaker
    with pytest.raises(UsageError, match=r"no certificate `missing"):
        diff_files(good, tmp_path / "missing.json")
    for content, words in (
        ("{", "not JSON"),
        ("[" * 100_000, "nested too deeply|not JSON"),
        ("[]", "does not fit its schema"),
        (json.dumps(certificate() | {"schema": "querycloak/certificate/7"}), "version 7 of the schema"),
        (json.dumps(certificate() | {"schema": "\x1b[2J/x"}), "does not fit its schema"),
        ("\udcff", "not JSON"),
    ):
        bad.write_bytes(content.encode("utf-8", "surrogateescape"))
        with pytest.raises(DataError, match=words):
            diff_files(good, bad)


def test_findings_may_come_from_files_of_their_own(tmp_path):
    one = tmp_path / "one.json"
    one.write_bytes(certificates.to_bytes(certificate()))
    for name, success in (("a", 0.1), ("b", 0.3)):
        (tmp_path / name).write_text(json.dumps({"findings": [finding(success=success)]}))
    found = diff_files(one, one, findings=(tmp_path / "a", tmp_path / "b"))
    assert [c.what for c in found.weaker] == ["success"]
