"""A service that is killed again and again loses nothing, doubles nothing, and changes no byte."""

from __future__ import annotations

import json

import pytest

from tests.support.crash_test import crash
from tests.support.logs import made_up

pytestmark = [pytest.mark.timeout(1800)]
KILLS = [3, pytest.param(50, marks=pytest.mark.nightly)]


def lines(users, seed):
    frame = made_up(users=users, seed=seed).frame.sort("time", maintain_order=True)
    rows = frame.select("user", "query", "time", "rank", "url").to_dicts()
    return [json.dumps(row, default=lambda t: t.isoformat()).encode() + b"\n" for row in rows]


@pytest.mark.parametrize(
    "method",
    [("-m", "cohort", "-s", "k=5"), ("-m", "rules", "-m", "swap", "-s", "k=3")],
    ids=["cohort", "swap"],
)
@pytest.mark.parametrize("kills", KILLS)
def test_kills_at_random_instants(tmp_path, method, kills):
    log = lines(users=40 + kills * 10, seed=3)
    found = crash(
        tmp_path, log, *method, "--seed", "1", "-o", "snapshot_seconds=0.2", kills=kills, seed=4, batch=20
    )
    print(json.dumps(found.as_dict()))
    assert (found.lost, found.doubled, found.same_bytes) == (0, 0, True)
    assert found.records_in == found.out + found.held + found.dropped
    assert found.out
