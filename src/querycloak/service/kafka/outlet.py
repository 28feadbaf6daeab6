"""A topic that one stream's lines go to; the last line's number is committed with the lines themselves."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from querycloak.errors import DataError, Unavailable
from querycloak.keys import write_private
from querycloak.service.kafka import client
from querycloak.service.kafka.address import Address
from querycloak.service.kafka.transactions import RIVAL, Fenced, Load, Stuck, Transactions
from querycloak.service.sinks.lines import fresh

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition


class KafkaOutlet:
    """Sends lines to one partition: a stream has one order, and only a partition keeps it.

    The number of the last line stands in Kafka as the offset of a group of the outlet's own, which nobody
    reads by. It is written in the transaction that writes the lines, so both are there after a crash or
    neither.
    """

    def __init__(self, address: Address, folder: Path, after: int = 0) -> None:
        """`after`: the line before the first one, for a sink that is added to a service that runs already."""
        self.address, self.last, self._folder = address, after, folder
        name = client.name_in(folder)
        self._transactions = Transactions(address, f"querycloak-sink-{name}")
        self._reader = client.consumer(replace(address, group=f"querycloak-sink-{name}"))
        self._fenced_at = -RIVAL

    def open(self) -> None:
        """Take the name in Kafka, and ask which line was the last."""
        self._transactions.open()
        if self.address.partition >= (count := self._transactions.partitions()):
            raise DataError(f"the topic `{self.address.topic}` has {count} partitions, counted from 0")
        self._find_last()

    def _find_last(self) -> None:
        marker, known = self._folder / "kafka-sink", f"{self.address.topic} {self.address.partition}"
        try:
            found = self._reader.committed([self._place(0)], client.PATIENCE)[0].offset
        except client.library().KafkaException as error:
            raise client.unavailable(error) from None
        if found >= 0:
            self.last = found
        elif marker.exists() and marker.read_text("utf-8") == known:
            raise DataError(
                "Kafka no longer knows which line it got last",
                hint="did its offsets expire? lines may be there or not; go on with another topic",
            )
        else:
            self._send([])
        write_private(marker, known.encode())

    def append(self, first: int, lines: bytes, count: int) -> None:
        """Send lines `first` and following; those that are there already are left out, a gap is refused.

        After `Unavailable` give the same lines again.
        """
        rest, count = fresh(first, lines, count, self.last, Path(self.address.topic))
        if not count:
            return
        if not self._transactions.is_open:
            self.open()
            rest, count = fresh(first, lines, count, self.last, Path(self.address.topic))
        try:
            self._send(rest.split(b"\n")[:-1])
        except Fenced as fenced:
            self._look_for_rival(fenced)
            raise Unavailable("Kafka gave the producer up; it begins anew") from None

    def _send(self, lines: list[bytes]) -> None:
        last = self.last + len(lines)
        load = [Load(self.address.partition, lines)] if lines else []
        self._transactions.send(load, [self._place(last)], self._reader.consumer_group_metadata)
        self.last = last

    def _look_for_rival(self, fenced: Fenced) -> None:
        now = time.monotonic()
        if now - self._fenced_at < RIVAL and not isinstance(fenced, Stuck):
            raise client.rival(str(fenced))
        self._fenced_at = now

    def _place(self, offset: int) -> TopicPartition:
        made: TopicPartition = client.library().TopicPartition(
            self.address.topic, self.address.partition, offset
        )
        return made

    def sync(self) -> None:
        """Do nothing: what `append` returned for is committed."""

    def close(self) -> None:
        """Let the connections go."""
        self._transactions.close()
        self._reader.close()
