"""Kafka in and out, with a real broker: killed and restarted, nothing is lost, doubled, or another byte."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import polars as pl
import pytest

from querycloak.engines.pipeline import parse_stages
from querycloak.errors import DataError, Refused, Unavailable
from querycloak.keys import Secret, derive
from querycloak.service.entries import Entry
from querycloak.service.intake import cleaned, parse
from querycloak.service.kafka import address
from querycloak.service.kafka.outlet import KafkaOutlet
from querycloak.service.kafka.service import LaneService
from querycloak.service.kafka.store import LocalLanes
from querycloak.service.pseudonyms import Pseudonyms
from querycloak.service.settings import setup
from querycloak.service.sinks.released import ReleasedLog
from querycloak.service.stream import Stream
from tests.support.crash_test import crash
from tests.support.kafka_topics import BEGIN, Sent, Topics, record_lines, spread
from tests.support.logs import made_up
from tests.support.servers.process import wait_until
from tests.support.service_process import LiveService

pytestmark = [pytest.mark.kafka, pytest.mark.service, pytest.mark.slow, pytest.mark.timeout(1800)]
#: `QUERYCLOAK_KILLS=200` for the full trial.
KILLS = int(os.environ.get("QUERYCLOAK_KILLS", "6"))
COHORT = ("-m", "cohort", "-s", "k=3")
CALM = ("--seed", "1", "-o", "classify=false", "-o", "snapshot_seconds=0.3")
PARTITIONS = 3


@pytest.fixture
def topics(kafka) -> Topics:
    return Topics(kafka)


def log(users: int, seed: int = 3) -> list[bytes]:
    """Records of a made-up log, each in a topic of its own choice among four."""
    frame = made_up(users=users, seed=seed).frame
    topic = pl.col("query").str.len_chars() % 4
    return record_lines(frame.with_columns(category=pl.lit("Topic/") + topic.cast(pl.String)))


def expected(sent: list[Sent], partition: int) -> list[bytes]:
    """What a plain stream releases that is given the messages of a partition, a few at a time."""
    secret = derive(derive(Secret.from_seed(1).value, "service"), "lane", str(partition))
    stream, names = Stream(parse_stages(["cohort"], {"k": "3"}), secret), Pseudonyms(secret, 0)
    mine = [one for one in sent if one.partition == partition]
    frame = cleaned([parse(one.value, lines=True) for one in mine], 0).frame
    frame = frame.with_columns(user=pl.Series(names.of(frame["user"]), dtype=pl.String))
    parts = [
        stream.apply([Entry("records", 1, frame[start : start + 97])]) for start in range(0, frame.height, 97)
    ]
    return [line for part in parts for line in part.lines().split(b"\n")[:-1]]


def until_read(service: LiveService, records: int) -> dict[str, int]:
    """Wait until the service has applied so many records, and committed what leaves."""

    def done() -> bool:
        return service.status()["accepted"] >= records and service.client.get("/readyz").status_code == 200

    wait_until(done, f"{records} records are read", 300)
    return service.settled()


def compare(topics: Topics, sink: str, wanted: dict[int, list[bytes]]) -> tuple[int, int]:
    """Give how many lines are lost and how many doubled; then see that not one byte differs."""
    found = topics.read(sink, len(wanted))
    lost = sum(len(set(wanted[p]) - set(found[p])) for p in wanted)
    doubled = sum(len(found[p]) - len(set(found[p])) for p in wanted)
    assert (lost, doubled) == (0, 0)
    assert found == wanted
    return lost, doubled


class Lanes:
    """A service from topic to topic, and what it should release."""

    def __init__(self, topics: Topics, folder: Path, users: int, **environment: str) -> None:
        self.topics, self.source, self.sink = topics, topics.make(PARTITIONS), topics.make(PARTITIONS)
        self.sent = spread(log(users), PARTITIONS)
        self.wanted = {number: expected(self.sent, number) for number in range(PARTITIONS)}
        addresses = ("--source", topics.url(self.source, group=self.source), "--sink", topics.url(self.sink))
        self.service = LiveService(folder / "state", *COHORT, *CALM, *addresses, environment=environment)

    def check(self, kills: int) -> dict[str, object]:
        """See that all is there once, byte for byte; sum up."""
        counts = until_read(self.service, len(self.sent))
        lost, doubled = compare(self.topics, self.sink, self.wanted)
        assert counts["accepted"] == len(self.sent)
        assert counts["released"] == sum(map(len, self.wanted.values())) > 0
        assert counts["accepted"] == counts["released"] + counts["held"] + counts["dropped"]
        asked = {json.loads(one.value)["query"] for one in self.sent}
        written = self.service.log()
        assert not [query for query in asked if len(query) > 8 and query in written]
        return {
            "kills": kills,
            "in": counts["accepted"],
            "out": counts["released"],
            "held": counts["held"],
            "lost": lost,
            "doubled": doubled,
        }


@pytest.fixture
def lanes(topics, tmp_path) -> Iterator[Lanes]:
    made = Lanes(topics, tmp_path, users=30 + 10 * KILLS)
    yield made
    made.service.kill()


def test_kills_and_a_crash_of_the_broker_lose_nothing(lanes, kafka, topics):
    draw = random.Random(4)
    share = len(lanes.sent) // (KILLS + 2) + 1
    lanes.service.start()
    for round_ in range(KILLS):
        topics.write(lanes.source, lanes.sent[round_ * share : (round_ + 1) * share])
        time.sleep(draw.random() * 0.6)
        lanes.service.kill()
        lanes.service.start()
    topics.write(lanes.source, lanes.sent[KILLS * share : (KILLS + 1) * share])
    time.sleep(draw.random() * 0.3)
    kafka.restart(hard=True)
    topics.write(lanes.source, lanes.sent[(KILLS + 1) * share :])
    print(json.dumps(lanes.check(KILLS)))
    assert lanes.service.stop() == 0
    lanes.service.start()  # nothing is to be done again
    lanes.check(KILLS)


@pytest.mark.postgres
def test_profiles_in_postgres_are_exact_after_kills(topics, tmp_path, postgres, postgres_url):
    lanes = Lanes(topics, tmp_path, 40, QUERYCLOAK_SERVE_PROFILES=postgres_url)
    half = len(lanes.sent) // 2
    with lanes.service as service:
        for part in (lanes.sent[:half], lanes.sent[half:-50], lanes.sent[-50:]):
            topics.write(lanes.source, part)
            time.sleep(0.4)
            service.kill()
            if part[0] is lanes.sent[half]:
                postgres.restart(hard=True)
            service.start()
        print(json.dumps(lanes.check(3)))
        released = Counter(json.loads(line)["user"] for lines in lanes.wanted.values() for line in lines)
        for label, count in released.items():
            wait_until(lambda: counted(service, label) == count, "the profiles are written", 30)  # noqa: B023


def counted(service: LiveService, label: str) -> int:
    """Ask how many lines of a label the profiles count."""
    answer = service.client.post("/v1/profiles", json={"label": label})
    return sum(answer.json().values()) if answer.status_code == 200 else 0


def test_a_broker_that_stops_while_records_flow(lanes, kafka, topics):
    half = len(lanes.sent) // 2
    lanes.service.start()
    topics.write(lanes.source, lanes.sent[:half])
    kafka.stop(hard=True)
    wait_until(lambda: lanes.service.client.get("/readyz").status_code == 503, "the broker is missed")
    assert lanes.service.client.get("/healthz").status_code == 200
    kafka.start()
    topics.write(lanes.source, lanes.sent[half:])
    lanes.check(0)


def test_routes_of_a_service_from_topic_to_topic(lanes, topics):
    lanes.service.start()
    topics.write(lanes.source, lanes.sent)
    until_read(lanes.service, len(lanes.sent))
    client = lanes.service.client
    refused = lanes.service.post([lanes.sent[0].value + b"\n"])
    assert refused.status_code == 422
    assert refused.json()["error"]["message"].startswith("the source of this service is a Kafka topic")
    assert client.get("/v1/released").status_code == 404
    assert client.get("/v1/released", params={"wait": 1}).status_code == 404
    assert client.get("/v1/overview").json()["source"] == "kafka"
    assert "querycloak_records_accepted" in client.get("/metrics").text
    label = json.loads(lanes.wanted[0][0])["user"]
    count = sum(json.loads(line)["user"] == label for lines in lanes.wanted.values() for line in lines)
    wait_until(lambda: counted(lanes.service, label) == count, "all are counted")


def test_messages_that_are_no_records_are_counted_and_left_out(topics, tmp_path):
    source, sink = topics.make(1), topics.make(1)
    good = log(20)
    batch = b"\n".join(good[:5])  # several records may come in one message, as lines or as an array
    listed = b"[" + b",".join(good[5:10]) + b"]"
    bad = [b"", b"{", b"\xff\xfe", b'{"query": "nobody asked"}', b'{"user": "u", "query": "x", "time": "?"}']
    values = [batch, *bad, listed, good[10] + b"\n{broken\n", *good[11:]]
    sent = [Sent(0, BEGIN + number, value) for number, value in enumerate(values)]
    topics.write(source, sent)
    with in_process(topics, tmp_path, source, sink) as service:
        wait_until(lambda: service.status()["accepted"] >= len(good), "all is read", 120)
        assert service.status()["accepted"] == len(good)
        assert service.skipped() == {"not JSON": 3, "not UTF-8": 1, "no user": 1, "unreadable time": 1}


class in_process:
    """A service of lanes in the test's own process."""

    def __init__(self, topics: Topics, folder: Path, source: str, sink: str, **options: object) -> None:
        urls = {"source": topics.url(source, group=source), "sink": topics.url(sink)}
        given = {"state": str(folder / "own"), "classify": False, "snapshot_seconds": 0.3} | urls | options
        self._service = LaneService(setup(given, ["cohort"], {"k": "3"}, seed=1, environment={}))

    def __enter__(self) -> LaneService:
        self._service.open()
        self._service.start()
        return self._service

    def __exit__(self, *_: object) -> None:
        self._service.stop()


