"""A classifier in a package of its own: one class, one entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl

PLUGIN = '''
import numpy as np
from querycloak.text import Classification, Evidence, load


class ByLength:
    """Files short queries under Games, long ones under Reference."""

    reads_urls = False

    def __init__(self, taxonomy=None):
        self.taxonomy = taxonomy or load()

    def classify(self, queries):
        nodes = [self.taxonomy.node("Games"), self.taxonomy.node("Reference")]
        long = (queries.str.len_chars() > 8).to_numpy().astype(int)
        size = queries.len()
        return Classification(np.array(nodes)[long], np.ones(size), np.full(size, Evidence.REMOTE, np.int8))

    def classify_urls(self, urls):
        raise AssertionError("it does not read URLs")
'''


def test_a_classifier_plugs_in_by_an_entry_point(tmp_path: Path) -> None:
    (tmp_path / "by_length.py").write_text(PLUGIN)
    info = tmp_path / "by_length-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: by-length\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[querycloak.classifiers]\nby-length = by_length:ByLength\n")
    (tmp_path / "log.csv").write_text(
        "user,query,time,url\n"
        "a,golf,2006-03-01 10:00:00,http://www.golf.example/\n"
        "b,garden chairs,2006-03-01 10:00:01,\n"
    )
    command = ["classify", "log.csv", "--classifier", "by-length", "-o", "out.csv"]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", "from querycloak.cli import main; main()", *command],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert pl.read_csv(tmp_path / "out.csv")["category"].to_list() == ["Games", "Reference"]
