"""`km` as an operator uses it: protect, verify from the release alone, explain, attack."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest


@pytest.fixture
def released(run):
    made = run("generate", "--users", 300, "--seed", 7, "-o", "log.tsv", "--marketing", "ads.csv", "--quiet")
    assert made.exit_code == 0
    settings = ("-s", "k=5", "-s", "m=3", "-s", "target=clicks", "--marketing", "ads.csv")
    done = run(
        "protect", "log.tsv", "-m", "km", *settings, "-o", "out.tsv", "--truth", "t.parquet", "--explain"
    )
    assert done.exit_code == 0
    return done


def plant(line):
    """Add a row to the release and fix up its hash, as a forger would."""
    release, certificate = Path("out.tsv"), Path("out.tsv.certificate.json")
    release.write_text(release.read_text() + line)
    document = json.loads(certificate.read_text())
    document["release"]["sha256"] = hashlib.sha256(release.read_bytes()).hexdigest()
    certificate.write_text(json.dumps(document))


def test_the_release_alone_shows_that_the_promise_is_kept(run, released):
    done = run("verify", "out.tsv")
    assert done.exit_code == 0
    assert "km: every combination of at most 3 terms of a history is in at least 5 histories" in done.stderr


def test_one_planted_pair_breaks_it(run, released):
    one = Path("out.tsv").read_text().splitlines()[1].split("\t")
    plant("\t".join([one[0], "zanzibar walrus", *one[2:]]) + "\n")
    done = run("verify", "out.tsv")
    assert done.exit_code == 4
    assert "fewer than 5 histories have" in done.stderr
    assert "zanzibar" not in done.stderr


def test_an_explanation_says_why_terms_went(run, released):
    assert "km: deleted by size of combination: 1 " in released.stderr
    assert "km: target: clicks" in released.stderr
    assert "most often deleted" not in released.stderr


@pytest.mark.parametrize("known", [1, 2, 3])
def test_who_knows_up_to_m_terms_finds_nobody_or_k(run, released, known):
    files = ("out.tsv", "--original", "log.tsv", "--truth", "t.parquet")
    chosen = ("-s", "known=terms", "-s", f"queries={known}")
    done = run("attack", *files, "-a", "link-background", *chosen, "--seed", 1, "--json")
    assert done.exit_code == 0
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["bound"], finding["holds"]) == (0.2, True)
    smallest = finding["details"]["candidates"]["smallest"]
    assert smallest is None or smallest >= 5


def test_too_large_a_k_says_what_would_work(run, released):
    done = run("protect", "log.tsv", "-m", "km", "-s", "k=5000", "-o", "never.tsv")
    assert done.exit_code == 2
    assert "only 300 users" in done.stderr
    assert "the largest k at which a term stays is" in done.stderr
    assert not Path("never.tsv").exists()
