"""A standalone cluster gives the release of one machine, also if a worker is killed while it has work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import querycloak as qc
from tests.integration.spark import stream_child
from tests.integration.spark.cluster import LIMIT, Cluster
from tests.integration.spark.streams import Child, expected, made_up, same, write_pieces, written
from tests.support import logs

pytestmark = pytest.mark.timeout(1800)


def test_a_file_is_byte_equal_after_the_death_of_a_worker(tmp_path):
    log = logs.made_up(400, seed=5, categories=True)
    qc.write(log, tmp_path / "log.parquet")
    command = [sys.executable, "-m", "querycloak", "protect", "log.parquet", "-m", "cohort", "-s", "k=5"]
    command += ["-s", "shards=4", "--seed", "9", "--quiet"]
    one = subprocess.run([*command, "-o", "one.tsv"], cwd=tmp_path, capture_output=True, check=False)
    assert one.returncode == 0, one.stderr.decode()
    with Cluster(tmp_path) as cluster:
        options = [part for item in cluster.options.items() for part in ("--conf", "=".join(item))]
        engine = ["--engine", "spark", "--master", cluster.master, *options]
        run = subprocess.Popen(
            [*command, *engine, "-o", "many.tsv"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            cluster.kill_worker_at_work()
            assert run.poll() is None, "it was done before the worker died"
            said, _ = run.communicate(timeout=LIMIT * 2)
        finally:
            if run.poll() is None:
                run.kill()
                run.communicate()
        assert run.returncode == 0, said.decode()[-3000:]
        assert "Removing worker" in cluster.log("master")
    assert (tmp_path / "many.tsv").read_bytes() == (tmp_path / "one.tsv").read_bytes()


def test_a_stream_is_equal_after_the_death_of_a_worker(tmp_path):
    log = made_up(40)
    write_pieces(log, tmp_path / "in", 6)
    before, _ = expected(log, stream_child.METHODS, stream_child.SETTINGS)
    with Cluster(tmp_path) as cluster:
        child = Child(tmp_path, "files", master=cluster.master, options=cluster.options)
        try:
            cluster.kill_worker_at_work()
            child.finish()
        finally:
            child.stop()
        assert "Removing worker" in cluster.log("master")
    assert same(before, written(tmp_path / "out"))
