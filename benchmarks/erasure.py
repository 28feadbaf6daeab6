"""Erased users of `cohort` whom an observer of the released stream finds: their labels stop being drawn."""

from __future__ import annotations

import numpy as np

from querycloak import generate
from querycloak.dictionary import Dictionaries
from querycloak.engines.codec import encode_and_register
from querycloak.engines.pipeline import Pipeline, parse_stages
from querycloak.engines.time_order import in_order
from querycloak.log import Batch, IntArray
from querycloak.methods.cohort.audit import GENERATIONS

_KEY = b"a key for benchmarks, of 32 byte"
_K = 10
#: The observer names a label if its silence has at most this chance while its owner is a member.
_CHANCE = 0.001


def measure(scale: float) -> dict[str, float]:
    """Erase 3 % of the users halfway through a log, and count those whose labels the observer names.

    A fifth of the users join only then, so that the cohorts of the erased users are complete again.
    """
    frame = in_order(generate(users=int(2000 * scale), seed=7).frame, _KEY)
    pipeline = Pipeline(
        parse_stages(["cohort"], {"k": _K, "shards": 1, "labels": "keep"}), _KEY, Dictionaries()
    )
    batch = encode_and_register(frame, pipeline, 0)
    half, draws = len(batch) // 2, np.random.default_rng(1)
    users = np.unique(batch.user)
    joining = draws.choice(users, users.size // 5, replace=False)
    before, rest = batch[:half], batch[half:]
    before = before[~np.isin(before.user, joining)]
    first, cohorts = _released(pipeline, before, batch)
    members = np.unique(first.user)
    erased = draws.choice(members, members.size // 33, replace=False)
    pipeline.erase(erased, np.setdiff1d(before.row[np.isin(before.user, erased)], first.row))
    later, their_cohorts = _released(pipeline, rest[~np.isin(rest.user, erased)], batch)
    labels, groups = np.concatenate([first.user, later.user]), np.concatenate([cohorts, their_cohorts])
    named = silent_labels(labels, groups)
    refilled = np.isin(erased, first.user[np.isin(cohorts, their_cohorts)])
    return {
        "users": float(members.size),
        "erased": float(erased.size),
        "in_cohorts_that_release_again": float(refilled.sum()),
        "found": float(np.isin(named, erased).sum()),
        "named_wrongly": float((~np.isin(named, erased)).sum()),
    }


def _released(pipeline: Pipeline, piece: Batch, log: Batch) -> tuple[Batch, IntArray]:
    """Return what a piece releases, and the cohort of each record, which the guarantee concedes."""
    out = pipeline.push(piece)
    author = np.full(int(log.row.max()) + 1, -1)
    author[log.row] = log.user
    return out, pipeline.stages[0].truth_columns(author[out.row])["cohort"] % GENERATIONS


def silent_labels(labels: IntArray, cohorts: IntArray) -> IntArray:
    """Return the labels that are not drawn any more, though their cohorts go on, in the order of release."""
    named: list[int] = []
    for cohort in np.unique(cohorts):
        drawn = labels[cohorts == cohort]
        for label in np.unique(drawn):
            later = drawn.size - 1 - int(np.flatnonzero(drawn == label)[-1])
            if (1 - 1 / _K) ** later < _CHANCE:
                named.append(int(label))
    return np.array(named, np.int64)
