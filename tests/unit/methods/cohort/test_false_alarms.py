"""The audit of `cohort` accepts a thousand correct releases.

Its tests of chance alarm on one in a million correct releases, so all of these tests together fail with a
chance of 0.1 %: once and for all, since seeds are fixed.
"""

from __future__ import annotations

import random

import pytest

import querycloak as qc
from tests.support.logs import made_up

RELEASES, GROUPS = 1_000, 20
USERS = (200, 300, 500, 800, 1_200, 2_000)


def drawn_settings(rng, users):
    """Draw settings under which most users have a cohort."""
    k = rng.choice([n for n in (2, 3, 5, 8, 10, 15, 20, 30, 50) if n * 4 <= users])
    return {
        "k": k,
        "shards": rng.choice([n for n in (1, 2, 4, 8) if n * k * 4 <= users]),
        "assign": rng.choice(["arrival", "similar"]),
        "leftover": rng.choice(["suppress", "join"]),
        "time": rng.choice(["keep", "keep", "coarsen", "drop"]),
    }


@pytest.mark.nightly
@pytest.mark.parametrize("group", range(GROUPS))
def test_no_correct_release_is_refused(group, tmp_path):
    """Small and large logs, cohorts of two to fifty; every fifth release keeps the labels of its source."""
    for number in range(group, RELEASES, GROUPS):
        rng = random.Random(number)
        users = USERS[number // GROUPS % len(USERS)]
        log = made_up(users, seed=11, categories=True, days=5)
        settings = drawn_settings(rng, users)
        if number % 5 == 0:
            settings |= {"labels": "keep", "source": f"s{number}", "state": tmp_path}
        release = qc.protect(log, "cohort", **settings, seed=number)
        checks = release.certificate["methods"][0]["checks"]
        assert {check["verdict"] for check in checks} == {"kept"}, (number, settings)
        assert release.report.released
