"""Several services on one topic: lanes move between them, and nobody can tell from what is released."""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from querycloak.errors import DataError, NotFound, ParameterError, Refused, Unavailable
from querycloak.service.kafka import address, client, heritage
from querycloak.service.kafka import board as boards
from querycloak.service.kafka.board import Asked, Board, _packed, answer_name, packed
from querycloak.service.kafka.errands import SharedErrands
from querycloak.service.kafka.lane import Mark
from querycloak.service.kafka.service import LaneService
from querycloak.service.kafka.shared import KafkaLanes
from querycloak.service.kafka.transactions import Fenced, Stale
from querycloak.service.monitor.metrics import Metrics
from querycloak.service.settings import setup
from querycloak.service.sinks.profiles import open_store
from querycloak.service.wal import Cipher
from tests.integration.service.sharing import GOOD, Sharing, is_ready, make_topic
from tests.support.kafka_topics import Sent, Topics
from tests.support.servers.process import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.service, pytest.mark.slow, pytest.mark.timeout(600)]
CIPHER = Cipher(b"c" * 32)


@pytest.fixture
def sharing(kafka, tmp_path, request) -> Iterator[Sharing]:
    made = Sharing(kafka, tmp_path, *getattr(request, "param", (2, 40)))
    yield made
    made.end()


@pytest.mark.parametrize("sharing", [(8, 120)], indirect=True)
def test_a_third_joins_and_two_are_killed(sharing):
    """Every stretch of the log meets another set of services; it ends as if one had read it all."""
    first, second = sharing.start_two("first", "second")
    sharing.write(0, 0.3)
    sharing.until_read(0.3)
    third = sharing.start("third")
    sharing.write(0.3, 0.5)  # while lanes move
    wait_until(lambda: third.status()["accepted"] > 0, "the third has lanes")
    sharing.write(0.5, 0.6)
    sharing.until_read(0.6)
    sharing.write(0.6, 0.8)
    sharing.kill(first)
    sharing.until_read(0.8)
    sharing.write(0.8, 0.9)
    sharing.kill(third)
    sharing.write(0.9, 1)
    sharing.until_read()
    sharing.check()
    counts = second.status()
    assert counts["accepted"] == len(sharing.sent)
    assert counts["accepted"] == counts["released"] + counts["held"] + counts["dropped"]
    asked = {json.loads(one.value)["query"] for one in sharing.sent}
    written = "".join(service.log() for service in (first, second, third))
    assert not [query for query in asked if len(query) > 8 and query in written]


def test_one_that_slept_writes_nothing(sharing):
    """Its lanes are others' when it wakes up, in the middle of whatever it did: it begins anew."""
    sleeper, other = sharing.start_two("sleeper", "other")
    sharing.write(0, 0.3)
    sharing.until_read(0.3)
    os.kill(sleeper.process, signal.SIGSTOP)
    sharing.services.remove(sleeper)
    sharing.write(0.3, 0.6)
    sharing.until_read(0.6)  # the other one has all lanes now
    os.kill(sleeper.process, signal.SIGCONT)
    sharing.services.append(sleeper)
    wait_until(lambda: is_ready(sleeper), "it has lanes again")
    sharing.write(0.6, 1)
    sharing.until_read()
    assert all(service.status()["accepted"] for service in (sleeper, other))
    sharing.check()


class Member:
    """A consumer in a group, polled by hand; gives proofs that stay what they were."""

    def __init__(self, kafka, topic: str, name: str) -> None:
        from confluent_kafka import Consumer

        own = {"group.id": topic, "group.instance.id": name, "enable.auto.commit": False, "log_level": 0}
        quick = {"session.timeout.ms": 2000, "heartbeat.interval.ms": 200}
        sticky = {"partition.assignment.strategy": "cooperative-sticky"}
        self.consumer = Consumer(own | quick | sticky | {"bootstrap.servers": kafka.bootstrap})
        self.consumer.subscribe([topic])

    def has(self, count: int) -> bool:
        self.consumer.poll(0.1)
        return len(self.consumer.assignment()) == count


