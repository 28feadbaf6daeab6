"""`querycloak obfuscate`: traces and truth as files, a live client, and clear refusals."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from querycloak import formats
from querycloak.cli import main
from querycloak.registry import COVERS


@pytest.fixture
def log(run):
    assert run("generate", "--users", 30, "--seed", 7, "-o", "log.tsv", "--quiet").exit_code == 0
    return "log.tsv"


@pytest.mark.parametrize("method", COVERS.built_in)
def test_a_trace_and_its_truth(run, log, method):
    done = run(
        "obfuscate", log, "-m", method, "-o", "trace.tsv", "--truth", "t.parquet", "--seed", 1, "--json"
    )
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    trace, asked, truth = (
        formats.read("trace.tsv").frame,
        formats.read(log).frame,
        pl.read_parquet("t.parquet"),
    )
    assert told["method"] == method
    assert told["records"] == trace.height == truth.height
    assert told["users"] == 30
    assert Path("trace.tsv").read_text().splitlines()[0] == Path(log).read_text().splitlines()[0]
    assert truth.columns == ["released_row", "original_row", "original_user", "released_after", "fake"]
    assert truth["released_row"].equals(trace["row"].alias("released_row"))
    assert truth["original_user"].equals(trace["user"].alias("original_user"))
    assert truth["released_after"].null_count() == 0
    assert (truth["fake"] == truth["original_row"].is_null()).all()
    assert sorted(truth["original_row"].drop_nulls()) == asked["row"].to_list()
    assert told["fakes"] <= truth["fake"].sum()
    for name in ("trace.tsv", "t.parquet"):
        assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600


def test_the_same_seed_gives_the_same_bytes(run, log):
    lines = Path(log).read_text().splitlines()
    Path("turned.tsv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    for name, seed, source in (("a", 1, log), ("b", 1, log), ("c", 2, log), ("d", 1, "turned.tsv")):
        assert run("obfuscate", source, "-m", "shadow", "-o", f"{name}.tsv", "--seed", seed).exit_code == 0
    a, b, c, d = (Path(f"{name}.tsv").read_bytes() for name in "abcd")
    assert a == b == d != c


def test_a_pool_lends_what_nobody_in_the_log_asked(run, log):
    assert run("generate", "--users", 20, "--seed", 9, "-o", "pool.tsv", "--quiet").exit_code == 0
    lent = pl.read_csv("pool.tsv", separator="\t").with_columns(pl.col("AnonID") + 10**6)
    lent.write_csv("pool.tsv", separator="\t")
    done = run("obfuscate", log, "-m", "hybrid", "--pool", "pool.tsv", "-o", "trace.tsv",
               "--truth", "t.parquet", "--seed", 1)  # fmt: skip
    assert done.exit_code == 0, done.stderr
    trace, truth = formats.read("trace.tsv").frame, pl.read_parquet("t.parquet")
    assert set(trace.filter(truth["fake"])["query"]) <= set(formats.read("pool.tsv").frame["query"])
    assert done.stderr.endswith("fakes\n")
    assert run("obfuscate", log, "-m", "hybrid", "--pool", log, "-o", "again.tsv").exit_code == 3


def test_what_it_says(run, log):
    done = run(
        "obfuscate", log, "-m", "tmn", "-o", "trace.tsv", "--fakes", 2, "--timing", "burst", "--seed", 1
    )
    searches = formats.read(log).frame.unique(["user", "query", "time"]).height
    assert done.stdout == ""
    assert done.stderr == f"covered {searches:,} searches of 30 users with {2 * searches:,} fakes\n"
    assert run("obfuscate", log, "-m", "tmn", "-o", "trace.tsv", "--quiet").stderr == ""


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "tsv.gz"])
def test_other_formats(run, log, ending):
    assert run("obfuscate", log, "-m", "usr", "-o", f"t.{ending}", "--seed", 1).exit_code == 0
    assert run("obfuscate", log, "-m", "usr", "-o", "t.tsv", "--seed", 1).exit_code == 0
    same = ["user", "query", "time", "rank", "url"]
    assert formats.read(f"t.{ending}").frame.select(same).equals(formats.read("t.tsv").frame.select(same))


def test_a_log_without_times(run):
    Path("log.csv").write_text("user,query\na,one\na,two\nb,three\n")
    done = run("obfuscate", "log.csv", "-m", "shadow", "-o", "t.csv", "--seed", 1)
    assert done.exit_code == 0, done.stderr
    assert "no times" in done.stderr
    assert formats.read("t.csv").frame.height == 6


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["one.csv", "-m", "usr", "-o", "t.csv"], 3, "the log has one user only"),
        (["one.csv", "-m", "tnm", "-o", "t.csv"], 2, "no obfuscation method is called `tnm`"),
        (["one.csv", "-m", "tmn"], 2, "an output (`-o`) are needed"),
        (["-m", "tmn", "-o", "t.csv"], 2, "a log and an output"),
        (["one.csv", "-m", "tmn", "-o", "t.csv", "--fakes", "-1"], 2, "`fakes` must be float, at least 0"),
        (["one.csv", "-m", "usr", "-o", "t.csv", "--timing", "burst"], 2, "no setting called `timing`"),
        (["one.csv", "-m", "tmn", "-o", "t.csv", "--bag", "none"], 2, "bag of text does not exist"),
        (["one.csv", "-m", "tmn", "-o", "t.csv", "--speed", "2"], 2, "go with `--live`"),
        (["one.csv", "-m", "tmn", "-o", "-", "--json"], 2, "both go to standard output"),
        (["one.csv", "-m", "tmn", "--live"], 2, "takes no log"),
        (["-m", "shadow", "--live"], 2, "no live form"),
        (["-m", "tmn", "--live", "--fakes", "2"], 2, "goes with `--timing burst`"),
        (["-m", "tmn", "--live", "--timing", "burst", "--every", "2"], 2, "`--every` with the others"),
        (["one.csv", "-m", "tmn", "-o", "t.csv", "--truth", "no/t"], 2, "the truth cannot be written"),
        (["one.csv", "-m", "tmn", "-o", "t.csv", "--truth", "./t.csv"], 2, "would replace another output"),
        (["one.csv", "-m", "tmn", "-o", "one.csv"], 2, "would replace an input"),
        (["-m", "tmn", "--live", "--every", "0"], 2, "`every` must be float, at least 0.001"),
    ],
)
def test_refusals(run, words, status, message):
    Path("one.csv").write_text("user,query,time\nalone,secret words,2006-03-01T00:00:00Z\n")
    done = run("obfuscate", *words)
    assert done.exit_code == status
    assert message in done.stderr
    assert "secret" not in done.stderr
    assert "alone" not in done.stderr
    assert not Path("t.csv").exists()


@pytest.mark.parametrize("target", ["-o", "--truth"])
def test_an_input_is_never_replaced(run, log, target):
    before = Path(log).read_bytes()
    where = {"-o": "new.tsv", "--truth": "t.parquet"} | {target: log}
    done = run("obfuscate", log, "-m", "usr", *(word for pair in where.items() for word in pair))
    assert done.exit_code == 2
    assert "would replace an input" in done.stderr
    assert Path(log).read_bytes() == before
    assert os.listdir() == [log]


def test_a_bag_is_never_replaced(run, log):
    Path("bag.txt").write_text("garden lamps\n")
    assert run("obfuscate", log, "-m", "tmn", "--bag", "bag.txt", "-o", "bag.txt").exit_code == 2
    assert Path("bag.txt").read_text() == "garden lamps\n"


def test_nothing_is_left_of_a_failure(run, log):
    assert run("obfuscate", log, "-m", "tmn", "-o", "t.tsv", "--bag", log, "--truth", "no/t").exit_code == 2
    assert not [name for name in os.listdir() if name != log]


def live(text, *words):
    done = CliRunner().invoke(main, ["obfuscate", "--live", "-m", "tmn", *words], input=text)
    return done, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_live_bursts():
    text = 'garden chairs\n{"query": "cheap lamps"}\n{"results": ["Zebra"]}\n\n{oops\n'
    done, sent = live(text, "--timing", "burst", "--fakes", "5", "--speed", "1000", "--seed", "1")
    assert done.exit_code == 0, done.stderr
    assert [line["query"] for line in sent if not line["fake"]] == ["garden chairs", "cheap lamps"]
    assert 0 < sum(line["fake"] for line in sent) <= 20
    assert "2 real queries" in done.stderr
    assert "1 line not understood" in done.stderr
    assert "oops" not in done.stderr


def test_live_ends_with_its_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["obfuscate", "--live", "-m", "tmn", "-o", "sent.jsonl", "--json"]
    done = CliRunner().invoke(main, words, input="")
    assert json.loads(done.stdout) == {"real": 0, "fakes": 0, "not_understood": 0}
    assert stat.S_IMODE(Path("sent.jsonl").stat().st_mode) == 0o600


def test_an_existing_live_output_becomes_private(tmp_path, monkeypatch):
    """Its lines show which queries are dummies."""
    monkeypatch.chdir(tmp_path)
    Path("sent.jsonl").write_text("")
    Path("sent.jsonl").chmod(0o644)
    done = CliRunner().invoke(main, ["obfuscate", "--live", "-m", "tmn", "-o", "sent.jsonl"], input="oboe\n")
    assert done.exit_code == 0, done.stderr
    assert stat.S_IMODE(Path("sent.jsonl").stat().st_mode) == 0o600


def test_a_live_output_that_is_no_file_keeps_its_mode(tmp_path, monkeypatch):
    """As root, `-o /dev/null` took the device from all other users."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("pipe").chmod(0o622)
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    done = CliRunner().invoke(main, ["obfuscate", "--live", "-m", "tmn", "-o", "pipe"], input="oboe\n")
    assert done.exit_code == 0, done.stderr
    assert b"oboe" in os.read(reader, 1000)
    os.close(reader)
    assert stat.S_IMODE(Path("pipe").stat().st_mode) == 0o622


def test_live_takes_titles_that_are_no_unicode():
    titles = ["Zebra \ud800 stripes"]
    done, _ = live(json.dumps({"results": titles}) + "\noboe\n", "--every", "1000")
    assert done.exit_code == 0, done.stderr
    assert "not understood" not in done.stderr


def test_live_takes_queries_in_every_script():
    done, sent = live("می\u200cخواهم\nक्\u200dष\n", "--every", "1000")
    assert [line["query"] for line in sent] == ["می\u200cخواهم", "क्\u200dष"]
    assert "not understood" not in done.stderr


def test_live_is_interrupted_cleanly():
    call = "from querycloak.cli import main; main()"
    words = ["-c", call, "obfuscate", "--live", "-m", "tmn", "--speed", "600"]
    with subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"real query\n")
        process.stdin.flush()
        first = [json.loads(process.stdout.readline()) for _ in range(5)]
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, said = process.communicate(timeout=30)
        assert time.monotonic() - began < 20
    assert process.returncode == 130
    assert said.strip() == b"interrupted"
    assert any(line["fake"] for line in first)