def test_a_sink_with_fewer_partitions_says_which_lane_a_line_is_of(topics, tmp_path):
    source, sink = topics.make(PARTITIONS), topics.make(2)
    sent = spread(log(30), PARTITIONS)
    topics.write(source, sent)
    with in_process(topics, tmp_path, source, sink) as service:
        wait_until(lambda: service.status()["accepted"] == len(sent) and service.worker.ready, "all is read")
    found = topics.read(sink, 2, headers=True)
    for lane in range(PARTITIONS):
        name = [("lane", str(lane).encode())]
        mine = [value for headers, value in found[lane % 2] if headers == name]
        assert mine == expected(sent, lane)


def test_lanes_move_between_two_services_that_share_a_store(topics, tmp_path):
    """One joins, then one leaves: each lane goes on where it was, and no line is there twice."""
    source, sink = topics.make(PARTITIONS), topics.make(PARTITIONS)
    sent = spread(log(40), PARTITIONS)
    third = len(sent) // 3
    wanted = {number: expected(sent, number) for number in range(PARTITIONS)}

    def one(name: str) -> LaneService:
        made = in_process(topics, tmp_path / name, source, sink)
        service = made._service
        service.store = LocalLanes(tmp_path / "shared")
        service.open()
        service.start()
        return service

    def both_read(records: int) -> bool:
        return sum(service.status()["accepted"] for service in services) == records

    services = [one("first")]
    topics.write(source, sent[:third])
    wait_until(lambda: both_read(third), "the first reads all")
    services.append(one("second"))
    wait_until(lambda: all(service.worker.lanes for service in services), "the second has lanes too")
    topics.write(source, sent[third : 2 * third])
    wait_until(lambda: both_read(2 * third), "both read")
    services.pop(0).stop()
    topics.write(source, sent[2 * third :])
    wait_until(lambda: both_read(len(sent)) and services[0].worker.ready, "the second reads all")
    services.pop().stop()
    assert topics.read(sink, PARTITIONS) == wanted


