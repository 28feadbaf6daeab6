"""Kafka as a source: the positions of all partitions are durable in the entries that hold the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from querycloak.errors import DataError, QueryCloakError, Unavailable
from querycloak.formats.validation import NOT_JSON
from querycloak.log import IntArray
from querycloak.service import kafka_client
from querycloak.service.ingest.parse import ParsedBody, parse, parse_plain
from querycloak.service.kafka_client import Address
from querycloak.service.sources.source import PAUSE, Source

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, TopicPartition

T = TypeVar("T")
#: Messages of one entry of the write-ahead log, at most; seconds to wait for them; their bytes.
BATCH: Final = 5_000
POLL: Final = 0.1
_BATCH_BYTES: Final = 8 << 20


class KafkaSource(Source):
    """Reads the partitions of a topic. The group's offsets are for Kafka's own tools only."""

    def __init__(self, address: Address) -> None:
        super().__init__("querycloak-kafka")
        self.address = address
        self._consumer = kafka_client.consumer(address, on_error=self._on_error)

    def stop(self) -> None:
        """Stop reading, and close the consumer."""
        super().stop()
        self._consumer.close()

    def _run(self) -> None:
        try:
            partitions = self._assign()
            while not self._stopping.is_set():
                some = self._consumer.consume(BATCH, POLL)
                for partition, messages in self._by_partition(some).items():
                    self._take(partition, messages)
                if self._trouble and not some:  # the broker was away: find out whether it still is
                    self._retry(lambda: self._ends(partitions[0]))
        except QueryCloakError as error:
            if not self._stopping.is_set():
                self._report(error.message)

    def _assign(self) -> range:
        """Assign the partitions at their positions; a new one's position is durable before it is read."""
        own = self.address.partitions or range(1)
        count = self._retry(lambda: kafka_client.partition_count(self._consumer, self.address, own[-1]))
        partitions = self.address.partitions or range(count)
        ends = {number: self._retry(lambda: self._ends(number)) for number in partitions}  # noqa: B023
        place = 0 if self.address.start == "earliest" else 1
        if new := {_key(n): ends[n][place] for n in partitions if _key(n) not in self._read}:
            self._until_durable(ParsedBody([], [], 0), new)
        for number, (low, _) in ends.items():
            if (following := self._read[_key(number)]) < low:
                raise DataError(
                    f"partition {number}: offset {following:,} is next, but Kafka's first is {low:,}",
                    hint="the retention of the topic is shorter than the time that the service was stopped",
                )
        self._consumer.assign([self._position(number) for number in partitions])
        return partitions

    def _ends(self, partition: int) -> tuple[int, int]:
        place = kafka_client.library().TopicPartition(self.address.topic, partition)
        found: tuple[int, int] = self._consumer.get_watermark_offsets(place, kafka_client.TIMEOUT)
        return found

    def _by_partition(self, some: Sequence[Message]) -> dict[int, list[Message]]:
        found: dict[int, list[Message]] = {}
        for message in some:
            if (error := message.error()) is None:
                found.setdefault(message.partition() or 0, []).append(message)
            elif isinstance(failure := kafka_client.translate(error), Unavailable):
                self._report(failure.message)
            else:
                raise failure
        return found

    def _take(self, partition: int, messages: list[Message]) -> None:
        for part in kafka_client.split_by_size(messages, _BATCH_BYTES):
            if not self._until_durable(parse_messages(part), {_key(partition): (part[-1].offset() or 0) + 1}):
                return
        self._consumer.commit(offsets=[self._position(partition)], asynchronous=True)

    def _retry(self, work: Callable[[], T]) -> T:
        """Call until the broker answers; raise what does not pass."""
        while True:
            try:
                found = work()
                self._trouble = ""
                return found
            except kafka_client.library().KafkaException as error:
                failure = kafka_client.translate(error.args[0])
            except Unavailable as error:
                failure = error
            if not isinstance(failure, Unavailable) or self._stopping.wait(PAUSE):
                raise failure
            self._report(failure.message)

    def _on_error(self, error: KafkaError) -> None:
        """Report that no broker answers or lets us in; the client continues by itself when one does."""
        codes = kafka_client.library().KafkaError
        away = (codes._ALL_BROKERS_DOWN, codes._TRANSPORT, codes._TIMED_OUT, codes._RESOLVE)
        if error.code() in (*away, codes._AUTHENTICATION):
            self._report(kafka_client.translate(error).message)

    def _position(self, partition: int) -> TopicPartition:
        made: TopicPartition = kafka_client.library().TopicPartition(
            self.address.topic, partition, self._read[_key(partition)]
        )
        return made


def _key(partition: int) -> str:
    return f"kafka {partition}"


def parse_messages(messages: Sequence[Message]) -> ParsedBody:
    """Parse messages: each value is one JSON record, an array of records, or JSON lines.

    Records without a time get that of their message: it is the same at every reading.
    """
    values = [message.value() or b"" for message in messages]
    milliseconds = np.array([message.timestamp()[1] for message in messages], np.int64)
    stamps: IntArray = np.maximum(milliseconds, 0) * 1000
    parsed = _one_record_each(values) or _one_by_one(values)
    assert parsed.message_index is not None
    return replace(parsed, arrival_times=stamps[parsed.message_index])


def _one_record_each(values: list[bytes]) -> ParsedBody | None:
    """Parse values of one line each in one call. Return None if they are not."""
    body = b"\n".join(values)
    parsed = parse_plain(body, lines=True) if body.count(b"\n") == len(values) - 1 else None
    if parsed is None or parsed.size != len(values):
        return None
    return replace(parsed, message_index=np.arange(parsed.size))


def _one_by_one(values: list[bytes]) -> ParsedBody:
    found = [_parse_value(value) for value in values]
    records = [record for one in found for record in one.records]
    parts = np.repeat(np.arange(len(found)), [len(one.records) for one in found])
    starts = np.cumsum([0, *(one.size for one in found)]).tolist()
    bad: dict[str, list[int]] = {}
    for one, start in zip(found, starts, strict=False):
        for reason, rows in one.bad.items():
            bad.setdefault(reason, []).extend((rows + start).tolist())
    faults = {reason: np.asarray(rows, np.int64) for reason, rows in bad.items()}
    return ParsedBody(records, range(len(records)), starts[-1], faults, message_index=parts)


def _parse_value(value: bytes) -> ParsedBody:
    if not value.strip():
        return ParsedBody([], [], 1, {NOT_JSON: np.array([0])})
    return parse_plain(value, lines=False) or parse(value, lines=True)
