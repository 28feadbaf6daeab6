"""`querycloak crowd simulate`, and the attack on what it writes."""

from __future__ import annotations

import itertools
import json
import stat
from pathlib import Path

import polars as pl
import pytest

from querycloak import formats


@pytest.fixture
def log(run):
    assert run("generate", "--users", 60, "--seed", 7, "-o", "log.tsv", "--quiet").exit_code == 0
    return "log.tsv"


def simulated(run, *more):
    done = run("crowd", "simulate", *more, "--seed", 1, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_tables_columns_are_there(run):
    """Acceptance 1, smaller."""
    found = simulated(run, "--users", 1000, "--queries", 50_000, "--selfish", 0.1)
    assert 2 < found["hops"] < 4
    assert found["response_ms"] == pytest.approx(2 * 530 * found["hops"] + 400)
    assert {"honest", "selfish", "by_friends", "tenths"} <= set(found["exposed"])
    assert {"average", "deviation", "ideal"} <= set(found["position"]["3"])
    assert found["exposed"]["selfish"]["60"] > 99
    assert 0 < found["engine"]["linked"]["success"] < 1
    assert "predecessor" not in found


def test_what_it_says_is_for_people(run):
    done = run("crowd", "simulate", "--users", 500, "--queries", 5000, "--colluding", 0.1, "--seed", 1)
    assert done.exit_code == 0
    assert done.stdout == ""
    for words in ("500 users, 5,000 queries", "hops:", "exposed", "the engine finds", "colluding members"):
        assert words in done.stderr


def test_a_log_s_people_and_friendships_from_a_file(run, log):
    users = formats.read(log).frame["user"].unique(maintain_order=True).to_list()
    Path("edges.txt").write_text("".join(f"m{i} m{(i + step) % 60}\n" for i in range(60) for step in (1, 7)))
    found = simulated(run, "--log", log, "--edges", "edges.txt")
    assert found["users"] == len(users) == 60
    assert found["queries"] == len(formats.read(log).frame)
    assert set(found["position"]) == {"4"}


def chain(run, log, names):
    """Simulate a chain of these users; return for each query of the log its author and its submitter."""
    Path("chain.txt").write_text("".join(f"{a} {b}\n" for a, b in itertools.pairwise(names)))
    simulated(run, "--log", log, "--edges", "chain.txt", "-o", "t.tsv", "--truth", "t.parquet", "--cut", 0, 0)
    return zip(
        pl.read_parquet("t.parquet")["original_user"], formats.read("t.tsv").frame["user"], strict=True
    )


def test_users_of_a_log_are_found_in_the_edge_list_by_name(run, log):
    """In a chain, most queries are submitted by the author or near it; placed at random, one in twelve is."""
    names = sorted(set(formats.read(log).frame["user"]))
    place = {name: number for number, name in enumerate(names)}
    apart = [abs(place[author] - place[submitter]) for author, submitter in chain(run, log, names)]
    assert sum(steps <= 2 for steps in apart) > 0.7 * len(apart)
    assert max(apart) < 30


def test_an_edge_list_with_some_of_the_users_is_refused(run, log):
    names = sorted(set(formats.read(log).frame["user"]))
    Path("chain.txt").write_text("".join(f"{a} {b}\n" for a, b in itertools.pairwise([*names[1:], "other"])))
    done = run("crowd", "simulate", "--log", log, "--edges", "chain.txt")
    assert done.exit_code == 3
    assert "1 of 60 users of the log are not in the edge list" in done.stderr
    assert names[0] not in done.stderr


def test_what_the_engine_sees_can_be_attacked(run, log):
    simulated(run, "--log", log, "-o", "trace.tsv", "--truth", "t.parquet", "--colluding", 0.2)
    for name in ("trace.tsv", "t.parquet"):
        assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600
    seen, asked = formats.read("trace.tsv").frame, formats.read(log).frame
    assert sorted(seen["query"].drop_nulls()) == sorted(asked["query"].drop_nulls())
    assert seen["time"].is_sorted()
    truth = pl.read_parquet("t.parquet")
    whose = dict(zip(asked["row"], asked["user"], strict=True))
    assert [whose[row] for row in truth["original_row"]] == truth["original_user"].to_list()
    success = {}
    for view in ("peers", "engine"):
        done = run("attack", "trace.tsv", "--original", log, "--truth", "t.parquet", "-a", "predecessor",
                   "-s", f"view={view}", "--json")  # fmt: skip
        assert done.exit_code == 0, done.stderr
        (finding,) = json.loads(done.stdout)["findings"]
        success[view] = finding["success"]
    assert 0 < success["peers"] < 1
    assert success["engine"] > 0.2


def test_without_colluders_peers_have_nothing_to_say(run, log):
    simulated(run, "--log", log, "-o", "trace.tsv", "--truth", "t.parquet")
    case = ("attack", "trace.tsv", "--original", log, "--truth", "t.parquet")
    done = run(*case, "-a", "predecessor", "--json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert "no member colludes" in finding["not_applicable"]
    named = run(*case, "-a", "link-window")
    assert named.exit_code == 2
    assert "certificate" in named.stderr


@pytest.mark.parametrize(
    ("given", "words", "status"),
    [
        ((), "use `--users` and `--queries`", 2),
        (("--users", 10), "no queries given", 2),
        (("--log", "log.tsv", "--queries", 5), "leave out `--users` and `--queries`", 2),
        (("--log", "log.tsv", "--users", 5), "leave out `--users` and `--queries`", 2),
        (("--log", "log.tsv", "--truth", "t.parquet"), "needs a `--log`", 2),
        (("--log", "log.tsv", "-o", "log.tsv", "--truth", "t.parquet"), "would replace an input", 2),
        (("--log", "log.tsv", "-o", "x.tsv", "--truth", "x.tsv"), "would replace another output", 2),
        (("--log", "log.tsv", "-o", "x.tsv", "--truth", "none/t.parquet"), "cannot be written", 2),
        (("--users", 10**9, "--queries", 5), "a crowd needs 2 to", 2),
        (("--users", 10, "--queries", 10**12), "at most 1,000,000,000 queries", 2),
        (("--users", 10, "--queries", 5, "--exponent", "nan"), "exponent", 2),
        (("--users", 10, "--queries", 5, "-o", "x.tsv"), "needs a `--log`", 2),
        (("--users", 1, "--queries", 5), "", 2),
        (("--users", 10, "--queries", 5, "--cut", 0.9, 0.2), "`least_cut` must be at most `most_cut`", 2),
        (("--users", 10, "--queries", 5, "--edges", "none.txt"), "cannot be read", 3),
        (("--log", "none.tsv"), "", 2),
    ],
)
def test_what_cannot_be_is_refused(run, log, given, words, status):
    done = run("crowd", "simulate", *given)
    assert done.exit_code == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_network_of_another_size_is_refused(run, log):
    Path("edges.txt").write_text("a b\nb c\n")
    done = run("crowd", "simulate", "--log", log, "--edges", "edges.txt")
    assert done.exit_code == 3
    assert "the edge list has 3 users, not 60" in done.stderr
