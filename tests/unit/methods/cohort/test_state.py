"""Cohorts that are kept over releases: what several workers save together is what one machine saves."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.dictionary import Dictionaries
from querycloak.errors import Refused
from querycloak.log import Batch
from querycloak.methods.cohort import Cohort
from querycloak.methods.cohort.assignment import CohortState

KEY = b"k" * 32
SHARDS = 3


def release(settings, loaded, users, shards):
    """Return the table that a worker saves whose records are those of users in these shards."""
    texts = Dictionaries()
    method = Cohort(settings, KEY, texts)
    if loaded is not None:
        method.source_state.load(loaded)
    rows = np.arange(len(users))
    columns = {"row": rows, "seq": rows + 1, "time": rows, "query": np.zeros(len(users), np.int64)}
    batch = Batch.of(columns | {"user": texts.user.intern([f"user {user}" for user in users])}, texts)
    own = batch[np.isin(method.partition_key(batch), shards)]
    method.push(own)
    method.close()
    return method.source_state.save()


nights = st.lists(st.lists(st.integers(0, 20), max_size=12), min_size=1, max_size=4)


@given(nights, st.sampled_from(["suppress", "join"]), st.sets(st.integers(0, 20), max_size=4))
def test_workers_save_what_one_machine_saves(nights, leftover, erased):
    settings = Cohort.Settings(k=2, shards=SHARDS, leftover=leftover)
    stored = None
    for users in nights:
        alone = release(settings, stored, users, range(SHARDS))
        tables = [release(settings, stored, users, [shard]) for shard in range(SHARDS)]
        assert CohortState.merge(tables, stored).equals(alone)
        stored = without(alone, erased)


def without(table, erased):
    """Free the slots of erased users in full cohorts."""
    gone = pl.col("user").is_in([f"user {user}" for user in erased]) & (pl.len().over("cohort") >= 2)
    return table.with_columns(user=pl.when(gone).then(None).otherwise("user"))


def test_a_missing_table_is_refused():
    with pytest.raises(Refused):
        Cohort(Cohort.Settings(), KEY, Dictionaries()).source_state.load(None)
