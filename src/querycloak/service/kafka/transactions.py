"""Lines and positions go to Kafka together: all of them or none, whatever happens in between."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from querycloak.errors import DataError, Unavailable
from querycloak.service.kafka import client
from querycloak.service.kafka.address import Address

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer, TopicPartition

#: Seconds that one step may take before it counts as failed; it can then be taken again.
STEP: Final = 5.0
#: Seconds after which a call into the client counts as one that does not come back.
STUCK: Final = 4 * STEP
#: A producer that is shut out twice within so many seconds has a rival.
RIVAL: Final = 60.0
#: Messages that are handed to the client in one call, and how many bytes.
_TOGETHER: Final = 5_000
_TOGETHER_BYTES: Final = 16 << 20
#: What may wait in the client before more is handed over: far below its limits, which are in `client`.
_WAITING_MESSAGES: Final = 500_000
_WAITING_BYTES: Final = 256 << 20


class Fenced(Exception):
    """The producer can do nothing more: another one took its name, or the broker gave it up."""


class Stuck(Fenced):
    """The client does not come back from a call; its producer is left behind, the next one shuts it out."""


class Stale(Unavailable):
    """The group goes on without this member; whoever has its partitions now carries on from what is there."""

    code = "stale"


@dataclass(frozen=True)
class Load:
    """Lines for one partition of a topic; `lane` is written on each where several lanes share it.

    In a topic that is compacted each line has a key, and one that is None removes what had its key.
    """

    partition: int
    lines: Sequence[bytes | None]
    lane: int | None = None
    keys: Sequence[str] | None = None

    def messages(self) -> list[dict[str, Any]]:
        """Give what the client is handed."""
        if self.keys is None:
            return [{"value": line} for line in self.lines]
        return [{"key": key, "value": line} for key, line in zip(self.keys, self.lines, strict=True)]

    def cut(self, start: int, end: int) -> Load:
        """Give some of the lines."""
        keys = None if self.keys is None else self.keys[start:end]
        return Load(self.partition, self.lines[start:end], self.lane, keys)


class Transactions:
    """One producer; what it sends is seen by readers of committed messages whole or not at all.

    After `Unavailable` make the same call again. If `under_way`, it must be with the same lines: perhaps they
    were committed, and only the answer was lost.
    """

    def __init__(
        self, address: Address, name: str, told: Callable[[KafkaError], None] = lambda error: None
    ) -> None:
        self.address, self._name, self._told = address, name, told
        self._steps: deque[tuple[Callable[[], None], bool]] = deque()
        self._producer: Producer | None = None
        self._waiting, self._aborting = 0, False

    @property
    def is_open(self) -> bool:
        """Whether there is a producer that can be used."""
        return self._producer is not None

    @property
    def under_way(self) -> bool:
        """Whether a transaction is neither committed nor given up."""
        return bool(self._steps)

    def open(self) -> None:
        """Take the name; a transaction that was left open under it is given up, or completed if decided."""
        self.close()
        made = client.producer(self.address, self._name, self._told)
        self._take(lambda: made.init_transactions(client.PATIENCE))
        self._producer = made

    def partitions(self) -> int:
        """Ask how many partitions the sink has."""
        return client.partitions_of(self._producer, self.address)

    def send(
        self,
        loads: Sequence[Load],
        positions: list[TopicPartition],
        group: Callable[[], Any] = lambda: None,
    ) -> None:
        """Send lines, and positions of a group, in one transaction; go on with it if it is under way.

        Positions are also the fence: Kafka takes them only from a member of the group as it is now, and
        `group` gives the proof, or raises `Stale`.
        """
        made = self._producer
        if made is None:
            raise Fenced
        if self._aborting:
            self._give_up()
        if not self._steps:
            self._steps += [
                (made.begin_transaction, False),
                (lambda: self._fill(loads), True),  # what it took half-way cannot be taken back
                (lambda: made.commit_transaction(STEP), False),
            ]
            if positions:
                self._steps.insert(2, (lambda: self._send_positions(positions, group()), False))
        self._go_on()

    def _go_on(self) -> None:
        while self._steps:
            step, once = self._steps[0]
            self._take(step, once=once)
            self._steps.popleft()

    def _fill(self, loads: Sequence[Load]) -> None:
        for load in loads:
            for start in range(0, len(load.lines), (step := _step(load.lines))):
                self._hand_over(load.cut(start, start + step))

    def _hand_over(self, load: Load) -> None:
        """Hand over some lines, after there is room for them: one that is refused would lose its place."""
        made, topic, kafka = self._producer, self.address.topic, client.library()
        assert made is not None
        self._waiting += sum(map(_size, load.lines))
        if self._waiting > _WAITING_BYTES or len(made) > _WAITING_MESSAGES:
            made.flush()
            self._waiting = 0
        if load.lane is None:
            some = load.messages()
            made.produce_batch(topic, some, partition=load.partition)
            if refused := next((one["_error"] for one in some if "_error" in one), None):
                raise kafka.KafkaException(refused)
        else:
            for line in load.lines:
                made.produce(topic, line, partition=load.partition, headers={"lane": str(load.lane)})

    def _send_positions(self, positions: list[TopicPartition], proof: Any) -> None:
        """Send positions, and wait no longer than is sensible.

        The client forgets its own limit here when the group's coordinator went away in the middle (librdkafka
        2.16, its issues 5456 and 5511), and waits for ever. Such a call keeps its thread and its producer.
        """
        made = self._producer
        assert made is not None
        outcome: list[BaseException | None] = []

        def call() -> None:
            try:
                made.send_offsets_to_transaction(positions, proof, STEP)
            except BaseException as error:
                outcome.append(error)
            else:
                outcome.append(None)

        thread = threading.Thread(target=call, name="querycloak-positions", daemon=True)
        thread.start()
        thread.join(STUCK)
        if not outcome:
            self._producer, self._steps, self._aborting = None, deque(), False
            raise Stuck("the client does not come back")
        if outcome[0] is not None:
            raise outcome[0]

    def _take(self, step: Callable[[], None], *, once: bool = False) -> None:
        """Take one step; say what to do when it fails: again, all again (if it works but once), or never."""
        try:
            step()
        except Stale:
            self._give_up()
            raise
        except client.library().KafkaException as error:
            fault = client.fault(error)
            if fault.fatal() or fault.code() in _shut_out():
                self.close()
                raise Fenced(fault.name()) from None
            if once or fault.txn_requires_abort():
                self._give_up()
            elif not fault.retriable() and not (self._producer is None and client.passes(fault)):
                raise client.told(fault) from None
            if fault.code() == client.library().KafkaError.MSG_SIZE_TOO_LARGE:
                raise DataError("a released line is larger than the sink takes", hint=_LARGER) from None
            if fault.code() in _left_behind():
                raise Stale(f"Kafka's group goes on without this service ({fault.name()})") from None
            raise client.unavailable(error) from None

    def _give_up(self) -> None:
        """Abort; if that fails too, it is the next step to take."""
        made = self._producer
        assert made is not None
        self._aborting, self._steps = True, deque([(lambda: made.abort_transaction(STEP), False)])
        self._go_on()
        self._aborting = False

    def close(self) -> None:
        """Let the producer go; what is under way is given up when the name is taken again."""
        made, self._producer = self._producer, None
        self._steps.clear()
        self._aborting = False
        if made is not None:
            with contextlib.suppress(client.library().KafkaException):  # one that was shut out says so again
                made.purge()
                made.close()


_LARGER: Final = "raise `max.message.bytes` of the topic, and `kafka.message.max.bytes` of the address"


def _shut_out() -> tuple[int, ...]:
    codes = client.library().KafkaError
    return codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH, codes._FATAL


def _left_behind() -> tuple[int, ...]:
    codes = client.library().KafkaError
    return codes.ILLEGAL_GENERATION, codes.UNKNOWN_MEMBER_ID, codes.FENCED_INSTANCE_ID


def _size(line: bytes | None) -> int:
    return len(line or b"")


def _step(lines: Sequence[bytes | None]) -> int:
    """Say how many lines to hand over at once, when the longest is the measure of all."""
    return max(1, min(_TOGETHER, _TOGETHER_BYTES // max(1, *map(_size, lines))))
