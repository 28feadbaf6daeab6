"""Twenty real peers: people search while three of the peers are killed and come back."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from querycloak.clients.crowd.demo_engine import page
from tests.support.crowd import PATIENT, LocalCrowd, friendships

pytestmark = pytest.mark.sign

MEMBERS, QUERIES, KILLED = 20, 2000, (3, 8, 14)


async def search_all(crowd: LocalCrowd, begun: asyncio.Event, down: set[int]) -> Counter[str]:
    """Send all queries, 32 at a time; who is killed loses those that she was waiting for."""
    chance, found = random.Random(5), Counter()
    work = iter([(chance.randrange(MEMBERS), f"query {n} of many") for n in range(QUERIES)])

    async def searcher() -> None:
        for member, text in work:
            try:
                status, body = await crowd.search(member, text)
            except (ConnectionError, KeyError):
                assert member in down  # only who is dead may fail to say what has become of a query
                continue
            assert (status, body) == (200, page(text)), status
            found[text] += 1
            if sum(found.values()) > QUERIES // 5:
                begun.set()

    await asyncio.gather(*(searcher() for _ in range(32)))
    return found


async def kill_and_restart(crowd: LocalCrowd, begun: asyncio.Event, down: set[int]) -> None:
    await begun.wait()
    for member in KILLED:
        down.add(member)
        crowd.kill(member)
        await asyncio.sleep(0.3)
    await asyncio.sleep(1)
    for member in KILLED:
        crowd.start(member)
    for member in KILLED:
        await crowd.ready(member)
        down.remove(member)


async def story(folder) -> None:
    async with LocalCrowd(folder, friendships(MEMBERS, seed=1), PATIENT) as crowd:
        await crowd.wait_connected()
        begun, down = asyncio.Event(), set()
        found, _ = await asyncio.gather(search_all(crowd, begun, down), kill_and_restart(crowd, begun, down))
        assert max(found.values()) == 1
        assert sum(found.values()) > QUERIES * 0.8
        assert set(found) <= {text for _, text in crowd.submitted}
        await crowd.wait_connected()  # the killed have rejoined
        for member in range(MEMBERS):
            health = await crowd.health(member)
            counts = Counter(health["counts"])
            assert health["under_way"] == 0
            assert counts["searches_failed"] == counts["protocol_errors"] == 0
            if member not in KILLED:
                assert counts["searches_started"] == counts["searches_answered"]
                assert counts["queries_accepted"] == counts["answers_returned"] + counts["answers_dropped"]
        before = len(crowd.submitted)
        again = [(member, f"again {n} of {member}") for member in KILLED for n in range(10)]
        for member, text in again:
            assert await crowd.search(member, text) == (200, page(text))
        assert {text for _, text in crowd.submitted[before:]} == {text for _, text in again}
        # her friends submit for those who were killed
        assert sum(str(who) not in text.split() for who, text in crowd.submitted[before:]) > 0


def test_every_query_of_a_living_member_is_answered_once_while_three_are_killed(tmp_path):
    asyncio.run(story(tmp_path))
