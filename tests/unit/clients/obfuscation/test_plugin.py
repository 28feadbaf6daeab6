"""An obfuscation method of another package: one class and one entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

METHOD = '''
from dataclasses import dataclass

import numpy as np
import polars as pl

from querycloak.clients.obfuscation.base import CoverMethod, CoverSettings, DummySearches
from querycloak.log import MISSING
from querycloak.settings import setting


class Echo(CoverMethod):
    """Repeats a fixed word after each search."""

    name = "echo"

    @dataclass(frozen=True, kw_only=True)
    class Settings(CoverSettings):
        """Settings of `echo`."""

        timing: str = setting("later", kind=str, choices=("later",), help="times of dummy searches")

    def fakes(self, user, stream):
        time = self.history.time[self.history.of_user(user)]
        many = np.arange(time.size)
        return DummySearches(many, time, np.zeros(time.size, np.int64), np.full(time.size, MISSING))

    def columns(self, dummies):
        empty = [name for name in self.history.frame.columns if name not in ("row", "user", "time", "query")]
        return pl.DataFrame({"query": ["echo"] * len(dummies)}, schema={"query": pl.String}).with_columns(
            pl.lit(None).alias(name) for name in empty
        )

    @classmethod
    def live(cls, settings, stream):
        return Live()


class Live:
    """Repeats a fixed word."""

    def next_query(self):
        return "echo"

    def observe(self, titles):
        pass
'''
LOG = "user,query,time\nu1,oboe,2006-03-01T10:00:00Z\nu2,lute,2006-03-01T11:00:00Z\n"


@pytest.fixture
def run(tmp_path):
    """Install the package in a folder, and run the command line with it."""
    (tmp_path / "echo_cover.py").write_text(METHOD)
    about = tmp_path / "echo_cover-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-cover\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[querycloak.covers]\necho = echo_cover:Echo\n")
    (tmp_path / "log.csv").write_text(LOG)

    def call(*words, stdin=""):
        paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
        return subprocess.run(
            [sys.executable, "-c", "from querycloak.cli import main; main()", "obfuscate", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": paths},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return call


def test_a_method_of_another_package_covers_a_log(run, tmp_path):
    done = run("log.csv", "-m", "echo", "-o", "trace.csv", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["fakes"] == 2
    assert sorted(
        line.split(",")[1] for line in Path(tmp_path / "trace.csv").read_text().splitlines()[1:]
    ) == [
        "echo",
        "echo",
        "lute",
        "oboe",
    ]
    wrong = run("log.csv", "-m", "echo", "-o", "trace.csv", "--timing", "burst")
    assert wrong.returncode == 2
    assert "echo: `timing` must be one of later" in wrong.stderr


def test_its_live_form_is_used(run):
    done = run("-m", "echo", "--live", "--every", "0.01", stdin="oboe\n")
    assert done.returncode == 0, done.stderr
    assert "oboe" in {json.loads(line)["query"] for line in done.stdout.splitlines()}
