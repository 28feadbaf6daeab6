"""Releases of synthetic logs, each made once per process. A test that changes a release makes its own."""

from __future__ import annotations

from typing import Any

import querycloak as qc
from querycloak.engines.pipeline import parse_stages
from querycloak.engines.release import ReleaseJob, make_release

_made: dict[tuple[Any, ...], tuple[qc.Log, qc.Release]] = {}


def release(log: qc.Log, *methods: str, **settings: Any) -> qc.Release:
    """Return `qc.protect(log, ...)`, made once per process for this very log and these settings."""
    if not {"seed", "secret_file"} & settings.keys():
        raise ValueError("a release that others share needs a `seed`")
    asked = (id(log), methods, tuple(sorted((name, repr(value)) for name, value in settings.items())))
    if asked not in _made:
        _made[asked] = log, qc.protect(log, *methods, **settings)  # the log is kept, and so is its id
    return _made[asked][1]


def with_ids(
    log: qc.Log, *methods: str, seed: int = 1, piece_rows: int | None = None, **settings: Any
) -> qc.Release:
    """Return a release for evaluation whose labels are the users' ids, unless the settings choose others."""
    stages = parse_stages(list(methods), {"labels": "keep"} | settings)
    job = ReleaseJob(log, None, stages, keep_truth=True, seed=seed, piece_rows=piece_rows, evaluation=True)
    return make_release(job)
