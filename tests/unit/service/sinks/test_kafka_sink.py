"""The Kafka sink against a client that fails at each step: all lines once in the end, or a clear error."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from querycloak.errors import DataError, Refused, Unavailable
from querycloak.service import kafka_client
from querycloak.service.kafka_client import KafkaRefuses, Rival, parse
from querycloak.service.sinks import kafka_sink
from querycloak.service.sinks.kafka_sink import KafkaSink

confluent_kafka = pytest.importorskip("confluent_kafka")
pytestmark = [pytest.mark.service, pytest.mark.kafka]
KafkaError, KafkaException = confluent_kafka.KafkaError, confluent_kafka.KafkaException


class Broker:
    """One partition with transactions, and the committed offset of the sink's group."""

    def __init__(self) -> None:
        self.committed: list[bytes] = []
        self.offset = -1001
        self.failures: list[tuple[str, int]] = []
        self.producers: list[Producer] = []

    def fail(self, step: str) -> None:
        if self.failures and self.failures[0][0] == step:
            raise KafkaException(KafkaError(self.failures.pop(0)[1], "made up"))


class Producer:
    """A producer that fails where it is told to; a later one fences it."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._open, self._position = broker, list[bytes](), -1
        broker.producers.append(self)

    def _step(self, name: str) -> None:
        if self is not self._broker.producers[-1]:
            raise KafkaException(KafkaError(KafkaError._FENCED, "made up"))
        self._broker.fail(name)

    def init_transactions(self, timeout):
        self._step("init")

    def list_topics(self, topic, timeout):
        self._step("list")
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})

    def begin_transaction(self):
        self._step("begin")
        self._open = []

    def produce_batch(self, topic, messages, partition):
        for place, message in enumerate(messages):
            if place and self._broker.failures[:1] and self._broker.failures[0][0] == "produce":
                message["_error"] = KafkaError(self._broker.failures.pop(0)[1], "made up")
            else:
                self._open.append(message["value"])

    def send_offsets_to_transaction(self, positions, group, timeout):
        self._step("positions")
        self._position = positions[0].offset

    def commit_transaction(self, timeout):
        self._step("commit")
        self._broker.committed += self._open
        self._broker.offset = self._position
        self._step("answer")  # committed, and only the answer is lost

    def poll(self, timeout):
        if self is not self._broker.producers[-1]:
            raise KafkaException(KafkaError(KafkaError._FENCED, "made up", fatal=True))

    def purge(self):
        pass

    def close(self):
        raise KafkaException(KafkaError(KafkaError._FENCED, "made up", fatal=True))


class Group:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def committed(self, positions, timeout):
        self._broker.fail("committed")
        return [SimpleNamespace(offset=self._broker.offset)]

    def consumer_group_metadata(self):
        return None

    def close(self):
        pass


@pytest.fixture
def broker(monkeypatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(kafka_client, "producer", lambda *_: Producer(made))
    monkeypatch.setattr(kafka_client, "consumer", lambda *_, **__: Group(made))
    return made


@pytest.fixture
def sink(broker, tmp_path) -> KafkaSink:
    made = KafkaSink(parse("kafka://host:9092/topic"), tmp_path)
    made.open()
    return made


def batch(first: int, count: int) -> tuple[int, bytes, int]:
    return first, b"".join(b'{"offset":%d}\n' % number for number in range(first, first + count)), count


def numbered(last: int) -> list[bytes]:
    return [b'{"offset":%d}' % number for number in range(1, last + 1)]


def retry(sink: KafkaSink, first: int, count: int) -> None:
    for _ in range(20):
        try:
            return sink.append(*batch(first, count))
        except Unavailable:
            continue
    raise AssertionError("it never worked")


STEPS = ("begin", "produce", "positions", "commit", "answer")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "after", [(), ("init",), ("list",), ("committed",), ("init", "list", "committed", "commit")]
)
def test_after_any_failure_all_lines_are_there_once(broker, sink, step, after):
    broker.failures = [(name, KafkaError._TIMED_OUT) for name in (step, *after)]
    retry(sink, 1, 5)
    assert (broker.committed, broker.offset, sink.last) == (numbered(5), 5, 5)
    assert not broker.failures or step == "answer"
    broker.failures = []
    retry(sink, 4, 5)
    assert (broker.committed, broker.offset) == (numbered(8), 8)


def test_a_fenced_producer_is_replaced_once_and_a_second_time_soon_is_a_rival(broker, sink, monkeypatch):
    Producer(broker)
    with pytest.raises(Unavailable, match="fenced"):
        sink.append(*batch(1, 3))
    sink.append(*batch(1, 3))
    Producer(broker)
    with pytest.raises(Rival, match="another service uses the same name"):
        sink.append(*batch(4, 1))
    monkeypatch.setattr(kafka_sink, "_RIVAL_SECONDS", 0.0)
    sink.append(*batch(4, 1))
    Producer(broker)
    with pytest.raises(Unavailable):
        sink.append(*batch(5, 1))
    assert broker.committed == numbered(4)


def test_lines_that_another_service_wrote_are_noticed(broker, sink):
    sink.append(*batch(1, 3))
    Producer(broker)
    broker.offset = 9  # the rival has written lines 4 to 9
    with pytest.raises(Unavailable):
        sink.append(*batch(4, 2))
    with pytest.raises(Refused, match="line 9 is the last, but this service wrote 3"):
        sink.append(*batch(4, 2))


def test_a_number_that_kafka_has_forgotten_is_not_guessed(broker, sink, tmp_path):
    sink.append(*batch(1, 3))
    broker.offset = -1001
    again = KafkaSink(sink.address, tmp_path)
    with pytest.raises(DataError, match="no longer knows which line"):
        again.open()


def test_a_call_that_hangs_is_left_behind(broker, sink, monkeypatch):
    monkeypatch.setattr(kafka_sink, "_HUNG", 0.2)
    hanging, free = broker.producers[-1], threading.Event()
    monkeypatch.setattr(hanging, "send_offsets_to_transaction", lambda *_: free.wait(), raising=False)
    with pytest.raises(Unavailable, match="does not return"):
        sink.append(*batch(1, 3))
    sink.append(*batch(1, 3))
    assert (broker.committed, broker.producers[-1] is hanging) == (numbered(3), False)
    free.set()


def test_failures_that_do_not_pass_are_raised(broker, sink):
    for code, kind, words in (
        (KafkaError.MSG_SIZE_TOO_LARGE, DataError, "larger than the sink takes"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaRefuses, "Kafka refuses"),
    ):
        broker.failures = [("produce", code)]
        with pytest.raises(kind, match=words):
            sink.append(*batch(1, 3))
    assert broker.committed == []


def test_a_large_batch_is_several_transactions(broker, sink, monkeypatch):
    monkeypatch.setattr(kafka_sink, "_BATCH_BYTES", 60)
    broker.failures = [("commit", KafkaError._TIMED_OUT)]
    retry(sink, 1, 20)
    assert (broker.committed, broker.offset) == (numbered(20), 20)
