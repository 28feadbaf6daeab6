"""Kafka in and out, with a real broker: killed and restarted, nothing is lost, doubled, or another byte."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import polars as pl
import pytest

from querycloak.errors import DataError, Refused, Unavailable
from querycloak.service import kafka_client
from querycloak.service.ingest.group_commit import PendingRequest
from querycloak.service.ingest.parse import parse
from querycloak.service.service import Service
from querycloak.service.settings import setup
from querycloak.service.sinks import kafka_sink
from querycloak.service.sinks.database import Database
from querycloak.service.sinks.kafka_sink import KafkaSink
from querycloak.service.sinks.released_log import ReleasedLog
from tests.support.crash_test import crash
from tests.support.kafka_topics import BEGIN, Sent, Topics, record_lines, spread
from tests.support.logs import made_up
from tests.support.servers.process import wait_until
from tests.support.service_process import LiveService

pytestmark = [pytest.mark.kafka, pytest.mark.service, pytest.mark.timeout(1800)]
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


def until_read(service: LiveService, records: int) -> dict[str, int]:
    """Wait until the service has applied so many records, and committed what leaves."""

    def done() -> bool:
        return service.status()["accepted"] >= records and service.client.get("/readyz").status_code == 200

    wait_until(done, f"{records} records are read", 300)
    return service.settled()


class TopicToTopic:
    """A service from a topic with several partitions to one partition of another."""

    def __init__(self, topics: Topics, folder: Path, users: int, **environment: str) -> None:
        self.topics, self.source, self.sink = topics, topics.make(PARTITIONS), topics.make(1)
        self.sent = spread(log(users), PARTITIONS)
        addresses = ("--source", topics.url(self.source, group=self.source), "--sink", topics.url(self.sink))
        self.service = LiveService(folder / "state", *COHORT, *CALM, *addresses, environment=environment)

    def check(self, kills: int) -> dict[str, object]:
        """See that each record was accepted once, and that the sink has the released log, byte for byte."""
        counts = until_read(self.service, len(self.sent))
        lines = self.service.released().split(b"\n")[:-1]
        found = self.topics.read(self.sink, 1)[0]
        lost, doubled = len(set(lines) - set(found)), len(found) - len(set(found))
        assert (lost, doubled) == (0, 0)
        assert found == lines
        assert [json.loads(line)["offset"] for line in lines] == list(range(1, len(lines) + 1))
        assert counts["accepted"] == len(self.sent)
        assert counts["released"] == len(lines) > 0
        assert counts["accepted"] == counts["released"] + counts["held"] + counts["dropped"]
        queries = {json.loads(one.value)["query"] for one in self.sent}
        written = self.service.log()
        assert not [query for query in queries if len(query) > 8 and query in written]
        return {
            "kills": kills,
            "in": counts["accepted"],
            "out": counts["released"],
            "held": counts["held"],
            "lost": lost,
            "doubled": doubled,
        }


@pytest.fixture
def pair(topics, tmp_path) -> Iterator[TopicToTopic]:
    made = TopicToTopic(topics, tmp_path, users=60)
    yield made
    made.service.kill()


TRIALS = [pytest.param(3, 1, id="3 kills"), pytest.param(50, 5, marks=pytest.mark.nightly, id="50 kills")]


@pytest.mark.parametrize(("kills", "crashes"), TRIALS)
def test_kills_and_crashes_of_the_broker_lose_and_double_nothing(topics, tmp_path, kafka, kills, crashes):
    pair, draw = TopicToTopic(topics, tmp_path, users=30 + 10 * kills), random.Random(4)
    share = len(pair.sent) // (kills + crashes + 1) + 1
    shares = [pair.sent[start : start + share] for start in range(0, len(pair.sent), share)]
    rounds = ["kill"] * kills + ["crash"] * crashes
    draw.shuffle(rounds)
    with pair.service as service:
        for some, what in zip(shares, rounds, strict=False):
            topics.write(pair.source, some)
            time.sleep(draw.random() * 0.6)
            if what == "crash":
                kafka.restart(hard=True)
            else:
                service.kill()
                service.start()
        for some in shares[len(rounds) :]:
            topics.write(pair.source, some)
        print(json.dumps(pair.check(kills) | {"crashes": crashes}))
        assert service.stop() == 0
        service.start()  # nothing is to be done again
        pair.check(kills)


@pytest.mark.postgres
def test_profiles_in_postgres_are_exact_after_kills(topics, tmp_path, postgres, postgres_url):
    pair = TopicToTopic(topics, tmp_path, 40, QUERYCLOAK_SERVE_PROFILES=postgres_url)
    half = len(pair.sent) // 2
    with pair.service as service:
        for part in (pair.sent[:half], pair.sent[half:-50], pair.sent[-50:]):
            topics.write(pair.source, part)
            time.sleep(0.4)
            service.kill()
            if part[0] is pair.sent[half]:
                postgres.restart(hard=True)
            service.start()
        print(json.dumps(pair.check(3)))
        released = Counter(json.loads(line)["user"] for line in service.released().splitlines())
        for label, count in released.items():
            wait_until(lambda: counted(service, label) == count, "the profiles are written", 30)  # noqa: B023


def counted(service: LiveService, label: str) -> int:
    """Ask how many lines of a label the profiles count."""
    answer = service.client.post("/v1/profiles", json={"label": label})
    return sum(answer.json().values()) if answer.status_code == 200 else 0


def test_a_broker_that_stops_while_records_flow(pair, kafka, topics):
    half = len(pair.sent) // 2
    pair.service.start()
    topics.write(pair.source, pair.sent[:half])
    kafka.stop(hard=True)
    wait_until(lambda: pair.service.client.get("/readyz").status_code == 503, "the broker is missed")
    assert pair.service.client.get("/healthz").status_code == 200
    kafka.start()
    topics.write(pair.source, pair.sent[half:])
    pair.check(0)


def test_calls_that_hang_in_a_frozen_broker(topics, tmp_path, kafka, monkeypatch):
    """The broker takes connections and answers nothing, as behind a lost network: calls hang, then go on."""
    sink, lines = topics.make(1), log(40)
    half = len(lines) // 2
    with in_process(topics, tmp_path, None, sink) as service:
        service.submit(PendingRequest("records", parse(b"\n".join(lines[:half]), lines=True))).result(60)
        wait_until(lambda: not service.state().health.text, "half is written")
        with kafka.frozen(), monkeypatch.context() as patch:
            patch.setattr(kafka_sink, "_HUNG", 1.0)  # at other times, a busy machine may take longer
            service.submit(PendingRequest("records", parse(b"\n".join(lines[half:]), lines=True))).result(60)
            wait_until(lambda: "does not return from a call" in service.state().health.text, "it hangs")
        wait_until(lambda: not service.state().health.text, "the rest is written", 300)
    released = service.state().status()["released"]
    assert service.state().status()["accepted"] == len(lines)
    numbers = [json.loads(line)["offset"] for line in topics.read(sink, 1)[0]]
    assert numbers == list(range(1, released + 1))
    assert released > half // 2


def test_two_services_split_the_partitions_of_a_topic(topics, tmp_path):
    source, sent = topics.make(PARTITIONS), spread(log(40), PARTITIONS)
    topics.write(source, sent)
    for partitions in (range(2), range(2, 3)):
        sink, name = topics.make(1), f"{partitions[0]}-{partitions[-1]}"
        own = sum(one.partition in partitions for one in sent)
        with in_process(topics, tmp_path / name, source, sink, partitions=name) as service:
            wait_until(lambda: service.state().status()["accepted"] >= own, "its share is read")  # noqa: B023
        counts = service.state().status()  # a service that stops has written all that leaves
        assert 0 < counts["accepted"] == own < len(sent)
        assert len(topics.read(sink, 1)[0]) == counts["released"]


def test_routes_of_a_service_from_topic_to_topic(pair, topics):
    pair.service.start()
    topics.write(pair.source, pair.sent)
    until_read(pair.service, len(pair.sent))
    client = pair.service.client
    assert client.get("/v1/released").status_code == 200
    assert client.post("/v1/ubi/queries", json=[]).status_code != 500
    assert client.get("/v1/overview").json()["source"] == "kafka"
    assert "querycloak_records_accepted" in client.get("/metrics").text
    labels = [json.loads(line)["user"] for line in pair.service.released().splitlines()]
    label, count = labels[0], labels.count(labels[0])
    wait_until(lambda: counted(pair.service, label) == count, "all are counted")


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
        wait_until(lambda: service.state().status()["accepted"] >= len(good), "all is read", 120)
        assert service.state().status()["accepted"] == len(good)
        reasons = {"not JSON": 3, "not UTF-8": 1, "no user": 1, "unreadable time": 1}
        # The source counts when its message is answered, a moment after the records are accepted.
        wait_until(lambda: service._source.skipped.total() >= sum(reasons.values()), "all are counted", 120)
        assert dict(service._source.skipped) == reasons


class in_process:
    """A service in the test's own process."""

    def __init__(
        self,
        topics: Topics,
        folder: Path,
        source: str | None,
        sink: str,
        partitions: str = "",
        **options: object,
    ) -> None:
        split = {"partitions": partitions} if partitions else {}
        urls = {"sink": topics.url(sink)}
        if source:
            urls["source"] = topics.url(source, group=f"{source}{partitions}", **split)
        given = {"state": str(folder / "own"), "classify": False, "snapshot_seconds": 0.3} | urls | options
        self._service = Service(setup(given, ["cohort"], {"k": "3"}, seed=1, environment={}))

    def __enter__(self) -> Service:
        self._service.open()
        self._service.start()
        return self._service

    def __exit__(self, *_: object) -> None:
        self._service.stop()


