"""Kafka as a sink: a transaction holds released lines and the number of the last one."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from querycloak.errors import DataError, QueryCloakError, Unavailable
from querycloak.keys import write_private
from querycloak.service import kafka_client
from querycloak.service.kafka_client import Address, KafkaRefuses, Rival
from querycloak.service.sinks.sink import Sink, new_lines

if TYPE_CHECKING:
    from confluent_kafka import Producer

T = TypeVar("T")
#: Bytes of one transaction, about.
_BATCH_BYTES: Final = 32 << 20
#: Seconds that one step of a transaction may take, and after which a call counts as hung.
_STEP: Final = 10.0
_HUNG: Final = 45.0
#: A producer that is fenced twice within so many seconds has a rival.
_RIVAL_SECONDS: Final = 60.0


class KafkaSink(Sink):
    """Writes lines to one partition, since only a partition keeps an order.

    Each line is there exactly once for readers of committed messages. The number of the last line is the
    committed offset of a consumer group of the sink's own. After any failure the producer is dropped; the
    next one aborts or completes the open transaction and reads the number again.
    """

    def __init__(self, address: Address, folder: Path, after: int = 0) -> None:
        """`after`: the line before the first one, for a sink that is added to an existing stream."""
        self.address, self.last, self._folder = address, after, folder
        self._sent: int | None = None  # the last line that the latest transaction held
        self._id = f"querycloak-sink-{_name_in(folder)}"
        self._group = kafka_client.consumer(address, group=self._id)
        self._producer: Producer | None = None
        self._fenced_at = -_RIVAL_SECONDS
        self._refusal: KafkaRefuses | None = None  # a call then ends by its time limit only

    def open(self) -> None:
        """Take over the transactional id, and read which line is the last."""
        self._refusal = None
        made = kafka_client.producer(self.address, self._id, self._on_error)
        self._call(made, lambda: made.init_transactions(kafka_client.TIMEOUT))
        self._call(made, lambda: kafka_client.partition_count(made, self.address, self.address.partition))
        self._read_last(made)
        self._producer = made

    def _read_last(self, made: Producer) -> None:
        """Read the number of the last line. Refuse to guess one that Kafka has forgotten."""
        marker, topic = self._folder / "kafka-sink", f"{self.address.topic} {self.address.partition}"
        places = [self._position(0)]
        found = self._call(made, lambda: self._group.committed(places, kafka_client.TIMEOUT))[0].offset
        if found >= 0:
            if self._sent is not None and not self.last <= found <= self._sent:
                raise Rival(f"line {found:,} is the last, but this service wrote {self.last:,}")
            self.last = self._sent = found
        elif marker.exists() and marker.read_text("utf-8") == topic:
            raise DataError(
                "Kafka no longer knows which line of the sink is the last",
                hint="its offsets expired (`offsets.retention.minutes`); continue with another topic",
            )
        else:
            self._transaction(made, [])
        write_private(marker, topic.encode())

    def append(self, first: int, lines: bytes, count: int) -> None:
        """Write lines `first` and following, except those that are there. After `Unavailable`, call again."""
        if self._producer is None:
            self.open()
        assert self._producer is not None
        rest, count = new_lines(first, lines, count, self.last, self.address.topic)
        if count:
            for part in kafka_client.split_by_size(rest.split(b"\n")[:-1], _BATCH_BYTES):
                self._transaction(self._producer, part)

    def _transaction(self, made: Producer, lines: Sequence[bytes]) -> None:
        self._sent = self.last + len(lines)
        self._call(made, lambda: self._write(made, lines))
        self.last = self._sent

    def _write(self, made: Producer, lines: Sequence[bytes]) -> None:
        made.begin_transaction()
        messages: list[dict[str, Any]] = [{"value": line} for line in lines]
        made.produce_batch(self.address.topic, messages, partition=self.address.partition)
        if refused := next((one["_error"] for one in messages if "_error" in one), None):
            raise kafka_client.library().KafkaException(refused)
        proof = self._group.consumer_group_metadata()
        made.send_offsets_to_transaction([self._position(self._sent or 0)], proof, _STEP)
        made.commit_transaction(_STEP)

    def _call(self, made: Producer, work: Callable[[], T]) -> T:
        """Call the client. After a failure, drop the producer; one whose call hangs cannot be closed."""
        try:
            return kafka_client.call(work, _HUNG)
        except TimeoutError:
            self._producer = None
            raise Unavailable(
                "Kafka's client does not return from a call", hint="it is tried again"
            ) from None
        except kafka_client.library().KafkaException as error:
            self._producer = None
            with contextlib.suppress(kafka_client.library().KafkaException):  # a fenced one raises again
                made.poll(0)  # calls `_on_error`
            threading.Thread(target=_discard, args=(made,), daemon=True).start()
            raise self._failure(error.args[0]) from None

    def _failure(self, error: Any) -> QueryCloakError:
        """Return what a failure means; a producer can be fenced once because a transaction took too long."""
        if self._refusal is not None:
            return self._refusal
        codes = kafka_client.library().KafkaError
        fenced = (codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH, codes._FATAL)
        if not error.fatal() and error.code() not in (*fenced, codes.INVALID_PRODUCER_ID_MAPPING):
            return kafka_client.translate(error)
        before, self._fenced_at = self._fenced_at, time.monotonic()
        if self._fenced_at - before < _RIVAL_SECONDS:
            return Rival(error.name())
        return Unavailable(f"Kafka fenced the producer ({error.name()}); a new one is made")

    def _on_error(self, error: Any) -> None:
        if isinstance(failure := kafka_client.translate(error), KafkaRefuses):
            self._refusal = failure

    def _position(self, offset: int) -> Any:
        topic, partition = self.address.topic, self.address.partition
        return kafka_client.library().TopicPartition(topic, partition, offset)

    def close(self) -> None:
        """Close the connections."""
        made, self._producer = self._producer, None
        _discard(made)
        self._group.close()


def _discard(made: Producer | None) -> None:
    """Forget what a producer has not sent. It ends with its last reference."""
    if made is not None:
        with contextlib.suppress(kafka_client.library().KafkaException):  # a fenced one raises again
            made.purge()


def _name_in(folder: Path) -> str:
    """Return the random name that identifies a state folder in Kafka; create it on first use."""
    path = folder / "kafka-name"
    if not path.exists():
        write_private(path, secrets.token_hex(8).encode())
    return path.read_text("ascii")