def shut_out(kafka, name: str) -> None:
    """Take a producer's name, as the broker does when a transaction took too long."""
    from confluent_kafka import Producer

    rival = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name, "log_level": 0})
    rival.init_transactions(30)


def test_a_producer_that_was_given_up_begins_anew_once(topics, tmp_path, kafka):
    source, sink = topics.make(PARTITIONS), topics.make(PARTITIONS)
    sent = spread(log(40), PARTITIONS)
    half = len(sent) // 2
    with in_process(topics, tmp_path, source, sink) as service:
        name = f"querycloak-{source}-{(service.folder / 'kafka-name').read_text()}"
        topics.write(source, sent[:half])
        wait_until(lambda: service.status()["accepted"] == half and service.worker.ready, "half is read")
        shut_out(kafka, name)
        topics.write(source, sent[half:-1])
        wait_until(
            lambda: service.status()["accepted"] == len(sent) - 1 and service.worker.ready, "more is read"
        )
        assert not service.failure()
        shut_out(kafka, name)  # again, so soon: somebody else has this name
        topics.write(source, sent[-1:])
        wait_until(lambda: bool(service.failure()), "it ends")
        assert isinstance(service.over, Refused)
        assert "another service uses the same name" in service.failure()
    found = topics.read(sink, PARTITIONS)
    wanted = {number: expected(sent[:-1], number) for number in range(PARTITIONS)}
    assert found == wanted


