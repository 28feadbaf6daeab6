"""Two workers that share nothing but the key, each with its part of the log, make the same file."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import polars as pl
import pytest

import querycloak as qc
from querycloak import formats, keys
from querycloak.dictionary import Dictionaries
from querycloak.engines import codec, record_store
from querycloak.engines.pipeline import Pipeline, parse_stages
from querycloak.engines.time_order import whole
from querycloak.log import Batch
from tests.support.logs import made_up

WORKERS = 2
TEXTS = ("user", "query", "category")
NUMBERS = ("row", "seq", "time", "blank")
CASES = [
    ("swap", {"k": "3", "level": "1"}),
    ("swap", {"k": "3", "level": "auto", "patience": "50"}),
    ("cohort", {"k": "5", "shards": "8"}),
    ("cohort", {"k": "5", "shards": "8", "labels": "fresh"}),
    ("dp-semantic", {"epsilon": "3"}),
    ("dp-semantic", {"epsilon": "3", "max_queries": "4", "criterion": "sqc1", "domain": "topic"}),
    ("dp-semantic", {"epsilon": "9", "prior": "microagg-semantic", "labels": "fresh", "time": "drop"}),
    ("dp-semantic", {"per": "query", "rebuild": "paper"}),
]


def work(path, method, settings, key, part):
    """Do one worker's share: read the log, keep the records of its keys, protect them."""
    log = formats.read(path)
    pipeline = Pipeline(parse_stages([method], settings), key, Dictionaries())
    batch = codec.encode_and_register(next(whole(log, key)), pipeline, 0)
    mine = batch[np.asarray(pipeline.stages[0].partition_key(batch)) % WORKERS == part]
    released = pipeline.push(mine) + pipeline.close_at(len(log))
    found = {name: np.array(getattr(released, name)) for name in NUMBERS}
    texts = {name: getattr(pipeline.texts, name).decode(getattr(released, name)).to_list() for name in TEXTS}
    return found | texts


def merged(parts, pipeline):
    """Merge the shares in the order in which one worker would have released them."""
    columns = {name: np.concatenate([part[name] for part in parts]) for name in NUMBERS}
    for name in TEXTS:
        spelled = pl.Series([text for part in parts for text in part[name]], dtype=pl.String)
        columns[name] = getattr(pipeline.texts, name).encode(spelled)
    return pipeline._release_order(Batch.of(columns, pipeline.texts))


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as workers:
        yield workers


@pytest.mark.parametrize(("method", "settings"), CASES)
def test_two_workers_make_the_same_file(tmp_path, pool, method, settings):
    path, out = tmp_path / "log.parquet", tmp_path / "out.parquet"
    log = made_up(80, seed=5, categories=True)
    qc.write(log, str(path))
    release = qc.protect(path, method, output=out, seed=9, **settings)
    secret = keys.Secret.from_seed(9)
    key = keys.release_key(secret, "", keys.release_id(secret, "", 0))
    jobs = [pool.submit(work, path, method, settings, key, part) for part in range(WORKERS)]
    parts = [job.result() for job in jobs]
    assert all(len(part["row"]) for part in parts), "both workers had something to do"
    pipeline = Pipeline(parse_stages([method], settings), key, Dictionaries())
    batch = merged(parts, pipeline)
    pipeline.register_users(pipeline.texts.user.encode(log.frame["user"]))
    pending = record_store.RecordStore()
    pending.add(next(whole(formats.read(path), key)))
    frame = codec.decode(pipeline, batch, pending).frame
    sha256 = formats.write(
        frame, tmp_path / "again.parquet", formats.Layout.for_output(str(out), like=formats.read(path).layout)
    )
    assert sha256 == release.certificate["release"]["sha256"]
