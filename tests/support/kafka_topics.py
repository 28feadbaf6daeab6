"""Topics of a test broker, seen from outside: filled with messages, and read to the end."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tests.support.servers.kafka import LocalKafka
from tests.support.servers.process import LIMIT

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

#: The Kafka timestamp of the first message, in milliseconds; each later one has one more. It is now, since
#: a broker forgets messages that are older than its retention.
BEGIN = time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Sent:
    """One message as it was written: where, when, and what."""

    partition: int
    stamp: int
    value: bytes


def record_lines(frame: pl.DataFrame) -> list[bytes]:
    """Write records as JSON, one message each, in the order of their times."""
    names = [name for name in ("user", "query", "time", "rank", "url", "category") if name in frame.columns]
    rows = frame.sort("time", maintain_order=True).select(names).to_dicts()
    return [json.dumps(row, default=lambda value: value.isoformat()).encode() for row in rows]


def spread(values: Sequence[bytes], partitions: int) -> list[Sent]:
    """Deal messages out to partitions by the user in them, as a producer with that key would."""
    found = []
    for number, value in enumerate(values):
        user = json.loads(value)["user"]
        found.append(Sent(sum(user.encode()) % partitions, BEGIN + number, value))
    return found


class Topics:
    """Makes, fills and reads topics; writes each message once, also over a restart of the broker."""

    def __init__(self, kafka: LocalKafka) -> None:
        from confluent_kafka import Producer

        self._kafka = kafka
        self._producer = Producer(
            {"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True, "log_level": 0, "linger.ms": 5}
        )

    def make(self, partitions: int) -> str:
        """Make a topic with a name that no other has."""
        name = f"t{secrets.token_hex(6)}"
        self._kafka.create_topic(name, partitions)
        return name

    def url(self, topic: str, **parameters: str) -> str:
        """Return a topic's address for the service."""
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"kafka://{self._kafka.bootstrap}/{topic}" + (f"?{query}" if query else "")

    def write(self, topic: str, messages: Iterable[Sent]) -> None:
        """Write messages, and return when the broker has them."""
        failed: list[str] = []

        def delivered(error: KafkaError | None, message: object) -> None:
            if error is not None:  # `flush` counts these among those that are done with
                failed.append(error.name())

        for one in messages:
            while True:
                try:
                    self._producer.produce(
                        topic, one.value, partition=one.partition, timestamp=one.stamp, on_delivery=delivered
                    )
                except BufferError:
                    self._producer.poll(0.1)
                    continue
                break
        assert self._producer.flush(LIMIT) == 0
        assert not failed, f"{len(failed)} messages were not written ({failed[0]})"

    def read(self, topic: str, partitions: int, headers: bool = False) -> dict[int, list[Any]]:
        """Read what is committed, to the end; values, or pairs of headers and value."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        found: dict[int, list[Any]] = {number: [] for number in range(partitions)}
        choices = {"group.id": f"reader-{secrets.token_hex(4)}", "isolation.level": "read_committed"}
        choices |= {"enable.auto.commit": "false", "enable.partition.eof": "true", "log_level": "0"}
        consumer = Consumer(choices | {"bootstrap.servers": self._kafka.bootstrap})
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        open_ends = set(range(partitions))
        while open_ends:
            for message in consumer.consume(10_000, 0.2):
                error = message.error()
                if error is None:
                    value = (message.headers(), message.value()) if headers else message.value()
                    found[message.partition() or 0].append(value)
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_ends.discard(message.partition() or 0)
        consumer.close()
        return found
