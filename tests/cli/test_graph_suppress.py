"""`graph-suppress` as an operator uses it: protect, verify from the release alone, catch a forger."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.forging import broken, lines, write

SHARED = "no two released queries led to the same URL"
LOG = ("log.tsv", "--truth", "t.parquet")
USER, QUERY, URL = 0, 1, 4  # columns of an AOL log


@pytest.fixture
def protect(run):
    assert run("generate", "--users", 150, "--seed", 7, "-o", "log.tsv", "--quiet").exit_code == 0

    def call(*more):
        done = run(
            "protect", "log.tsv", "-m", "graph-suppress", *more, "-o", "out.tsv", "--truth", "t.parquet"
        )
        assert done.exit_code == 0, done.stderr
        return done

    return call


def clicks(rows):
    """Give one row with a click of each query."""
    return list({row[QUERY]: row for row in rows[1:] if row[URL:] and row[URL]}.values())


def test_the_release_alone_shows_that_the_promise_is_kept(run, protect):
    done = protect("-s", "k=2", "-s", "sites=1", "--explain")
    assert (
        f"graph-suppress: {SHARED} (density zero); each released query led to at least 2 URLs" in done.stderr
    )
    assert "graph-suppress: different queries: " in done.stderr
    assert "graph-suppress: removed of these: the query led to too few URLs " in done.stderr
    alone = run("verify", "out.tsv")
    assert alone.exit_code == 0
    kept = alone.stderr.partition("not testable")[0]
    led = "each released query led to at least"
    for check in (
        SHARED,
        f"{led} 2 URLs",
        f"{led} 1 site",
        "no released query names the page that was clicked on",
    ):
        assert f"graph-suppress: {check}\n" in kept
    whole = run("verify", "out.tsv", "--original", *LOG)
    assert whole.exit_code == 0
    assert "each released query has all of its rows" in whole.stderr.partition("not testable")[0]


@pytest.mark.parametrize("density", ["greedy", "all"])
def test_a_planted_common_url_breaks_it(run, protect, density):
    protect("-s", "k=1", "-s", "sites=0", "-s", f"density={density}")
    rows = lines()
    one, other = clicks(rows)[:2]
    write([*rows, [*other[:URL], one[URL]]])
    done = run("verify", "out.tsv", "--json")
    assert done.exit_code == 4
    assert broken(done) == [SHARED]
    assert one[URL] not in done.stdout + done.stderr
    write(rows)
    assert run("verify", "out.tsv").exit_code == 0


def test_every_other_step_is_verified_too(run, protect):
    protect("-s", "k=2", "-s", "targeted=name", "-s", "sites=2", "-s", "density=off")
    rows = lines()
    user, _, time, *_ = rows[1]
    words = {"URLs", "sites", "names"}
    for url, query, expected in (
        ("http://www.zanzibar.example/walrus", "zanzibar", {"URLs", "sites", "names"}),
        ("http://www.zanzibar.example/walrus", "tea", {"URLs", "sites"}),
        ("", "tea", {"URLs", "sites"}),
    ):
        write([*rows, [user, query, time, "1" if url else "", url]])
        done = run("verify", "out.tsv", "--json")
        assert done.exit_code == 4
        assert words & {word for check in broken(done) for word in check.split()} == expected
        assert "zanzibar" not in done.stdout + done.stderr


def test_a_change_that_nobody_fixed_up_is_found_too(run, protect):
    protect()
    Path("out.tsv").write_text(Path("out.tsv").read_text().replace("2006", "2007"))
    assert run("verify", "out.tsv").exit_code == 4


def test_rows_that_were_taken_out_are_found_with_the_truth(run, protect):
    protect("-s", "k=0", "-s", "sites=0")
    rows = lines()
    asked = [row[QUERY] for row in rows]
    repeated = next(place for place, query in enumerate(asked) if asked.count(query) > 1)
    write(rows[:repeated] + rows[repeated + 1 :])
    assert run("verify", "out.tsv").exit_code == 0, "alone, nobody can know"
    done = run("verify", "out.tsv", "--original", *LOG, "--json")
    assert done.exit_code == 4
    assert "each released query has all of its rows" in broken(done)


def test_the_secret_gives_the_release_again(run, protect):
    protect("--secret-file", "secret")
    done = run("verify", "out.tsv", "--original", "log.tsv", "--secret-file", "secret")
    assert done.exit_code == 0
    assert "the secret gives the same records" in done.stderr.partition("not testable")[0]


def test_a_log_without_urls_is_refused(run):
    Path("log.csv").write_text("user,query\nu,rain\n")
    done = run("protect", "log.csv", "-m", "graph-suppress", "-o", "never.csv")
    assert done.exit_code == 3
    assert "`graph-suppress` needs the column `url`" in done.stderr
    assert "--map url=COLUMN" in done.stderr
    assert not Path("never.csv").exists()


def test_the_certificate_names_nobody(run, protect):
    protect("-s", "labels=fresh")
    rows = lines()
    text = Path("out.tsv.certificate.json").read_text()
    assert clicks(rows)
    assert not any(row[place] in text for row in clicks(rows) for place in (USER, URL))


def test_a_later_method_that_changes_urls_is_refused(run):
    assert run("generate", "--users", 30, "--seed", 7, "-o", "log.tsv", "--quiet").exit_code == 0
    done = run("protect", "log.tsv", "-m", "graph-suppress", "-m", "microagg-syntactic", "-o", "out.tsv")
    assert done.exit_code == 2
    assert "`microagg-syntactic` changes the column `url`" in done.stderr
    kept = ("-m", "graph-suppress", "-s", "graph-suppress.k=0", "-m", "microagg-plain")
    after = run("protect", "log.tsv", *kept, "-s", "microagg-plain.k=2", "-o", "out.tsv")
    assert after.exit_code == 0, after.stderr