def test_an_outlet_knows_its_last_line_again(topics, tmp_path, kafka):
    def numbered(first: int, count: int) -> tuple[int, bytes, int]:
        return first, b"".join(b'{"offset":%d,"user":"x"}\n' % n for n in range(first, first + count)), count

    def opened(folder: str, after: int = 0) -> KafkaOutlet:
        (tmp_path / folder).mkdir(exist_ok=True)
        made = KafkaOutlet(address.parse(topics.url(topic)), tmp_path / folder, after)
        made.open()
        return made

    topic = topics.make(1)
    outlet = opened("one", after=10)  # a sink that was added to a service that runs
    outlet.append(*numbered(8, 5))
    outlet.append(*numbered(11, 4))
    with pytest.raises(DataError, match="ends with line 14"):
        outlet.append(*numbered(16, 1))
    outlet.close()
    outlet = opened("one")
    assert outlet.last == 14
    shut_out(kafka, f"querycloak-sink-{(tmp_path / 'one' / 'kafka-name').read_text()}")
    with pytest.raises(Unavailable):
        outlet.append(*numbered(15, 2))
    outlet.append(*numbered(15, 2))
    shut_out(kafka, f"querycloak-sink-{(tmp_path / 'one' / 'kafka-name').read_text()}")
    with pytest.raises(Refused, match="another service uses the same name"):
        outlet.append(*numbered(17, 1))
    outlet.close()
    assert [json.loads(line)["offset"] for line in topics.read(topic, 1)[0]] == list(range(11, 17))
    copied = tmp_path / "two"  # a folder that wrote here before, and whose last line Kafka does not know
    copied.mkdir()
    (copied / "kafka-sink").write_text(f"{topic} 0")
    with pytest.raises(DataError, match="no longer knows"):
        opened("two")


def test_what_waits_too_long_is_dropped(topics, tmp_path):
    source, sink = topics.make(1), topics.make(1)
    topics.write(source, [Sent(0, BEGIN, b'{"user": "u", "query": "q", "category": "A"}')])
    with in_process(topics, tmp_path, source, sink, hold_seconds=1) as service:
        wait_until(lambda: service.status()["dropped"] == 1, "it is dropped")
        wait_until(lambda: service.worker.ready and not service.trouble(), "that is committed")
    with in_process(topics, tmp_path, source, sink, hold_seconds=1) as service:
        wait_until(lambda: service.status()["dropped"] == 1, "it is known again")
    assert topics.read(sink, 1)[0] == []


def test_another_number_of_partitions_is_refused(topics, tmp_path, kafka):
    source, sink = topics.make(2), topics.make(2)
    with in_process(topics, tmp_path, source, sink):
        pass
    from confluent_kafka.admin import AdminClient, NewPartitions

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    admin.create_partitions([NewPartitions(source, 3)])[source].result(30)
    wait_until(
        lambda: len(admin.list_topics(source, timeout=10).topics[source].partitions) == 3, "it has three"
    )
    with pytest.raises(Refused, match="with 2 partitions"):
        in_process(topics, tmp_path, source, sink).__enter__()


def test_records_that_kafka_no_longer_has_are_missed_aloud(topics, tmp_path, kafka):
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    source, sink = topics.make(1), topics.make(1)
    sent = [Sent(0, BEGIN + number, value) for number, value in enumerate(log(20))]
    topics.write(source, sent[:100])
    with in_process(topics, tmp_path, source, sink) as service:
        wait_until(lambda: service.status()["accepted"] == 100 and service.worker.ready, "all is read")
    topics.write(source, sent[100:])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for done in admin.delete_records([TopicPartition(source, 0, 150)]).values():
        done.result(30)
    with in_process(topics, tmp_path, source, sink) as service:
        wait_until(lambda: bool(service.failure()), "it is missed")
        assert isinstance(service.over, DataError)
        assert "offset 100 is needed, but Kafka's first is 150" in service.failure()


