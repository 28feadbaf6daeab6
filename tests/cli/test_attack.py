"""`attack` and `attacks` as a user runs them."""

from __future__ import annotations

import dataclasses
import json
import stat
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from querycloak import certificate, formats
from querycloak.cli import main
from querycloak.keys import Secret
from querycloak.registry import ATTACKS
from querycloak.truth import write_truth
from tests.reference import naive_swap
from tests.support.logs import made_up

FIELDS = [
    "attack", "game", "unit", "success", "low", "high", "bound", "holds",
    "n", "seconds", "median_user", "worst_decile_user", "details", "not_applicable",
]  # fmt: skip
FILES = ("out.parquet", "--original", "log.parquet", "--truth", "t.parquet")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, [str(argument) for argument in arguments])


def write_release(made, log):
    """Write what `protect -m swap -o out.parquet --truth t.parquet` would, by the naive method."""
    formats.write(log, "log.parquet")
    sha256 = formats.write(made.release, "out.parquet")
    layout = formats.Layout.for_output(
        "out.parquet", columns=[name for name in made.release.columns if name != "released_row"]
    )
    part = made.certificate["methods"][0] | {
        "promise": "…",
        "does_not_protect_against": [],
        "sentences": [{"text": "…", "checks": [], "audit": "kept"}],
        "audit": "kept",
        "checks": [],
    }
    release = {"id": "test", "source": None, "sha256": sha256, "layout": layout.as_dict()}
    document = certificate.build(
        release=release, methods=[part], lineage=[], secret=Secret.from_seed(1), ledger=None
    )
    certificate.path_of(Path("out.parquet")).write_bytes(certificate.to_bytes(document))
    size = made.release.height
    truth = pl.DataFrame(
        {
            "released_row": range(size),
            "original_row": None,
            "original_user": made.author,
            "released_after": size,
        },
        schema_overrides={"original_row": pl.Int64},
    )
    write_truth(Path("t.parquet"), truth)


@pytest.fixture
def released(run):
    log = made_up(40, 5, categories=True).frame
    made = naive_swap.release(log, "swap", k=3)
    write_release(made, log)
    return made


def findings(done):
    assert done.exit_code == 0, done.stderr
    return {finding["attack"]: finding for finding in json.loads(done.stdout)["findings"]}


def test_findings_as_json_have_these_fields(run, released):
    found = findings(run("attack", *FILES, "-a", "copy", "-a", "guess", "-a", "link-profile", "--json"))
    assert list(found) == ["copy", "guess", "link-profile"]
    assert all(list(finding) == FIELDS for finding in found.values())
    assert found["copy"]["success"] == 1.0
    assert found["link-profile"]["bound"] == pytest.approx(1 / 3)
    assert found["link-profile"]["details"]["bound_from"] == "claimed by the paper"
    assert set(found["link-profile"]["details"]["by_repeats"]) == {"1", "2-4", "5+"}


def test_the_table_shows_success_interval_bound_and_whether_it_holds(run, released):
    done = run("attack", *FILES, "-a", "copy", "-a", "link-random")
    assert done.exit_code == 0
    head, copied, random = done.stdout.splitlines()
    assert head.split("  ")[0] == "attack"
    assert copied.startswith("copy         control      100.00 %")
    assert "33.33 %" in random
    assert "yes" in random
    assert done.stderr == ""


def test_without_names_all_fast_attacks_run(run, released):
    found = findings(run("attack", *FILES, "--json"))
    assert list(found) == [name for name in ATTACKS.names() if ATTACKS.get(name).fast]
    assert {"copy", "guess"} <= set(found)


def test_a_beaten_bound_is_told_and_may_fail_the_run(run, released):
    # The truth is made to say that the paper's attack was always right, so that the bound is beaten.
    assert run("attack", *FILES, "-a", "link-random", "--write-log", "rebuilt.parquet").exit_code == 0
    rebuilt = pl.read_parquet("rebuilt.parquet")
    truth = pl.read_parquet("t.parquet").with_columns(original_user=rebuilt["user"])
    write_truth(Path("t.parquet"), truth)
    done = run("attack", *FILES, "-a", "link-random")
    assert (done.exit_code, done.stderr) == (0, "above the bound: link-random\n")
    assert "  NO  " in done.stdout
    assert run("attack", *FILES, "-a", "link-random", "--fail-above-bound", "--quiet").exit_code == 4
    assert run("attack", *FILES, "-a", "copy", "--fail-above-bound").exit_code == 0


