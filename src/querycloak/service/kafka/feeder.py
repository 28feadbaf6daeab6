"""A thread that feeds the door from a topic; how far it has read is made durable with what it read."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from querycloak.errors import Busy, DataError, QueryCloakError, Unavailable
from querycloak.service.ingest.parse import ParsedBody
from querycloak.service.kafka import client, messages
from querycloak.service.kafka.address import Address

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

#: Messages that are made durable together, at most, their bytes, and how long they are waited for.
MANY: Final = 5_000
BYTES: Final = 8 << 20
WAIT: Final = 0.1
#: How long to sleep when the door is too busy, or Kafka away.
PAUSE: Final = 0.2
Submit = Callable[[ParsedBody, Mapping[str, int]], Future[dict[str, Any]]]
_log = logging.getLogger("querycloak.service")


class KafkaFeeder:
    """Reads all partitions of a topic. The journal says where it stood; the group's offsets only inform."""

    def __init__(self, address: Address, read: Mapping[str, int], submit: Submit) -> None:
        self.address, self._submit = address, submit
        self._read = dict(read)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="querycloak-kafka", daemon=True)
        self.skipped = 0
        self.reasons: Counter[str] = Counter()
        self.trouble = ""
        self._consumer: Consumer = client.consumer(address, self._error)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more; what was handed on is durable or will be read again."""
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        try:
            self._begin()
            while not self._stop.is_set():
                self._hand_on(self._consumer.consume(MANY, WAIT))
        except QueryCloakError as error:
            self._end(error)
        except client.library().KafkaException as error:
            self._end(client.told(client.fault(error)))

    def _end(self, error: QueryCloakError) -> None:
        self.trouble = error.message
        _log.error("reading the topic failed", extra={"code": error.code, "trouble": error.message})

    def _begin(self) -> None:
        """Find where each partition is read from; a new one's place is made durable before it is read."""
        count = self._insist(lambda: client.partitions_of(self._consumer, self.address))
        fresh = {
            _name(number): self._first(number) for number in range(count) if _name(number) not in self._read
        }
        if fresh:
            self._submitted(ParsedBody([], [], 0), fresh)
        places = [self._place(number, self._read[_name(number)]) for number in range(count)]
        for place in places:
            self._check(place)
        self._consumer.assign(places)

    def _first(self, partition: int) -> int:
        low, high = self._ends(self._place(partition, 0))
        return low if self.address.start == "earliest" else high

    def _check(self, place: TopicPartition) -> None:
        low, _ = self._ends(place)
        if place.offset < low:
            raise DataError(
                f"partition {place.partition}: offset {place.offset:,} is next, but Kafka's first is {low:,}",
                hint="the topic's retention is too short for the time that the service was away",
            )

    def _ends(self, place: TopicPartition) -> tuple[int, int]:
        found: tuple[int, int] = self._insist(
            lambda: self._consumer.get_watermark_offsets(place, client.PATIENCE)
        )
        return found

    def _hand_on(self, some: Sequence[Message]) -> None:
        for partition, mine in self._by_partition(some).items():
            for part in _portions(mine):
                parsed = messages.read(part, messages.stamps_of(part))
                self._submitted(parsed, {_name(partition): (part[-1].offset() or 0) + 1})
                if self._stop.is_set():
                    return
            self._inform(partition)

    def _by_partition(self, some: Sequence[Message]) -> dict[int, list[Message]]:
        found: dict[int, list[Message]] = {}
        for message in some:
            if (error := message.error()) is not None:
                self._error(error)
                if error.code() == client.library().KafkaError._AUTO_OFFSET_RESET:
                    raise client.told(error)
                continue
            found.setdefault(message.partition() or 0, []).append(message)
        return found

    def _submitted(self, parsed: ParsedBody, read: Mapping[str, int]) -> None:
        """Hand records on until they are durable: only then is what follows them read."""
        answer = self._insist(lambda: self._submit(parsed, read).result())
        self._read |= read
        for reason, rows in answer["skipped"].items():
            self.reasons[reason] += len(rows)
            self.skipped += len(rows)

    def _insist(self, work: Callable[[], Any]) -> Any:
        while True:
            try:
                found = work()
            except (Busy, Unavailable) as error:
                self.trouble = error.message
            except client.library().KafkaException as error:
                if not client.passes(client.fault(error)):
                    raise
                self.trouble = client.unavailable(error).message
            else:
                self.trouble = ""
                return found
            if self._stop.wait(PAUSE):
                raise Unavailable("the service ends")

    def _inform(self, partition: int) -> None:
        """Let Kafka's tools see how far it was read."""
        place = self._place(partition, self._read[_name(partition)])
        self._consumer.commit(offsets=[place], asynchronous=True)

    def _error(self, error: KafkaError) -> None:
        if error.code() in client.away():
            self.trouble = f"Kafka does not answer ({error.name()})"

    def _place(self, partition: int, offset: int) -> TopicPartition:
        made: TopicPartition = client.library().TopicPartition(self.address.topic, partition, offset)
        return made


def _name(partition: int) -> str:
    return f"kafka {partition}"


def _portions(some: list[Message]) -> Iterator[list[Message]]:
    """Cut messages into stretches that one entry of the journal can hold."""
    size = np.cumsum([len(message) for message in some])
    which = size // BYTES
    ends = [*(np.flatnonzero(np.diff(which)) + 1).tolist(), len(some)]
    for start, end in zip([0, *ends], ends, strict=False):
        yield some[start:end]