def test_an_erased_person_is_gone_from_the_state_and_stays_gone_after_a_kill(topics, tmp_path):
    source, sink = topics.make(2), topics.make(2)
    sent = spread(log(40), 2)
    planted = json.dumps({"user": "planted-user", "query": "planted query zzqx", "category": "Rare/One"})
    half = len(sent) // 2
    mine = Sent(1, sent[half].stamp, planted.encode())
    addresses = ("--source", topics.url(source, group=source), "--sink", topics.url(sink))
    service = LiveService(tmp_path / "state", "-m", "swap", "-s", "k=3", *CALM, *addresses)
    with service:
        topics.write(source, [*sent[:half], mine])
        until_read(service, half + 1)
        export = service.client.post("/v1/exports", json={"user": "planted-user"}).json()
        assert [row["query"] for row in export["held"]] == ["planted query zzqx"]
        state = tmp_path / "state"
        wait_until(lambda: bool(holding(state, b"planted query zzqx")), "a snapshot has it")
        erased = service.client.post("/v1/erasures", json={"user": "planted-user"}).json()
        assert erased["held"] == 1
        assert service.client.post("/v1/exports", json={"user": "planted-user"}).json()["held"] == []
        service.kill()
        assert not holding(state, b"planted query zzqx")
        service.start()
        topics.write(source, sent[half:])
        counts = until_read(service, len(sent) + 1)
        assert counts["accepted"] == counts["released"] + counts["held"] + counts["dropped"]
        before = topics.read(sink, 2)
        turned = service.client.post("/v1/epochs").json()
        assert turned["epoch"] == 1
        service.kill()
        service.start()
        until_read(service, len(sent) + 1)
        assert service.status()["epoch"] == 1
        after = topics.read(sink, 2)
    lines = [line for part in after.values() for line in part]
    assert len(set(lines)) == len(lines)
    assert all(after[number][: len(before[number])] == before[number] for number in after)
    assert not [line for line in lines if b"zzqx" in line]
    assert "planted" not in service.log()


def holding(folder: Path, text: bytes) -> list[Path]:
    """Find the files that hold a text, unpacked where they are packed."""
    import zstandard

    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            start = data.find(b"\x28\xb5\x2f\xfd")
            unpacked = (
                zstandard.ZstdDecompressor().decompressobj().decompress(data[start:]) if start >= 0 else b""
            )
            if text in data or text in unpacked:
                found.append(path)
    return found


def test_http_in_and_kafka_out_while_service_and_broker_are_killed(topics, tmp_path, kafka):
    sink = topics.make(1)
    lines = [line + b"\n" for line in log(60)]
    few = max(2, KILLS // 2)

    def now_and_then(done: int) -> None:
        if done == 1:
            kafka.restart(hard=True)

    found = crash(
        tmp_path,
        lines,
        *COHORT,
        *CALM,
        kills=few,
        seed=5,
        disturbed=("--sink", topics.url(sink)),
        progress=now_and_then,
    )
    assert (found.lost, found.doubled, found.same_bytes) == (0, 0, True)
    released = ReleasedLog(tmp_path / "wild" / "released")
    released.open()
    assert topics.read(sink, 1)[0] == released.read(0, 10**9).split(b"\n")[:-1]
    print(json.dumps(found.as_dict()))


def test_kafka_in_and_http_out_while_the_service_is_killed(topics, tmp_path):
    source = topics.make(1)
    sent = [Sent(0, BEGIN + n, value) for n, value in enumerate([*log(60), b"not a record"])]
    draw, few = random.Random(6), max(2, KILLS // 2)
    share = len(sent) // few + 1
    wild = LiveService(
        tmp_path / "wild", *COHORT, *CALM, "--source", topics.url(source, group=f"{source}-wild")
    )
    with wild:
        for start in range(0, len(sent), share):
            topics.write(source, sent[start : start + share])
            time.sleep(draw.random() * 0.5)
            wild.kill()
            wild.start()
        counts = until_read(wild, len(sent) - 1)
        found = wild.released()
    calm = LiveService(
        tmp_path / "calm", *COHORT, *CALM, "--source", topics.url(source, group=f"{source}-calm")
    )
    with calm:
        assert until_read(calm, len(sent) - 1) == counts
        assert calm.released() == found
    assert counts["accepted"] == len(sent) - 1
    assert found


def test_two_services_of_one_name_do_not_both_go_on(topics, tmp_path):
    """A copied state folder: the older service is shut out, and ends with a clear word."""
    import shutil

    source, sink = topics.make(1), topics.make(1)
    addresses = ("--source", topics.url(source, group=source), "--sink", topics.url(sink))
    first = LiveService(tmp_path / "first", *COHORT, *CALM, *addresses)
    second = LiveService(tmp_path / "second", *COHORT, *CALM, *addresses)
    sent = [Sent(0, BEGIN + number, value) for number, value in enumerate(log(20))]
    with first:
        topics.write(source, sent[:50])
        until_read(first, 50)
        assert first.stop() == 0
        shutil.copytree(tmp_path / "first", tmp_path / "second")
        first.start()
        with second:
            wait_until(lambda: not answers(first), "the first one ends", 120)
            topics.write(source, sent[50:])
            until_read(second, len(sent))
    assert "another service uses the same name in Kafka" in first.log()
    assert topics.read(sink, 1)[0] == expected(sent, 0)


def answers(service: LiveService) -> bool:
    try:
        service.client.get("/healthz")
    except httpx.TransportError:
        return False
    return True
