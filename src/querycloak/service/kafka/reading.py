"""Reads what a partition of a compacted topic keeps, from a place to its very end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from querycloak.errors import Unavailable
from querycloak.service.kafka import client
from querycloak.service.kafka.address import Address

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

#: Parts of snapshots are large and few: as many bytes as are fetched at once.
_FETCH: Final = 16 << 20
_MANY: Final = 200
#: Seconds after which Kafka has given up a transaction that its producer left, at the latest.
GIVEN_UP: Final = 90.0


class Reader:
    """Gives what is committed under each key. Who asks may go on from it: nothing before it is still open.

    The end is that of all messages, committed or not. While a transaction is open below it, reading waits: it
    may belong to an earlier owner, and be decided already.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        to_the_end: dict[str, Any] = {"enable.partition.eof": True, "fetch.message.max.bytes": _FETCH}
        all_there_is: dict[str, Any] = {"isolation.level": "read_uncommitted"}
        self._consumer: Consumer = client.consumer(address, **to_the_end)
        self._loose: Consumer = client.consumer(address, **all_there_is)

    def end(self, partition: int) -> int:
        """Give the offset of the next message, whoever writes it."""
        return self._ends(partition)[1]

    def read(self, partition: int, start: int, patience: float = client.PATIENCE) -> dict[str, bytes]:
        """Give what lies under each key from an offset on; what was removed is left out."""
        low, end = self._ends(partition)
        found: dict[str, bytes] = {}
        reached = max(start, low)
        if reached >= end:
            return found
        self._consumer.assign([self._place(partition, reached)])
        try:
            give_up = time.monotonic() + patience
            while reached < end:
                for message in self._consumer.consume(_MANY, 0.2):
                    reached = max(reached, fed(found, message))
                    give_up = time.monotonic() + patience
                if time.monotonic() > give_up:
                    raise Unavailable(f"a transaction is open in `{self.address.topic}`; it ends by itself")
        finally:
            self._consumer.unassign()
        return found

    def _ends(self, partition: int) -> tuple[int, int]:
        """Give the first offset and the next one; a topic that was just made may need a moment."""
        give_up = time.monotonic() + client.PATIENCE
        while True:
            try:
                place = self._place(partition, 0)
                found: tuple[int, int] = self._loose.get_watermark_offsets(place, client.PATIENCE)
                return found
            except client.library().KafkaException as error:
                if time.monotonic() > give_up or not client.passes(client.fault(error)):
                    raise client.unavailable(error) from None
            time.sleep(0.1)

    def _place(self, partition: int, offset: int) -> TopicPartition:
        made: TopicPartition = client.library().TopicPartition(self.address.topic, partition, offset)
        return made

    def close(self) -> None:
        """Let the connections go."""
        self._consumer.close()
        self._loose.close()


def fed(found: dict[str, bytes], message: Message) -> int:
    """Note a message under its key; say up to where all is read."""
    error: Any = message.error()
    if error is not None and error.code() == client.library().KafkaError._PARTITION_EOF:
        return message.offset() or 0
    if error is not None:
        if not client.passes(error):
            raise client.told(error)
        return 0
    key, value = (message.key() or b"").decode("utf-8", "replace"), message.value()
    if value is None:
        found.pop(key, None)
    else:
        found[key] = value
    return (message.offset() or 0) + 1