def test_an_old_proof_is_refused_and_a_name_that_was_taken_shuts_out(kafka):
    topics, lanes = Topics(kafka), make_topic(kafka, 2, **GOOD)
    source = address.parse(topics.url(topic := topics.make(1), group=topic))

    def store(name: str) -> KafkaLanes:
        return KafkaLanes(address.parse(topics.url(lanes)), replace(source, group=topic), 1, CIPHER, name)

    first = Member(kafka, topic, "a")
    wait_until(lambda: first.has(1), "the first has the lane")
    old = first.consumer.consumer_group_metadata()
    before = store("a")
    before.join(lambda: old)
    before.open(0, None)
    kept = before.save(0, Mark(5, by="a"), b"first")
    first.consumer.close()  # a fixed member does not leave: its session ends, and the group goes on
    second = Member(kafka, topic, "b")
    wait_until(lambda: second.has(1), "the second has the lane")
    now = store("b")
    proof = second.consumer.consumer_group_metadata()
    now.join(lambda: proof)
    mark = committed(source)
    assert (mark, mark.kept, mark.by) == (Mark(5), kept, "a")
    now.open(0, mark)
    assert now.newest(0) == (5, b"first")
    assert now.note(0, mark, b"asked") == 1
    for write in (
        lambda: before.save(0, Mark(9, by="a"), b"stale"),
        lambda: before.note(0, Mark(9, by="a"), b"stale"),
        lambda: before.tell(0, Mark(9, by="a"), {"answer/x/0": b"stale"}),
        lambda: before.open(0, replace(mark, by="a")),  # it slept while it loaded the lane
    ):
        with pytest.raises(Stale):
            write()
    large = os.urandom(2_500_000)
    kept = now.save(0, Mark(8, 3, 1, by="b"), large)
    assert (committed(source), committed(source).kept) == (Mark(8, 3, 1), kept)
    heritage.give_up(source, [0], "c")  # whoever asks: the owner is still there, and left alone
    kept = now.save(0, Mark(9, 3, 1, by="b"), b"small again")
    heritage.give_up(replace(source, group=f"{topic}-2"), [0], "c")  # nobody had it
    second.consumer.close()
    third = Member(kafka, topic, "c")
    wait_until(lambda: third.has(1), "the third has the lane")
    heritage.give_up(source, [0], "c")
    with pytest.raises(Fenced):
        now.save(0, Mark(10, by="b"), b"stale")
    after = store("c")
    after.join(third.consumer.consumer_group_metadata)
    after.open(0, committed(source))
    assert after.newest(0) == (9, b"small again")
    assert list(after.notes(0, 0)) == []  # it is in the snapshot
    assert not after._kept[0].parts  # those of the large one are gone
    third.consumer.close()
    for one in (before, now, after):
        one.leave()


def committed(source: address.Address) -> Mark:
    """Ask what the group has committed for partition 0."""
    kafka = client.library()
    asking = client.consumer(source)
    found = asking.committed([kafka.TopicPartition(source.topic, 0)], 30)[0]
    asking.close()
    return Mark.read(found.offset, found.metadata)


