"""A service that is killed again and again loses nothing, doubles nothing, and changes no byte."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.crash_test import crash
from tests.support.logs import made_up

pytestmark = [pytest.mark.timeout(900)]
#: `QUERYCLOAK_KILLS=200` for the full trial.
KILLS = int(os.environ.get("QUERYCLOAK_KILLS", "8"))


def lines(users, seed):
    frame = made_up(users=users, seed=seed).frame.sort("time", maintain_order=True)
    rows = frame.select("user", "query", "time", "rank", "url").to_dicts()
    return [json.dumps(row, default=lambda t: t.isoformat()).encode() + b"\n" for row in rows]


@pytest.mark.parametrize(
    "method",
    [("-m", "cohort", "-s", "k=5"), ("-m", "rules", "-m", "swap", "-s", "k=3")],
    ids=["cohort", "swap"],
)
def test_kills_at_random_instants(tmp_path, method):
    log = lines(users=40 + KILLS * 10, seed=3)
    found = crash(
        tmp_path, log, *method, "--seed", "1", "-o", "snapshot_seconds=0.2", kills=KILLS, seed=4, batch=20
    )
    print(json.dumps(found.as_dict()))
    assert (found.lost, found.doubled, found.same_bytes) == (0, 0, True)
    assert found.records_in == found.out + found.held + found.dropped
    assert found.out
