"""Microaggregation as an operator uses it: protect, verify from the release alone, attack."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from querycloak import formats
from tests.cli.forging import broken, lines, write

METHODS = ("microagg-semantic", "microagg-topic", "microagg-syntactic", "microagg-plain")
SHARED = "each released history, all columns, is shared by at least 5 labels"


@pytest.fixture
def log(run):
    made = run("generate", "--users", 60, "--seed", 7, "--categories", "-o", "log.tsv", "--quiet")
    assert made.exit_code == 0, made.stderr
    return "log.tsv"


@pytest.fixture
def protect(run, log):
    def call(method, *more):
        done = run("protect", log, *(("-m", method) if method else ()), "-s", "k=5", *more, "-o", "out.tsv",
                   "--truth", "t.parquet")  # fmt: skip
        assert done.exit_code == 0, done.stderr
        return done

    return call


def change(column, value, place=5):
    rows = lines()
    rows[place][rows[0].index(column)] = value
    write(rows)


@pytest.mark.parametrize("method", METHODS)
def test_the_release_alone_shows_that_the_promise_is_kept(run, log, protect, method):
    """Acceptance 1."""
    done = protect(method)
    assert (
        f"{method}: each released history, in all columns, is shared by at least 5 users [passed]"
        in done.stderr
    )
    alone = run("verify", "out.tsv")
    assert alone.exit_code == 0
    assert f"{method}: {SHARED}" in alone.stderr
    whole = run("verify", "out.tsv", "--original", log, "--truth", "t.parquet")
    assert whole.exit_code == 0
    assert "these labels stand for at least 5 users" in whole.stderr.partition("not testable")[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("column", "value"),
    [("query", "zanzibar walrus"), ("time", "2006-03-05 10:00:00"), ("url", "http://a.example"),
     ("rank", "3"), ("category", "Sports"), ("user", "zanzibar")],
)  # fmt: skip
def test_one_changed_cell_breaks_it(run, protect, method, column, value):
    protect(method)
    change(column, value)
    done = run("verify", "out.tsv", "--json")
    assert done.exit_code == 4
    assert SHARED in broken(done)
    assert "zanzibar" not in done.stdout + done.stderr


@pytest.mark.parametrize("method", METHODS)
def test_one_row_more_or_less_breaks_it(run, protect, method):
    protect(method)
    rows = lines()
    for forged in (rows[:7] + rows[8:], [*rows, rows[7]]):
        write(forged)
        done = run("verify", "out.tsv", "--json")
        assert done.exit_code == 4
        assert SHARED in broken(done)
    write(rows)
    assert run("verify", "out.tsv").exit_code == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_change_that_nobody_fixed_up_is_found_too(run, protect, method):
    protect(method)
    Path("out.tsv").write_text(Path("out.tsv").read_text().replace("2006", "2007"))
    assert run("verify", "out.tsv").exit_code == 4


@pytest.mark.parametrize("method", METHODS)
def test_topics_are_verified_from_the_release_alone(run, protect, method):
    protect(method, "-s", "diversity=4", "-s", "closeness=0.4")
    done = run("verify", "out.tsv")
    assert done.exit_code == 0
    kept = done.stderr.partition("not testable")[0]
    assert "each history has at least 4 topics" in kept
    assert "each history's topics are within 0.4 of all" in kept


def test_a_whole_group_with_one_topic_is_found(run, protect):
    """All histories are forged alike, so that only the audits of topics can notice."""
    protect("microagg-semantic", "-s", "diversity=4", "-s", "closeness=0.4")
    rows = lines()
    place = rows[0].index("category")
    write([rows[0], *([*row[:place], "Sports", *row[place + 1 :]] for row in rows[1:])])
    assert broken(run("verify", "out.tsv", "--json")) == ["each history has at least 4 topics"]
    user = rows[0].index("user")
    labels = sorted({row[user] for row in rows[1:]})
    one = [[*row[:user], "X", *row[user + 1 :]] for row in rows[1:] if row[user] == labels[0]]
    far = [[*row[:place], "Sports", *row[place + 1 :]] for row in one]
    four = [
        [*row[:place], name, *row[place + 1 :]] for row in one for name in ("Arts", "Health", "News", "Home")
    ]
    forged = [
        [*row[:user], f"{kind}{n}", *row[user + 1 :]]
        for kind, history in (("far", [*far * 40, *four[:4]]), ("near", four * 20))
        for n in range(5)
        for row in history
    ]
    write([rows[0], *forged])
    assert broken(run("verify", "out.tsv", "--json")) == ["each history's topics are within 0.4 of all"]


def test_people_who_are_one_person_are_found_with_the_truth(run, log, protect):
    protect("microagg-plain")
    truth = pl.read_parquet("t.parquet")
    one = truth["original_user"][0]
    truth.with_columns(original_user=pl.lit(one)).write_parquet("t.parquet")
    done = run("verify", "out.tsv", "--original", log, "--truth", "t.parquet", "--json")
    assert done.exit_code == 4
    assert "these labels stand for at least 5 users" in broken(done)


@pytest.mark.parametrize("method", METHODS)
def test_too_large_a_k_is_refused(run, log, method):
    done = run("protect", log, "-m", method, "-s", "k=61", "-o", "never.tsv")
    assert done.exit_code == 2
    assert "only 60 users" in done.stderr
    assert "the largest possible k is 60" in done.stderr
    assert not Path("never.tsv").exists()


@pytest.mark.parametrize("method", METHODS)
def test_the_secret_gives_the_release_again(run, log, protect, method):
    protect(method, "--secret-file", "secret")
    done = run("verify", "out.tsv", "--original", log, "--secret-file", "secret")
    assert done.exit_code == 0
    same = "the secret gives the same records under the same labels"
    assert same in done.stderr.partition("not testable")[0]
    rows = lines()
    query = rows[0].index("query")
    write([rows[0], *([*row[:query], "dog", *row[query + 1 :]] for row in rows[1:])])
    assert run("verify", "out.tsv").exit_code == 0, "alone, histories that are all alike are fine"
    assert run("verify", "out.tsv", "--original", log, "--secret-file", "secret").exit_code == 4


def test_rules_first(run, log, protect):
    protect(None, "-m", "rules", "-m", "microagg-semantic")
    assert run("verify", "out.tsv", "--original", log, "--truth", "t.parquet").exit_code == 0


@pytest.mark.parametrize("method", METHODS)
def test_attacks_find_one_in_k_or_say_that_there_is_nothing(run, log, protect, method):
    protect(method)
    done = run("attack", "out.tsv", "--original", log, "--truth", "t.parquet", "--seed", 1, "--json")
    assert done.exit_code == 0, done.stderr
    found = {finding["attack"]: finding for finding in json.loads(done.stdout)["findings"]}
    for finding in found.values():
        if finding["game"] == "attribution":
            assert finding["not_applicable"]
    assert found["link-overlap"]["success"] <= 0.2


def test_the_certificate_names_nobody(run, log, protect):
    protect("microagg-semantic", "-s", "labels=fresh")
    text = Path("out.tsv.certificate.json").read_text()
    users = set(formats.read(log).frame["user"])
    assert not users & {word.strip('",:') for word in text.split()}
    assert not users & {row[0] for row in lines()}