def test_what_is_asked_reaches_every_lane(sharing, kafka):
    """Whichever service is asked; and lanes that are nobody's at the moment answer when somebody has them."""
    one, other = sharing.start_two("one", "other", "-m", "swap", "-s", "k=3")
    stamp = sharing.sent[0].stamp
    value = {"user": "planted-user", "query": "planted query zzqx", "category": "Rare/One"}
    both = [Sent(lane, stamp, json.dumps(value).encode()) for lane in range(2)]
    sharing.topics.write(sharing.source, both)
    sharing.write(0, 0.5)
    wait_until(lambda: sharing.accepted() == 2 + len(sharing.sent) // 2, "all is read")
    wait_until(lambda: all(service.status()["accepted"] for service in (one, other)), "both have lanes")
    wait_until(lambda: holding(sharing, kafka) == [0, 1], "snapshots hold the person")
    person = {"user": "planted-user"}
    export = one.client.post("/v1/exports", json=person).json()
    assert [record["query"] for record in export["held"]] == ["planted query zzqx"] * 2
    assert other.client.post("/v1/exports", json=person).json() == export
    erased = one.client.post("/v1/erasures", json=person)
    assert (erased.status_code, erased.json()["held"]) == (200, 2)
    assert holding(sharing, kafka) == []
    assert other.client.post("/v1/exports", json=person).json()["held"] == []
    sharing.kill(one)
    turned = other.client.post("/v1/epochs", timeout=90).json()
    assert turned["epoch"] == 1
    assert other.status()["epoch"] == 1
    sharing.write(0.5, 1)
    wait_until(lambda: sharing.accepted() == 2 + len(sharing.sent) and is_ready(other), "all is read")
    lines = [line for part in sharing.topics.read(sharing.sink, 2).values() for line in part]
    assert len(set(lines)) == len(lines) == other.status()["released"]
    assert not [line for line in lines if b"zzqx" in line]
    assert not [service for service in (one, other) if "planted" in service.log()]
    assert board_of(sharing).requests() == []


def board_of(sharing: Sharing, seconds: float = 0.0) -> Board:
    """Look at what is asked of all lanes."""
    found = Board(address.parse(sharing.topics.url(sharing.lanes)), 2, Cipher.from_file(sharing.key))
    found.start()
    time.sleep(seconds)
    found.stop()
    return found


def holding(sharing: Sharing, kafka) -> list[int]:
    """Name the lanes whose newest snapshot, or a note after it, holds the planted query."""
    lanes = address.parse(sharing.topics.url(sharing.lanes))
    store = KafkaLanes(lanes, lanes, 2, Cipher.from_file(sharing.key), "nobody")
    found = []
    for lane in range(2):
        store.open(lane, None)
        snapshot = store.newest(lane)
        assert snapshot is not None
        whole = zstandard.decompress(snapshot[1]) + b"".join(data for _, data in store.notes(lane, 0))
        found += [lane] if b"planted query zzqx" in whole else []
    store.leave()
    return found


def test_lanes_that_do_not_answer_are_told_and_asked_again_in_full(kafka, monkeypatch):
    topics, lanes = Topics(kafka), make_topic(kafka, 3, **GOOD)
    place = address.parse(topics.url(lanes))
    board, elsewhere = Board(place, 2, CIPHER), Board(place, 2, CIPHER)
    board.start()
    elsewhere.start()
    for _ in range(2):
        with pytest.raises(Unavailable, match="2 of 2 lanes have not answered"):
            board.ask("erasure", {"user": "u"}, 0.3)
    with pytest.raises(Unavailable):
        board.ask("export", {"user": "u"}, 0.3)  # nobody waits for it any more: it is taken back
    wait_until(lambda: len(elsewhere.requests()) == 2, "two requests are left")
    first, second = elsewhere.requests()
    assert (first.kind, first.facts) == ("erasure", {"user": "u", "since": []})
    assert (second.kind, second.facts) == ("erasure", {"user": "u", "since": [first.id]})
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(one.ask, "erasure", {"user": "u"}, 30) for one in (board, elsewhere)]
        wait_until(lambda: bool(board._waiting and elsewhere._waiting), "both wait")
        wait_until(lambda: len(elsewhere.requests()) == 4, "each asks for itself")
        for asked in elsewhere.requests():
            for lane in range(2):
                name = answer_name(asked.id, lane)
                elsewhere._write(elsewhere._pieces.cut(name, packed({"held": lane})))
        assert [one.result() for one in waiting] == [{0: {"held": 0}, 1: {"held": 1}}] * 2
    wait_until(lambda: not (board.requests() or board._found or elsewhere._found), "nothing is left")
    assert board.next_epoch() == 1
    wait_until(lambda: bool(elsewhere._found), "the epoch is known")
    assert elsewhere.next_epoch() == 2
    monkeypatch.setattr(boards, "LEFT_OVER", 0.5)  # of a service that died before it saw the answers
    left = {"asked/x": _packed(Asked("x", "erasure", {"user": "v"}, time.time()))}
    for name, data in (left | {answer_name("x", lane): packed({"held": 0}) for lane in range(2)}).items():
        elsewhere._write(elsewhere._pieces.cut(name, data))
    wait_until(lambda: "asked/x" in board._found, "it is there")
    wait_until(lambda: not [key for key in board._found if "/x" in key], "it is cleared away")
    monkeypatch.setattr(boards, "REFRESHED", 0.0)
    wait_until(lambda: "tick" in board._found, "something new is written")
    board.stop()
    elsewhere.stop()


def in_process(sharing: Sharing, **more: str) -> LaneService:
    """Make a service in the test's own process."""
    options = {"state": str(sharing.folder / "own"), "classify": "no", "state_key": str(sharing.key)}
    options |= {"source": sharing.topics.url(sharing.source, group=sharing.source), "profiles": "none"}
    options |= {"sink": sharing.topics.url(sharing.sink), "lanes": sharing.topics.url(sharing.lanes)}
    environment = {f"QUERYCLOAK_SERVE_{name.upper()}": text for name, text in (options | more).items()}
    return LaneService(setup({}, ["cohort"], {"k": "3"}, seed=1, environment=environment))


