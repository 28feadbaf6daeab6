"""Lanes in a compacted topic, for several services on one source: whoever has a lane next reads it there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from querycloak.errors import Unavailable
from querycloak.service.kafka import client, heritage
from querycloak.service.kafka.address import Address
from querycloak.service.kafka.lane import Mark
from querycloak.service.kafka.pieces import Pieces
from querycloak.service.kafka.reading import GIVEN_UP, Reader
from querycloak.service.kafka.transactions import Fenced, Load, Transactions
from querycloak.service.wal import Cipher

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_SNAPSHOT: Final = "snapshot"
_NOTE: Final = "note/"
_FACTS: Final = "source"
#: How often services that start at the same moment try to be the first.
_TRIES: Final = 50


@dataclass
class _Kept:
    """What the topic has of a lane that is open here."""

    state: tuple[int, bytes] | None = None
    parts: int = 0
    notes: dict[int, bytes] = field(default_factory=dict)
    last: int = 0


class KafkaLanes:
    """Lanes as messages: partition n of the topic has lane n, and one partition more what concerns them all.

    A snapshot, what it replaces, and its place beside the group's offset are one transaction, which Kafka
    takes only from a member of the group as it is now. So a snapshot is there whole or not at all, the next
    owner knows where to read, and one who lost a lane without noticing can write nothing.
    """

    def __init__(self, address: Address, source: Address, lanes: int, cipher: Cipher, owner: str) -> None:
        self.address, self.owner, self.common = address, owner, lanes
        self._source, self._cipher = source, cipher
        self._reader = Reader(address)
        self._transactions = Transactions(address, heritage.names_of(source.group, owner)[1])
        self._member: Callable[[], Any] = lambda: None
        self._kept: dict[int, _Kept] = {}
        self._under_way: tuple[Mark, list[Load]] | None = None

    # What all services have in common

    def agree(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the facts of a source for good; give those that were kept first.

        Who writes takes a name in Kafka first, then looks: of two at once, one is shut out and looks again.
        """
        for _ in range(_TRIES):
            writer = Transactions(self.address, f"querycloak-{self.address.topic}-facts")
            try:
                if (known := self._facts()) is not None:
                    return known
                writer.open()
                if (known := self._facts()) is not None:
                    return known
                made = self._pieces(self.common).cut(_FACTS, msgspec.json.encode(dict(facts)))
                writer.send([Load(self.common, list(made.values()), keys=list(made))], [])
            except Fenced:
                continue
            finally:
                writer.close()
            return dict(facts)
        raise Unavailable("too many services start at once", hint="start it again")

    def _facts(self) -> dict[str, Any] | None:
        found = self._reader.read(self.common, 0, GIVEN_UP)
        known = self._pieces(self.common).join(_FACTS, found)
        return None if known is None else dict(msgspec.json.decode(known))

    def join(self, member: Callable[[], Any]) -> None:
        """Take the name to write under, and learn how to prove that this is a member of the group."""
        self._member, self._under_way = member, None
        self._transactions.open()

    def inherit(self, partitions: Sequence[int]) -> None:
        """Give up what earlier owners left unfinished who are gone from the group."""
        if partitions:
            heritage.give_up(self._source, partitions, self.owner)

    # One lane

    def open(self, partition: int, mark: Mark | None) -> None:
        """Read a lane, then take it: if Kafka takes the mark, nobody else wrote in between."""
        found = self._reader.read(partition, mark.kept if mark is not None else 0)
        pieces = self._pieces(partition)
        whole = pieces.join(_SNAPSHOT, found)
        state = None if whole is None else msgspec.msgpack.decode(whole, type=tuple[int, bytes])
        parts = sum(key.startswith(f"{_SNAPSHOT}/") for key in found)
        notes = {
            int(key.removeprefix(_NOTE)): pieces.join(key, found) or b""
            for key in found
            if key.startswith(_NOTE) and key.count("/") == 1
        }
        last = max([*notes, mark.requests if mark is not None else 0])
        if mark is not None:
            self._write(partition, replace(mark, by=self.owner), [])
        self._kept[partition] = _Kept(state, parts, notes, last)

    def close(self, partition: int) -> None:
        """Let a lane go; what was read of it is forgotten."""
        self._kept.pop(partition, None)

    def newest(self, partition: int) -> tuple[int, bytes] | None:
        """Give a lane's newest snapshot and the input offset that it stands at; it may be large, so once."""
        kept = self._kept[partition]
        state, kept.state = kept.state, None
        return state

    def save(self, partition: int, mark: Mark, state: bytes) -> int:
        """Keep a snapshot; what is no longer needed is removed in the same transaction."""
        kept = self._kept[partition]
        new = self._pieces(partition).cut(_SNAPSHOT, msgspec.msgpack.encode((mark.offset, state)))
        parts = len(new) - 1
        gone = [f"{_SNAPSHOT}/{number}" for number in range(parts, kept.parts)]
        carried_out = [number for number in kept.notes if number <= mark.requests]
        gone += [f"{_NOTE}{number}" for number in carried_out]
        load = Load(partition, [*new.values(), *(None for _ in gone)], keys=[*new, *gone])
        place = self._write(partition, replace(mark, kept=self._reader.end(partition)), [load])
        kept.parts = parts
        for number in carried_out:
            del kept.notes[number]
        return place

    def note(self, partition: int, mark: Mark, request: bytes) -> int:
        """Keep a request before it takes effect; give its number, from 1 on."""
        kept = self._kept[partition]
        number = kept.last + 1
        new = self._pieces(partition).cut(f"{_NOTE}{number}", request)
        self._write(partition, mark, [Load(partition, list(new.values()), keys=list(new))])
        kept.notes[number], kept.last = request, number
        return number

    def notes(self, partition: int, after: int) -> Iterator[tuple[int, bytes]]:
        """Give the requests behind a number, in order."""
        known = self._kept[partition].notes
        return iter([(number, known[number]) for number in sorted(known) if number > after])

    def tell(self, partition: int, mark: Mark, answers: Mapping[str, bytes]) -> None:
        """Write what a lane answers, for all to read."""
        pieces, new = self._pieces(self.common), dict[str, bytes]()
        for name, data in answers.items():
            new |= pieces.cut(name, data)
        self._write(partition, mark, [Load(self.common, list(new.values()), keys=list(new))])

    def size(self) -> int:
        """Count the bytes of all requests that are kept."""
        return sum(len(note) for kept in list(self._kept.values()) for note in list(kept.notes.values()))

    def leave(self) -> None:
        """Let all connections go."""
        self._transactions.close()
        self._reader.close()

    # The fence

    def _write(self, partition: int, mark: Mark, loads: list[Load]) -> int:
        """Write messages together with a lane's mark: Kafka refuses both unless the lane is this service's.

        After `Unavailable` make the same call again: what is under way is brought to an end first.
        """
        if self._under_way is None:
            self._under_way = mark, loads
        mark, loads = self._under_way
        try:
            self._transactions.send(loads, [self._place(partition, mark)], self._member)
        finally:
            if not self._transactions.under_way:
                self._under_way = None
        return mark.kept

    def _place(self, partition: int, mark: Mark) -> TopicPartition:
        made: TopicPartition = client.library().TopicPartition(
            self._source.topic, partition, mark.offset, mark.metadata()
        )
        return made

    def _pieces(self, partition: int) -> Pieces:
        return Pieces(self._cipher, self.address.topic, partition)
