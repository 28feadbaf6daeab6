"""`cap` releases the first searches of each user, and no more."""

from __future__ import annotations

import querycloak as qc


def test_no_user_has_more_than_n_searches():
    log = qc.generate(users=20, seed=1)
    release = qc.protect(log, "cap", n=3)
    searches = release.log.frame.unique(["user", "query", "time"])["user"].value_counts()["count"]
    assert searches.max() == 3


def test_a_high_limit_releases_everything():
    log = qc.generate(users=20, seed=1)
    assert len(qc.protect(log, "cap", n=10**6).log) == len(log)