def test_what_was_done_and_not_answered_is_answered_by_the_next_owner(sharing, monkeypatch):
    record = {"user": "planted-user", "query": "planted query", "category": "Rare/One"}
    sharing.topics.write(sharing.source, [Sent(0, sharing.sent[0].stamp, json.dumps(record).encode())])
    service = in_process(sharing)
    service.open()
    service.start()
    wait_until(lambda: service.status()["held"] == 1, "it waits")
    with monkeypatch.context() as silent:
        silent.setattr(SharedErrands, "_answer", lambda *_: None)
        with pytest.raises(Unavailable, match="2 of 2 lanes have not answered"):
            service._board.ask("erasure", {"user": "planted-user"}, 2)
        service.stop()
    later = record | {"query": "planted since then"}
    sharing.topics.write(sharing.source, [Sent(0, sharing.sent[0].stamp, json.dumps(later).encode())])
    service = in_process(sharing)
    service.open()
    service.start()
    wait_until(lambda: service.status()["held"] == 1, "what she asked since then waits")
    assert service.erase("planted-user") == {"held": 2, "released": 0, "dropped": 2}
    assert list(service.worker.lanes[0].stream.strangers.erased.values()) == [2]  # each request once
    assert service.export("planted-user")["held"] == []
    assert service.erase("planted-user") == {"held": 0, "released": 0, "dropped": 0}
    service.stop()


def test_a_lane_that_cannot_be_loaded_is_parked_and_the_others_go_on(sharing, caplog, monkeypatch):
    """Another program committed for partition 1: its messages stay where they are, partition 0 is read."""
    monkeypatch.setattr(logging.getLogger("querycloak.service"), "propagate", True)
    source = address.parse(sharing.topics.url(sharing.source, group=sharing.source))
    foreign = client.library().TopicPartition(source.topic, 1, 0, "of another program")
    asking = client.consumer(source)
    asking.commit(offsets=[foreign], asynchronous=False)
    sharing.write(0, 1)
    mine = [one for one in sharing.sent if one.partition == 0]
    service = in_process(sharing)
    service.open()
    service.start()
    wait_until(lambda: service.status()["accepted"] == len(mine), "lane 0 is read")
    assert service.parked == (1,)
    assert service.over is None
    assert service.trouble().startswith("lane 1 is parked: the group's offsets were committed by another")
    assert b"querycloak_lanes_parked 1.0" in Metrics(service.watch).text()
    with pytest.raises(Unavailable, match="1 of 2 lanes have not answered"):
        service._board.ask("erasure", {"user": "nobody"}, 3)
    service.stop()
    after = asking.committed([foreign], 30)[0]
    asking.close()
    assert (after.offset, after.metadata) == (0, "of another program")
    assert len([one for one in caplog.records if "parked" in str(one.msg)]) == 1
    found = sharing.topics.read(sharing.sink, 2)
    assert (found[0], found[1]) == (sharing.wanted[0], [])


def test_a_lane_to_which_nothing_comes_is_kept_anew_now_and_then(sharing, monkeypatch):
    """Else Kafka would never compact the file in which what was erased still lies."""
    service = in_process(sharing)
    service.open()
    service.start()
    wait_until(lambda: len(service.worker.lanes) == 2, "it has all lanes")
    before = [lane.kept for lane in service.worker.in_order()]
    assert min(before) >= 0
    monkeypatch.setattr("querycloak.service.kafka.runner.REFRESHED", 0.1)
    wait_until(
        lambda: all(a < b.kept for a, b in zip(before, service.worker.in_order(), strict=True)), "kept"
    )
    service.stop()


