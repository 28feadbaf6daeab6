"""Real peers and the simulator agree: the same network and vectors give the same submitters."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

from querycloak.clients.crowd.state import SCHEMA
from tests.support.crowd import PATIENT, LocalCrowd
from tests.unit.clients.crowd.test_agreement import PAIRS, differ, simulated, vector

pytestmark = pytest.mark.sign
QUERIES, AT_A_TIME = 2_400, 16
PROTOCOL = PATIENT | {"penalty": 0.0}


class Prepared(LocalCrowd):
    """Peers who find the draws of their vectors in their state, as the simulator draws them."""

    def configure(self, member):
        super().configure(member)
        state = self.folder / str(member) / "state"
        state.mkdir(mode=0o700)
        (state / "member.json").write_text(json.dumps({"schema": SCHEMA, "vector": vector(member)}))


async def by_peers(folder):
    """Let everybody search in turn, and count who submitted whose queries."""
    async with Prepared(folder, PAIRS, PROTOCOL) as crowd:
        await crowd.wait_connected()
        work = iter([(number % 8, f"{number % 8} {number}") for number in range(QUERIES)])

        async def searcher():
            for member, text in work:
                assert (await crowd.search(member, text))[0] == 200

        await asyncio.gather(*(searcher() for _ in range(AT_A_TIME)))
        table = np.zeros((8, 8), int)
        for submitter, text in crowd.submitted:
            table[int(text.split()[0]), submitter] += 1
        return table


def test_peers_submit_for_each_other_as_in_the_simulator(tmp_path):
    """300 queries of each of eight members: chi-square tests at 1e-6, so false alarms below 1e-5."""
    table = asyncio.run(by_peers(tmp_path))
    assert table.sum() == QUERIES
    one, _ = simulated(penalty=0.0)
    assert differ(one, table) > 1e-6
    other, _ = simulated(penalty=0.0, back=False)
    assert differ(other, table) < 1e-6, "the comparison must notice another protocol"