def shut_out(kafka, name: str) -> None:
    """Take a producer's name, as the broker does when a transaction took too long."""
    from confluent_kafka import Producer

    rival = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name, "log_level": 0})
    rival.init_transactions(30)


def test_a_sink_knows_its_last_line_again(topics, tmp_path, kafka):
    def numbered(first: int, count: int) -> tuple[int, bytes, int]:
        return first, b"".join(b'{"offset":%d,"user":"x"}\n' % n for n in range(first, first + count)), count

    def opened(folder: str, after: int = 0) -> KafkaSink:
        (tmp_path / folder).mkdir(exist_ok=True)
        made = KafkaSink(kafka_client.parse(topics.url(topic)), tmp_path / folder, after)
        made.open()
        return made

    topic = topics.make(1)
    sink = opened("one", after=10)  # a sink that was added to a service that runs
    sink.append(*numbered(8, 5))
    sink.append(*numbered(11, 4))
    with pytest.raises(DataError, match="ends with line 14"):
        sink.append(*numbered(16, 1))
    sink.close()
    sink = opened("one")
    assert sink.last == 14
    shut_out(kafka, f"querycloak-sink-{(tmp_path / 'one' / 'kafka-name').read_text()}")
    with pytest.raises(Unavailable):
        sink.append(*numbered(15, 2))
    sink.append(*numbered(15, 2))
    shut_out(kafka, f"querycloak-sink-{(tmp_path / 'one' / 'kafka-name').read_text()}")
    with pytest.raises(Refused, match="another service uses the same name"):
        sink.append(*numbered(17, 1))
    sink.close()
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
        wait_until(lambda: service.state().status()["dropped"] == 1, "it is dropped")
        wait_until(lambda: not service.state().health.text, "that is committed")
    with in_process(topics, tmp_path, source, sink, hold_seconds=1) as service:
        wait_until(lambda: service.state().status()["dropped"] == 1, "it is known again")
    assert topics.read(sink, 1)[0] == []


