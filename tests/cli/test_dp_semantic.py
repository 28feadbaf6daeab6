"""`dp-semantic` as an operator uses it: protect, verify, spend a budget, find what somebody changed."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from querycloak import formats
from querycloak.text.senses import ConceptMapper, concept_lexicon

ASKED = ("-m", "dp-semantic", "-s", "epsilon=5", "-s", "criterion=sqc2")


@pytest.fixture
def log(run):
    assert run("generate", "--users", 60, "--seed", 7, "-o", "log.tsv", "--quiet").exit_code == 0
    return "log.tsv"


@pytest.fixture
def released(run, log):
    done = run("protect", log, *ASKED, "-o", "out.tsv", "--seed", 3, "--truth", "t.parquet")
    assert done.exit_code == 0, done.stderr
    return done


def certificate():
    return json.loads(Path("out.tsv.certificate.json").read_text())


def change(column, value, place=5):
    """Change a cell of the release and fix up its hash, as a forger would."""
    release, beside = Path("out.tsv"), Path("out.tsv.certificate.json")
    lines = list(csv.reader(release.read_text().splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    lines[place][lines[0].index(column)] = value
    release.write_text("".join("\t".join(line) + "\n" for line in lines))
    document = json.loads(beside.read_text())
    document["release"]["sha256"] = hashlib.sha256(release.read_bytes()).hexdigest()
    beside.write_text(json.dumps(document))


def test_everyone_keeps_the_number_of_mapped_searches(run, log, released):
    """Acceptance 1."""
    asked, shown = formats.read(log).frame, formats.read("out.tsv", required=()).frame
    mapped = ConceptMapper(concept_lexicon()).read(asked["query"]).start
    some = asked.filter(pl.Series(mapped[1:] > mapped[:-1]))
    truth = pl.read_parquet("t.parquet")
    assert Counter(truth["original_user"]) == Counter(some["user"])
    assert sorted(Counter(shown["user"]).values()) == sorted(Counter(some["user"]).values())
    assert f"released {shown.height:,} of {asked.height:,} records" in released.stderr
    assert "[not tested]" in released.stderr


def test_verify_is_content(run, log, released):
    alone = run("verify", "out.tsv")
    assert alone.exit_code == 0
    assert "dp-semantic: every released query consists of words of the domain" in alone.stderr
    assert run("verify", "out.tsv", "--original", log, "--truth", "t.parquet").exit_code == 0


def test_the_certificate_states_scope_and_spending(run, released):
    (part,) = certificate()["methods"]
    assert part["promise"].startswith("5-differential privacy of a history's mapped concepts")
    assert part["facts"]["unit"] == "history"
    assert part["facts"]["epsilon"] == 5.0
    assert part["facts"]["spent_by_anyone_at_most"] is None  # over releases, which no ledger counts
    assert any("none of their phrases is known" in line for line in part["facts"]["outside"])
    text = Path("out.tsv.certificate.json").read_text()
    users = set(formats.read("log.tsv").frame["user"])
    assert not users & {word.strip('",:') for word in text.split()}


TAMPERED = [
    ("Query", "zanzibarwalrus", "every released query consists of words of the domain"),
    ("Query", "dog, zanzibarwalrus", "every released query consists of words of the domain"),
    ("QueryTime", "2006-03-05 10:11:12", "every `time` is that of its original row, truncated to the hour"),
    ("ClickURL", "http://invented.example", "every `url` is empty"),
    ("ItemRank", "3", "every `rank` is empty"),
]


@pytest.mark.parametrize(("column", "value", "check"), TAMPERED)
def test_verify_finds_what_was_changed(run, released, column, value, check):
    change(column, value)
    done = run("verify", "out.tsv", "--json")
    assert done.exit_code == 4
    assert [line["check"] for line in json.loads(done.stdout)["broken"]] == [check]
    assert "zanzibar" not in done.stdout + done.stderr


def test_verify_finds_a_limit_that_was_exceeded(run, log):
    more = ("-s", "max_queries=2", "--seed", 3, "--truth", "t.parquet")
    assert run("protect", log, *ASKED, *more, "-o", "out.tsv").exit_code == 0
    evidence = ("--original", log, "--truth", "t.parquet")
    assert run("verify", "out.tsv", *evidence).exit_code == 0
    change("Query", "dog, cat, bird")
    done = run("verify", "out.tsv", *evidence)
    assert done.exit_code == 4
    assert "no label has more than 2 concepts" in done.stderr


def test_a_second_release_past_the_budget_is_refused(run, log):
    named = ("-s", "budget=8", "--source", "web", "--state", "state")
    first = run("protect", log, *ASKED, *named, "-o", "one.tsv")
    assert first.exit_code == 0
    second = run("protect", log, *ASKED, *named, "-o", "two.tsv")
    assert second.exit_code == 2
    assert "as little as 3 left of their budget of 8, and this release would spend more" in second.stderr
    assert "overspent=drop" in second.stderr
    assert not Path("two.tsv").exists()
    third = run("protect", log, "-m", "dp-semantic", "-s", "epsilon=3", *named, "-o", "three.tsv")
    assert third.exit_code == 0
    left_out = run("protect", log, *ASKED, *named, "-s", "overspent=drop", "-o", "four.tsv", "--explain")
    assert left_out.exit_code == 0
    assert "released 0 of" in left_out.stderr
    assert "the person's budget is spent" in left_out.stderr
    for done in (first, second, third, left_out):
        users = set(formats.read(log).frame["user"])
        assert not users & set(done.stderr.replace(",", " ").split())


def test_the_secret_gives_the_release_again(run, log):
    more = ("--secret-file", "secret", "-o", "out.tsv")
    assert run("protect", log, *ASKED, *more).exit_code == 0
    done = run("verify", "out.tsv", "--original", log, "--secret-file", "secret")
    assert done.exit_code == 0
    assert (
        "the secret gives the same records under the same labels" in done.stderr.partition("not testable")[0]
    )
    change("Query", "dog")
    assert run("verify", "out.tsv", "--original", log, "--secret-file", "secret").exit_code == 4


def test_rebuild_paper_says_that_it_promises_nothing(run, log):
    done = run("protect", log, *ASKED, "-s", "rebuild=paper", "-o", "out.tsv")
    assert done.exit_code == 0
    assert "dp-semantic: no guarantee of privacy: words that the mapping removed are put back" in done.stderr
    assert certificate()["methods"][0]["facts"]["epsilon"] is None


def test_a_second_release_can_be_verified_with_the_secret_or_says_why_not(run, log):
    named = ("--source", "web", "--state", "state", "--secret-file", "secret")
    for name in ("one.tsv", "out.tsv"):
        assert run("protect", log, *ASKED, *named, "-o", name).exit_code == 0
    done = run("verify", "out.tsv", "--original", log, "--secret-file", "secret")
    assert done.exit_code == 0
    assert "cohort" not in done.stderr, "this method has none"


def test_wrong_settings_are_said_so(run, log):
    for setting, words in [
        ("epsilon=0", "epsilon"),
        ("topics=zanzibarwalrus", "no concept of the taxonomy"),
        ("max_queries=none", "max_queries"),
        ("prior=microagg-semantic", "whole histories"),
    ]:
        more = ("-s", "per=query") if "prior" in setting else ()
        done = run("protect", log, "-m", "dp-semantic", "-s", setting, *more, "-o", "out.tsv")
        assert done.exit_code == 2
        assert words in done.stderr
        assert "Traceback" not in done.stderr
        assert not Path("out.tsv").exists()