@pytest.mark.postgres
def test_profiles_count_each_line_once_wherever_its_lane_is(sharing, postgres_url, monkeypatch):
    """An owner is killed; then one writes late what it counted: the lane is loaded anew, counts the rest."""
    killed = sharing.start("killed", environment={"QUERYCLOAK_SERVE_PROFILES": postgres_url}, profiles=None)
    sharing.write(0, 0.4)
    sharing.until_read(0.4)
    sharing.kill(killed)
    monkeypatch.setattr("querycloak.service.tally.SECONDS", 0.0)
    service = in_process(sharing, profiles=postgres_url)
    service.open()
    service.start()
    sharing.write(0.4, 0.7)
    wait_until(lambda: service.status()["accepted"] == int(0.7 * len(sharing.sent)), "some is read")
    lane = service.worker.lanes[0]
    wait_until(lambda: lane.tally.store.last == lane.counts.released > 0, "all of it is counted")
    late = open_store(postgres_url, f"{sharing.source} partition-0")
    monkeypatch.setattr("querycloak.service.tally.SECONDS", 3600.0)
    sharing.write(0.7, 1)
    wait_until(lambda: service.status()["accepted"] == len(sharing.sent) and service.worker.ready, "all is")
    lines = [json.loads(line) for line in sharing.wanted[0][late.last : late.last + 5]]
    assert service.worker.lanes[0].tally.store.last == late.last < len(sharing.wanted[0]) - 5
    late.add(late.last + 5, [(line["user"], line["category"], 1) for line in lines])
    monkeypatch.setattr("querycloak.service.tally.SECONDS", 0.0)
    wait_until(lambda: service.worker.lanes.get(0, lane) is not lane, "the lane is loaded anew")
    released = Counter(json.loads(line)["user"] for lines in sharing.wanted.values() for line in lines)
    for label, count in released.items():
        wait_until(lambda: sum(known(service, label).values()) == count, "exact", 30)  # noqa: B023
    late.close()
    service.stop()
    sharing.check()


def known(service: LaneService, label: str) -> dict[str, int]:
    """Ask for a label's profile; it has none while nothing of it is counted."""
    try:
        return service.profile(label)
    except NotFound:
        return {}


def test_services_that_differ_and_topics_that_do_not_do_are_refused(kafka, tmp_path):
    topics = Topics(kafka)
    source, sink, lanes = topics.make(2), topics.make(2), make_topic(kafka, 3, **GOOD)
    compact = {"cleanup.policy": "compact"}
    files = {name: secret_file(tmp_path, name) for name in ("key", "other-key", "secret", "other-secret")}
    usual = {
        "source": topics.url(source, group=source),
        "sink": topics.url(sink),
        "lanes": topics.url(lanes),
        "state_key": files["key"],
        "secret_file": files["secret"],
        "profiles": "none",
        "classify": "no",
    }

    def opened(k: str = "3", seed: int | None = None, **other: str) -> None:
        given = {"state": str(tmp_path / "state")} | usual | other
        service = LaneService(setup(given, ["cohort"], {"k": k}, seed=seed, environment={}))
        service.open()
        service.start()
        service.stop()

    opened()
    opened()  # the same again
    for changed, what in (
        ({"secret_file": files["other-secret"]}, "another secret or seed"),
        ({"secret_file": "", "seed": 7}, "another secret or seed"),
        ({"k": "4"}, "another methods or their settings"),
        ({"sink": topics.url(topics.make(2))}, "another sink"),
        ({"source": topics.url(topics.make(2), group=source)}, "another source"),
        (
            {"source": topics.url(source, group="g2"), "classify": "yes"},
            "another group and another `classify`",
        ),
        ({"lanes": topics.url(make_topic(kafka, 2, **GOOD))}, "has 2 partitions; it needs 3"),
        ({"lanes": topics.url(topics.make(3))}, "clean-up policy `delete`"),
        (
            {"lanes": topics.url(make_topic(kafka, 3, **compact))},
            "max.compaction.lag.ms",
        ),
        ({"lanes": topics.url(make_topic(kafka, 3, **GOOD, **{"max.message.bytes": "5000"}))}, "max.message"),
    ):
        with pytest.raises(Refused, match=what) as refused:
            opened(**changed)
        assert refused.value.hint
    with pytest.raises(DataError, match="cannot be used") as missing:
        opened(lanes=topics.url("not-there"))
    assert "kafka-topics.sh --create --topic not-there --partitions 3" in missing.value.hint
    with pytest.raises(DataError, match="does not open"):
        opened(state_key=files["other-key"])
    for changed, what in (
        ({"state_key": ""}, "give a key"),
        ({"secret_file": ""}, "one secret"),
        ({"profiles": "sqlite"}, "do not move with lanes"),
        ({"lanes": topics.url(source)}, "topic of their own"),
    ):
        with pytest.raises(ParameterError, match=what):
            opened(**changed)


def secret_file(folder: Path, name: str) -> str:
    path = folder / name
    path.write_text(name * 8)
    path.chmod(0o600)
    return str(path)
