"""`querycloak verify --diff A B`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def two(run):
    """Two releases of one log; the second has a smaller k."""
    return releases(run, users=150)


def releases(run, users):
    run("generate", "--users", users, "--seed", 7, "-o", "log.tsv", "--quiet")
    for name, k in (("a", 5), ("b", 3)):
        options = ("--source", "web", "--state", "state", "--truth", f"{name}.parquet", "--quiet")
        done = run("protect", "log.tsv", "-m", "frequent-only", "-s", f"k={k}", "-o", f"{name}.tsv", *options)
        assert done.exit_code == 0, done.output
    return run


def test_a_smaller_k_is_weaker_and_exit_status_4(two):
    done = two("verify", "--diff", "a.tsv", "b.tsv.certificate.json", "--state", "state")
    assert done.exit_code == 4
    assert "weaker:\n  frequent-only: k: 5 → 3\nstronger: nothing\n" in done.stdout
    assert "the second one follows the first" in done.stdout
    assert done.stdout.count("whose chain is whole") == 2


def test_the_other_way_round_is_stronger_and_exit_status_0(two):
    done = two("verify", "--diff", "b.tsv", "a.tsv", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["not_weaker"] is True
    assert [change["what"] for change in found["stronger"]] == ["k"]


def test_findings_beside_are_compared_and_nobody_is_named(run):
    two = releases(run, users=40)  # the first release is empty, so no attack applies to it
    for name in "ab":
        words = ("--original", "log.tsv", "--truth", f"{name}.parquet", "--json", "-a", "guess")
        Path(f"{name}.json").write_text(two("attack", f"{name}.tsv", *words).stdout)
    done = two("verify", "--diff", "a.tsv", "b.tsv", "--findings", "a.json", "b.json")
    assert "guess (control, by record): success" in done.output
    rows = [line.split("\t") for line in Path("log.tsv").read_text().splitlines()[1:]]
    assert not [query for _, query, *_ in rows if len(query) > 12 and query in done.output]


def test_quiet_says_nothing(two):
    done = two("verify", "--diff", "a.tsv", "b.tsv", "--quiet")
    assert (done.exit_code, done.output) == (4, "")


@pytest.mark.parametrize(
    "words",
    [
        ("verify",),
        ("verify", "--diff", "a"),
        ("verify", "--diff", "a", "b", "c"),
        ("verify", "--diff", "a", "b", "--original", "c"),
        ("verify", "--diff", "a", "b", "--map", "user=who"),
        ("verify", "a", "--findings", "b", "c"),
        ("verify", "a", "--state", "b"),
        ("verify", "--diff", "missing-a", "missing-b"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(run, words):
    done = run(*words)
    assert done.exit_code == 2
    assert "rror" in done.output


def test_a_broken_certificate_is_exit_status_3(run):
    Path("a.json").write_text("{")
    done = run("verify", "--diff", "a.json", "a.json")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "the certificate is not JSON" in done.output
