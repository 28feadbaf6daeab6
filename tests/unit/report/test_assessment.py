"""The page for an officer: what it says, by which rule, and what it never leaves out."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from querycloak import certificate as certificates
from querycloak.errors import DataError, UsageError
from querycloak.protector import Labels
from querycloak.report import evidence, risk
from querycloak.report.assessment import DISCLAIMER, assess_files, assessment
from querycloak.report.render import page
from tests.unit.report.made import certificate, finding, method
from tests.unit.report.test_render import NASTY, Reader


def plain(made):
    """What a reader sees of the page."""
    return " ".join(" ".join(Reader(page(made)).data).split())


SINGLING_OUT, LINKABILITY, INFERENCE = risk.TESTS


def rated(test, *findings, labels="mixed"):
    meant = Labels.GROUP if labels == "mixed" else Labels.OWN
    given = [replace(one, labels=meant) for one in evidence.checked(list(findings))]
    found = risk.assess(test, given, labels)
    return found.level, found.exposure


def test_the_games_answer_the_three_tests():
    pairs = [(test.name, test.game) for test in risk.TESTS]
    assert pairs == [
        ("Singling out", "attribution, identification"),
        ("Linkability", "linkage"),
        ("Inference", "inference"),
    ]


def test_a_guessed_concept_is_an_inference_and_singles_nobody_out():
    guessed = finding("bayes-concept", "inference", "concept", success=0.35)
    assert rated(SINGLING_OUT, guessed) == ("unknown", None)
    assert rated(INFERENCE, guessed) == ("high", 0.37)


def test_a_label_that_is_found_singles_out():
    found = finding("link-overlap", "identification", "user", success=0.5)
    assert rated(SINGLING_OUT, found, labels="one person each") == ("high", 0.52)
    assert rated(INFERENCE, found)[0] == "unknown"


def test_labels_of_one_person_each_are_open_by_design_and_not_unknown():
    made = finding(success=0.01)  # attribution is no question here: a label shows what belongs together
    assert rated(SINGLING_OUT, made, labels="one person each") == ("high", None)
    assert rated(LINKABILITY, labels="one person each") == ("high", None)
    assert rated(INFERENCE, labels="one person each") == ("unknown", None)
    text = plain(assessment(certificate(method("rules"))))
    assert "open by design: a label is one person's" in text
    assert "open by design: a label" not in plain(assessment(certificate()))


def test_risk_follows_the_stated_rule():
    assert rated(SINGLING_OUT) == ("unknown", None)
    assert rated(SINGLING_OUT, finding(success=0.03))[0] == "low"
    assert rated(SINGLING_OUT, finding(success=0.04))[0] == "medium"  # its interval ends at 6 %
    assert rated(SINGLING_OUT, finding(success=0.19))[0] == "high"  # ... and at 21 %
    assert rated(SINGLING_OUT, finding(success=0.03), finding(success=0.5))[0] == "high"
    assert rated(SINGLING_OUT, finding(success=0.04, bound=0.01))[0] == "high"  # beaten, though small


def test_pairs_are_compared_with_a_coin():
    def pair(success):
        return finding("link-pairs", "linkage", "pair", success=success, wide=0.0)

    assert rated(LINKABILITY, pair(0.5)) == ("low", 0.0)
    assert rated(LINKABILITY, pair(0.75)) == ("high", 0.5)
    assert rated(LINKABILITY, pair(0.3)) == ("low", 0.0)


def test_other_games_controls_and_attacks_that_did_not_run_do_not_count():
    others = [finding("copy", "control", success=1.0), finding(success=None, not_applicable="no category")]
    assert rated(SINGLING_OUT, *others)[0] == "unknown"
    assert rated(INFERENCE, finding(success=1.0))[0] == "unknown"


def test_the_page_says_all_that_it_has_to():
    made = assessment(
        certificate(method("cohort", k=5, promise="at least 5 users", limits=["sessions"]), method("rules")),
        evidence.checked(
            [finding(success=0.3, bound=0.2), finding("lame", success=None, not_applicable="no category")]
        ),
        {"retention": {"terms": 0.5}, "tree_emd": {"not_applicable": "no category"}},
    )
    text = plain(made)
    for said in (
        DISCLAIMER,
        "users of a cohort",  # what a setting does, from its declaration
        "at least 5 users",
        "cohort does not protect against: sessions",
        "link-repeat 30.0 % 28.0 % … 32.0 % 20.0 % beaten",
        "Not measured. Nothing is known about linkability.",
        "lame: no category",
        "link-repeat beats the stated bound",
        "terms 0.5",
        "not applicable: no category",
        "Purpose: what is the release for",
        "the private part of the certificate",
        "Decision and signature",
    ):
        assert said in text
    assert text.count(DISCLAIMER) == 2
    for rule in risk.RULE:
        assert rule in text


def test_what_must_not_be_published_says_so_at_the_top():
    made = assessment(certificate(publishable=False, secret="seed"))
    assert "Do not publish" in plain(made).partition("1. Description")[0]
    broken = certificate(method(audit="broken"))
    broken["audit"] = "broken"
    assert "a check of the audit failed" in plain(assessment(broken)).partition("1. Description")[0]
    assert "Do not publish" not in plain(assessment(certificate()))


def test_earlier_releases_and_what_is_absent_are_told():
    place = {"head": "ab" * 32, "entry": 3, "earlier_releases_of_source": 2}
    text = plain(assessment(certificate(ledger=place)))
    assert "after 2 earlier releases of the source" in text
    assert "a holder of several can join them" in text
    assert "findings of attacks: give them with" in text


def hostile():
    made = certificate(
        method(NASTY, promise=NASTY, limits=[NASTY], facts={NASTY: NASTY}, **{NASTY: [NASTY]}),
        findings=[finding(NASTY), finding(NASTY, success=None, not_applicable=NASTY)],
        source=NASTY,
    )
    made["release"]["layout"] |= {"kept": [NASTY], "mapping": {NASTY: NASTY}}
    made["lineage"][0] |= {"check": NASTY, "detail": NASTY}
    made["tool"]["version"] = NASTY
    return assessment(made, measures={NASTY: NASTY})


def test_nothing_in_a_certificate_becomes_part_of_the_page():
    found = Reader(page(hostile()))
    names = {name for name, _ in found.tags}
    assert "script" not in names
    assert not {"img", "iframe", "object", "link", "form"} & names
    assert all(not key.startswith("on") for _, attrs in found.tags for key in attrs)
    assert [a["href"] for name, a in found.tags if name == "a"] == ["#content"]
    assert "<script>" not in hostile()


def test_files_in_and_out(tmp_path):
    release = tmp_path / "out.tsv"
    release.write_text("")
    certificates.path_of(release).write_bytes(certificates.to_bytes(certificate()))
    (tmp_path / "one.json").write_text(json.dumps({"findings": [finding(success=0.01)]}))
    (tmp_path / "two.json").write_text(json.dumps([finding("link-pairs", "linkage", "pair", success=0.9)]))
    (tmp_path / "m.json").write_text(json.dumps({"measures": {"release_rate": 0.5}}))
    both = [tmp_path / "one.json", tmp_path / "two.json"]
    found = assess_files(release, tmp_path / "a.html", findings=both, measures=tmp_path / "m.json")
    assert [one["risk"] for one in found["risks"]] == ["low", "high", "unknown"]
    assert "release_rate" in (tmp_path / "a.html").read_text("utf-8")
    assess_files(certificates.path_of(release), tmp_path / "a.md")
    assert (tmp_path / "a.md").read_text("utf-8").startswith("# Impact assessment")


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[" * 100_000,
        "3",
        '{"findings": {}}',
        '{"findings": [3]}',
        '{"findings": [{"attack": "a", "game": "linkage"}]}',
        json.dumps([finding(success=2.0)]),
        json.dumps([finding() | {"success": "<b>"}]),
        json.dumps([finding() | {"high": True}]),
        json.dumps([finding() | {"low": float("nan")}]),
        json.dumps([finding() | {"low": 10**400}]),
    ],
)
def test_findings_that_are_none_are_refused_and_nothing_is_written(tmp_path, content):
    (tmp_path / "c.json").write_bytes(certificates.to_bytes(certificate()))
    (tmp_path / "f.json").write_text(content)
    with pytest.raises(DataError):
        assess_files(tmp_path / "c.json", tmp_path / "a.html", findings=[tmp_path / "f.json"])
    assert not (tmp_path / "a.html").exists()


def test_measures_that_are_none_are_refused_and_sources_never_replaced(tmp_path):
    (tmp_path / "c.json").write_bytes(certificates.to_bytes(certificate()))
    (tmp_path / "m.json").write_text("[]")
    with pytest.raises(DataError, match="measure --json"):
        assess_files(tmp_path / "c.json", tmp_path / "a.html", measures=tmp_path / "m.json")
    with pytest.raises(UsageError, match="no file of findings"):
        assess_files(tmp_path / "c.json", tmp_path / "a.html", findings=[tmp_path / "no.json"])
    (tmp_path / "f.md").write_text("[]")
    with pytest.raises(UsageError, match="would replace an input"):
        assess_files(tmp_path / "c.json", tmp_path / "f.md", findings=[tmp_path / "f.md"])