def test_records_that_kafka_no_longer_has_are_missed_aloud(topics, tmp_path, kafka):
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    source, sink = topics.make(1), topics.make(1)
    sent = [Sent(0, BEGIN + number, value) for number, value in enumerate(log(20))]
    topics.write(source, sent[:100])
    with in_process(topics, tmp_path, source, sink) as service:
        wait_until(lambda: service.state().status()["accepted"] == 100, "all is read")
    topics.write(source, sent[100:])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for done in admin.delete_records([TopicPartition(source, 0, 150)]).values():
        done.result(30)
    with in_process(topics, tmp_path, source, sink) as service:
        wait_until(
            lambda: "offset 100 is next, but Kafka's first is 150" in service.state().health.text,
            "it is missed",
        )


def test_an_erased_person_is_gone_from_the_state_and_stays_gone_after_a_kill(topics, tmp_path):
    source, sink = topics.make(2), topics.make(1)
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
        before = topics.read(sink, 1)
        turned = service.client.post("/v1/epochs").json()
        assert turned["epoch"] == 1
        service.kill()
        service.start()
        until_read(service, len(sent) + 1)
        assert service.status()["epoch"] == 1
        after = topics.read(sink, 1)
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
    few = 2

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
    released = ReleasedLog(Database(tmp_path / "wild" / "service.sqlite"))
    assert topics.read(sink, 1)[0] == released.read(0, 10**9).split(b"\n")[:-1]
    print(json.dumps(found.as_dict()))


def test_kafka_in_and_http_out_while_the_service_is_killed(topics, tmp_path):
    source = topics.make(1)
    sent = [Sent(0, BEGIN + n, value) for n, value in enumerate([*log(60), b"not a record"])]
    draw, few = random.Random(6), 2
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
            both, one = (first, second), iter(sent[50:])
            while all(map(answers, both)):
                topics.write(source, [next(one)])
            last, ended = sorted(both, key=answers, reverse=True)
            wait_until(lambda: "another service uses the same name in Kafka" in ended.log(), "it says why")
            topics.write(source, one)
            until_read(last, len(sent))
            assert topics.read(sink, 1)[0] == last.released().split(b"\n")[:-1]


def answers(service: LiveService) -> bool:
    try:
        return service.client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False
