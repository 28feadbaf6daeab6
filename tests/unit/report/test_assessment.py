"""The page for an officer: what it says, by which rule, and what it never leaves out."""

from __future__ import annotations

import json

import pytest

from querycloak import certificate as certificates
from querycloak.errors import DataError, UsageError
from querycloak.report import as_html, as_markdown, as_text, evidence, risk
from querycloak.report.assessment import DISCLAIMER, assess_files, assessment
from tests.unit.report.made import certificate, finding, method
from tests.unit.report.test_html import NASTY, Reader

SINGLING_OUT, LINKABILITY, INFERENCE = risk.TESTS


def rated(test, *findings):
    found = risk.assess(test, evidence.checked(list(findings)))
    return found.level, found.exposure


def test_the_three_games_are_the_three_tests():
    pairs = [(test.name, test.game) for test in risk.TESTS]
    assert pairs == [
        ("Singling out", "attribution"),
        ("Linkability", "linkage"),
        ("Inference", "identification"),
    ]


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
        [finding(success=0.3, bound=0.2), finding("lame", success=None, not_applicable="no category")],
        {"retention": {"terms": 0.5}, "tree_emd": {"not_applicable": "no category"}},
    )
    text = as_text.render(made)
    for said in (
        DISCLAIMER,
        "users of a cohort",  # what a setting does, from its declaration
        "at least 5 users",
        "cohort does not protect against:\n  - sessions",
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
        assert " ".join(said.split()) in " ".join(text.split())
    assert text.count(DISCLAIMER) == 2
    for rule in risk.RULE:
        assert rule in text


def test_what_must_not_be_published_says_so_at_the_top():
    made = assessment(certificate(publishable=False, secret="seed"))
    assert "Do not publish" in as_text.render(made).partition("\n\n")[0]
    broken = certificate(method(audit="broken"))
    broken["audit"] = "broken"
    assert "broken promise" in as_text.render(assessment(broken)).partition("\n\n")[0]
    assert "Do not publish" not in as_text.render(assessment(certificate()))


def test_earlier_releases_and_what_is_absent_are_told():
    place = {"head": "ab" * 32, "entry": 3, "earlier_releases_of_source": 2}
    text = as_text.render(assessment(certificate(ledger=place)))
    assert "after 2 earlier releases of the source" in text
    assert "whoever has several can join them" in text
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
    found = Reader(as_html.render(hostile()))
    names = {name for name, _ in found.tags}
    assert "script" not in names
    assert not {"img", "iframe", "object", "link", "form"} & names
    assert all(not key.startswith("on") for _, attrs in found.tags for key in attrs)
    assert [a["href"] for name, a in found.tags if name == "a"] == ["#content"]
    assert "<script>" not in as_markdown.render(hostile())


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
    with pytest.raises(UsageError, match="replace what it is made from"):
        assess_files(tmp_path / "c.json", tmp_path / "f.md", findings=[tmp_path / "f.md"])