def test_the_rebuilt_log_is_private_and_looks_like_the_release(run, released):
    done = run("attack", *FILES, "-a", "copy", "--write-log", "rebuilt.parquet", "--quiet")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert stat.S_IMODE(Path("rebuilt.parquet").stat().st_mode) == 0o600
    rebuilt, release = pl.read_parquet("rebuilt.parquet"), pl.read_parquet("out.parquet")
    assert rebuilt.columns == [name for name in release.columns if name != "released_row"]
    assert rebuilt["user"].equals(released.author, check_names=False)
    assert rebuilt["query"].equals(release["query"])


@pytest.mark.parametrize("name", ["profiles.csv", "profiles.parquet"])
def test_the_rebuilt_profiles_are_those_of_the_rebuilt_log(run, released, name):
    wanted = ("--write-log", "rebuilt.parquet", "--write-profiles", name)
    assert run("attack", *FILES, "-a", "copy", *wanted, "--quiet").exit_code == 0
    assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600
    table = (
        pl.read_csv(name, schema_overrides={"user": pl.String})
        if name.endswith("csv")
        else pl.read_parquet(name)
    )
    counted = (
        pl.read_parquet("rebuilt.parquet").group_by("user", "category").len("count").sort("user", "category")
    )
    assert table.rows() == counted.rows()


def test_a_rebuilt_log_is_one_attacks(run, released):
    for names in ([], ["-a", "copy", "-a", "guess"]):
        done = run("attack", *FILES, *names, "--write-log", "rebuilt.parquet")
        assert done.exit_code == 2
        assert "exactly one attribution attack" in done.stderr


def test_settings_and_seeds(run, released):
    same = [
        findings(run("attack", *FILES, "-a", "link-random", "-s", "k=5", "--seed", seed, "--json"))[
            "link-random"
        ]
        for seed in (1, 1, 2)
    ]
    assert same[0]["details"]["attacker_k"] == 5
    assert same[0]["success"] == same[1]["success"] != same[2]["success"]
    done = run("attack", *FILES, "-a", "link-random", "-a", "link-profile", "-s", "k=5")
    assert done.exit_code == 2
    assert "write `link-random.k=…`" in done.stderr


def test_an_unknown_attack_suggests_the_nearest(run, released):
    done = run("attack", *FILES, "-a", "link-randon")
    assert done.exit_code == 2
    assert "did you mean `link-random`?" in done.stderr


def test_what_does_not_apply_says_why(run, released):
    log = made_up(40, 5).frame
    made = naive_swap.release(log.with_columns(category=pl.lit("News")), "cohort", k=3)
    bare = dataclasses.replace(made, release=made.release.drop("category"))
    write_release(bare, log)
    done = run("attack", *FILES, "-a", "link-random", "-a", "copy")
    assert done.exit_code == 0
    assert "link-random: not applicable (the release has no category)" in done.stdout


def test_missing_evidence_is_an_error(run, released):
    Path("t.parquet").write_bytes(b"no parquet")
    assert run("attack", *FILES, "-a", "copy").exit_code == 3
    certificate.path_of(Path("out.parquet")).unlink()
    done = run("attack", *FILES, "-a", "copy")
    assert done.exit_code == 2
    assert "name it with `--certificate FILE`" in done.stderr


def test_attacks_lists_games_knowledge_and_settings(run):
    listed = json.loads(run("attacks", "--json").stdout)["attacks"]
    assert [attack["name"] for attack in listed] == ATTACKS.names()
    by_name = {attack["name"]: attack for attack in listed}
    assert by_name["copy"]["sees"] == ["truth"]
    assert by_name["link-random"]["sees"] == ["release"]
    assert [setting["name"] for setting in by_name["link-random"]["settings"]] == [
        "k",
        "level",
        "own",
        "seed",
    ]
    assert all(attack["summary"] and attack["game"] for attack in listed)
    text = run("attacks").stdout
    assert "game: attribution; sees: release" in text
