"""Transactions that fail at each step, in each way: all is sent once in the end, or a clear word is said."""

from __future__ import annotations

import threading

import pytest

from querycloak.errors import DataError, Unavailable
from querycloak.service.kafka import client
from querycloak.service.kafka import transactions as transactions_module
from querycloak.service.kafka.address import parse
from querycloak.service.kafka.transactions import Fenced, Load, Stuck, Transactions

confluent_kafka = pytest.importorskip("confluent_kafka")
pytestmark = [pytest.mark.service, pytest.mark.kafka]
KafkaError, KafkaException = confluent_kafka.KafkaError, confluent_kafka.KafkaException
AGAIN = {"retriable": True}
ABORT = {"txn_requires_abort": True}
FATAL = {"fatal": True}


class Producer:
    """A broker that does what it is told, and fails where it is told to."""

    def __init__(self) -> None:
        self.committed: list[bytes] = []
        self.positions: list[object] = []
        self._open: list[bytes] | None = None
        self.failures: list[tuple[str, dict[str, bool], int]] = []

    def _fail(self, step: str) -> None:
        if self.failures and self.failures[0][0] == step:
            _, kind, code = self.failures.pop(0)
            raise KafkaException(KafkaError(code, "made up", **kind))

    def init_transactions(self, timeout):
        self._fail("init")

    def begin_transaction(self):
        self._fail("begin")
        assert self._open is None
        self._open = []

    def produce_batch(self, topic, messages, partition):
        for place, message in enumerate(messages):
            if place:
                self._fail("produce")
            self._open.append(message["value"])

    def send_offsets_to_transaction(self, positions, group, timeout):
        self._fail("positions")
        self._positions = positions

    def commit_transaction(self, timeout):
        self._fail("commit")
        self.committed += self._open
        self.positions, self._open = self._positions, None
        self._fail("answer")

    def abort_transaction(self, timeout):
        self._fail("abort")
        self._open = None

    def purge(self):
        pass

    def close(self):
        raise KafkaException(KafkaError(KafkaError._FENCED, "made up", fatal=True))

    def __len__(self):
        return 0


@pytest.fixture
def made(monkeypatch):
    producer = Producer()
    monkeypatch.setattr(client, "producer", lambda *_: producer)
    transactions = Transactions(parse("kafka://host:9092/topic"), "name")
    transactions.open()
    return transactions, producer


def insist(transactions: Transactions, lines: list[bytes], position: int) -> int:
    """Send until it works, as the worker and the runner do; count the tries."""
    for tries in range(1, 20):
        try:
            transactions.send([Load(0, lines)], [position])
        except Unavailable:
            continue
        return tries
    raise AssertionError("it never worked")


@pytest.mark.parametrize(
    "failures",
    [
        [("begin", AGAIN)],
        [("produce", AGAIN)],
        [("produce", {})],
        [("produce", ABORT)],
        [("positions", AGAIN), ("positions", AGAIN)],
        [("positions", ABORT)],
        [("commit", AGAIN), ("commit", AGAIN)],
        [("commit", ABORT)],
        [("commit", ABORT), ("abort", AGAIN), ("abort", AGAIN)],
        [("produce", ABORT), ("abort", AGAIN), ("positions", ABORT), ("commit", AGAIN)],
    ],
    ids=lambda failures: " ".join(f"{step}-{'-'.join(kind)}" for step, kind in failures),
)
def test_whatever_passes_ends_with_all_lines_once(made, failures):
    transactions, producer = made
    producer.failures = [(step, kind, KafkaError._TIMED_OUT) for step, kind in failures]
    assert insist(transactions, [b"a", b"b", b"c"], 3) == len(failures) + 1 - aborts(failures)
    assert producer.committed == [b"a", b"b", b"c"]
    assert (producer.positions, transactions.under_way) == ([3], False)
    insist(transactions, [b"d"], 4)
    assert producer.committed == [b"a", b"b", b"c", b"d"]
    assert not producer.failures


def aborts(failures) -> int:
    """An abort that fails first is a part of the try that it belongs to."""
    pairs = zip([("", {}), *failures], failures, strict=False)
    return sum(step == "abort" and before != "abort" for (before, _), (step, _) in pairs)


@pytest.mark.parametrize("step", ["begin", "produce", "positions", "commit"])
def test_one_that_is_shut_out_says_so_and_can_be_opened_again(made, step):
    transactions, producer = made
    producer.failures = [(step, FATAL, KafkaError._FENCED)]
    with pytest.raises(Fenced):
        transactions.send([Load(0, [b"a", b"b"])], [2])
    assert not transactions.is_open
    with pytest.raises(Fenced):
        transactions.send([Load(0, [b"a", b"b"])], [2])
    producer._open = None  # the broker gives up what was open under the name
    transactions.open()
    insist(transactions, [b"a", b"b"], 2)
    assert producer.committed == [b"a", b"b"]


def test_a_client_that_does_not_come_back_is_left_behind(made, monkeypatch):
    transactions, producer = made
    monkeypatch.setattr(transactions_module, "STUCK", 0.2)
    for_ever = threading.Event()
    monkeypatch.setattr(producer, "send_offsets_to_transaction", lambda *_: for_ever.wait(), raising=False)
    with pytest.raises(Stuck):
        transactions.send([Load(0, [b"a", b"b"])], [2])
    assert (transactions.is_open, transactions.under_way) == (False, False)
    for_ever.set()
    monkeypatch.undo()
    monkeypatch.setattr(client, "producer", lambda *_: producer)
    producer._open = None
    transactions.open()
    insist(transactions, [b"a", b"b"], 2)
    assert producer.committed == [b"a", b"b"]


def test_a_line_that_the_sink_does_not_take_is_told(made):
    transactions, producer = made
    producer.failures = [("produce", {}, KafkaError.MSG_SIZE_TOO_LARGE)]
    with pytest.raises(DataError, match="larger than the sink takes"):
        transactions.send([Load(0, [b"a", b"b"])], [2])
    assert producer.committed == []


def test_a_lack_of_rights_is_told(made):
    transactions, producer = made
    producer.failures = [("positions", {}, KafkaError.GROUP_AUTHORIZATION_FAILED)]
    with pytest.raises(DataError, match="Kafka refuses"):
        transactions.send([Load(0, [b"a"])], [1])
