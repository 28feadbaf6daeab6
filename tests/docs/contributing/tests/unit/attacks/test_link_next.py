"""`link-next` follows repeated queries."""

from __future__ import annotations

import querycloak as qc


def test_it_names_every_author_where_labels_are_kept():
    log = qc.generate(users=60, seed=1, categories=True)
    (finding,) = qc.attack(qc.protect(log, "rules"), log, "link-next", rare=1)
    assert finding.success > 0.95


def test_cohort_holds_it_to_its_bound():
    log = qc.generate(users=300, seed=1, categories=True)
    (finding,) = qc.attack(qc.protect(log, "cohort", k=10, shards=1, seed=1), log, "link-next")
    assert finding.bound == 0.1
    assert finding.holds
