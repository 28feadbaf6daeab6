"""The one thread that reads a topic, applies it lane by lane, and commits offsets and output together."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar

from querycloak.errors import DataError, QueryCloakError, Refused, Unavailable
from querycloak.service import entries
from querycloak.service.entries import Entry
from querycloak.service.kafka import client, heritage
from querycloak.service.kafka.address import Address
from querycloak.service.kafka.lane import Lane, Mark
from querycloak.service.kafka.loading import Loader
from querycloak.service.kafka.transactions import RIVAL, Fenced, Load, Stale, Stuck, Transactions
from querycloak.service.sinks.profiles import Overtaken
from querycloak.service.stream import Output, Stream
from querycloak.service.tasks import Task
from querycloak.service.worker import Counts

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

T = TypeVar("T")
#: Messages that are applied and committed together, at most, and how long they are waited for.
MANY: Final = 20_000
WAIT: Final = 0.1
#: Seconds after which a shared lane is kept anew although nothing came: Kafka compacts no file that it writes
#: to, so without anything new, what was erased would stay in it.
REFRESHED: Final = 3600.0
#: Seconds outside the group after which a service joins anew.
OUTSIDE: Final = 30.0
#: Members that share lanes give a sign so often, in milliseconds, and hear then that lanes are to move.
_HEARTBEAT: Final = 1_000
_NO_LANES: Final = "no partition is assigned"
_log = logging.getLogger("querycloak.service")


class Abandoned(Exception):
    """The service ends while Kafka is away; what is under way is given up, and done again after a restart."""


class Replaced(Fenced):
    """The group holds another member under this one's name. A broker that crashed may have an old list."""


class Runner:
    """A member of a consumer group: whatever partitions it is given become lanes, and leave as lanes."""

    def __init__(
        self,
        source: Address,
        sink: Address,
        loader: Loader,
        *,
        name: str,
        stream: Stream,
        partitions: int,
        snapshot_seconds: Callable[[], float],
        saw: Callable[[Output], None],
        beat: Callable[[], None],
        pause: float = 0.5,
    ) -> None:
        self.source, self._loader, self._partitions, self._name = source, loader, partitions, name
        self._snapshot_seconds, self._saw, self._beat, self._pause = snapshot_seconds, saw, beat, pause
        self._transactions = Transactions(sink, heritage.names_of(source.group, name)[0], self._away)
        self._consumer: Consumer = self._member_of_group()
        self.stream = stream
        self.lanes: dict[int, Lane] = {}
        #: Partitions that are this service's, but whose lanes it cannot load; each with the reason.
        self.parked: dict[int, QueryCloakError] = {}
        self._told_of: set[int] = set()  # parked partitions that the log has named
        self.trouble = _NO_LANES
        self.failure: BaseException | None = None
        self._tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._stopping, self._fault = threading.Event(), list[BaseException]()
        self._fresh: set[int] = set()
        self._again: set[int] = set()  # partitions whose lanes must be loaded anew
        self._renew = False  # whether others may have taken the names
        self._member_at = time.monotonic()
        self._fenced_at, self._left = dict[type[Fenced], float](), False
        self._thread = threading.Thread(target=self._run, name="querycloak-lanes", daemon=True)

    def open(self) -> None:
        """Take the names in Kafka, and join the group."""
        self._open_names()
        self._sink_partitions = self._transactions.partitions()
        self._subscribe()

    def _member_of_group(self) -> Consumer:
        own: dict[str, Any] = {"group.instance.id": self._name}
        own |= {"partition.assignment.strategy": "cooperative-sticky"}
        if self._loader.shared:
            own["heartbeat.interval.ms"] = _HEARTBEAT
        return client.consumer(self.source, self._error, **own)

    def _subscribe(self) -> None:
        self._consumer.subscribe(
            [self.source.topic],
            on_assign=self._guarded(self._assigned),
            on_revoke=self._guarded(self._revoked),
            on_lost=self._guarded(self._put_out),
        )

    def _open_names(self) -> None:
        self._transactions.open()
        self._loader.join(self._member)
        self._renew = False

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Commit what was read, keep all lanes, and leave."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def ask(self, work: Callable[[], T]) -> Future[T]:
        """Have something done between two batches, where all lanes are at rest."""
        task = Task(work)
        self._tasks.put(task)
        if self.failure is not None or (self._thread.ident is not None and not self._thread.is_alive()):
            self._refuse_tasks()
        return task.result

    # The loop

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._round()
            with contextlib.suppress(Stale, Fenced):  # others have the lanes, and go on from older snapshots
                self.keep(self.in_order())
        except Abandoned:
            _log.warning("ended while Kafka was away")
        except BaseException as error:
            self.failure = _in_words(error)
            _log.error("reading the topic failed", extra={"fault": type(error).__name__})
        finally:
            self._leave()
            self._refuse_tasks()

    def _round(self) -> None:
        self._fresh.clear()
        settled = not any(lane.moved for lane in self.lanes.values())
        some = self._consumed(MANY if settled else 1)
        self._raise_fault()
        self._stay_member()
        self._take(some)
        self._hand_out()
        while not self._tasks.empty() and self.ready:
            self._tasks.get().carry_out()
            self._hand_out()
        try:
            self._attend()
            if self._again:
                self._load_again()
        except Fenced as fenced:
            self._take_name_again(fenced)

    def _attend(self) -> None:
        try:
            self._beat()
            self._save_one()
        except Stale as error:
            self.trouble = error.message  # the next call into the library says who has which lane

    def _consumed(self, many: int) -> list[Message]:
        try:
            return self._consumer.consume(many, WAIT)
        except client.library().KafkaException as error:
            if not client.replaced(client.fault(error)):
                raise
            self._fault.append(Replaced(client.fault(error).name()))
            return []

    def _raise_fault(self) -> None:
        if self._fault and isinstance(self._fault[0], Fenced):
            self._take_name_again(self._fault.pop(0))  # type: ignore[arg-type]
        if self._fault:
            raise self._fault[0]

    def _take(self, some: Sequence[Message]) -> None:
        """Give messages to their lanes."""
        found: dict[int, list[Message]] = {}
        for message in some:
            error = message.error()
            if error is not None:
                self._error_of(message.partition(), error)
                continue
            found.setdefault(message.partition() or 0, []).append(message)
        for partition, mine in found.items():
            if (
                partition in self._fresh and partition in self.lanes
            ):  # they may have been read for an earlier owner's lane
                self._read_again(partition)
            elif partition in self.lanes:
                self._give(self.lanes[partition], mine)

    def _give(self, lane: Lane, some: Sequence[Message]) -> None:
        """Let a lane take messages; one that finds itself on another way than its last owner is parked."""
        try:
            lane.take(some)
        except (DataError, Refused) as error:
            self._set_aside(lane, error)

    def _error_of(self, partition: int | None, error: KafkaError) -> None:
        """Note what the library says of a partition; missing messages are its own lane's trouble."""
        lane = self.lanes.get(-1 if partition is None else partition)
        if lane is not None and error.code() == client.library().KafkaError._AUTO_OFFSET_RESET:
            self._set_aside(lane, client.told(error))
        else:
            self._error(error)

    def _set_aside(self, lane: Lane, error: QueryCloakError) -> None:
        """Park a lane that was loaded; nothing of what it has not committed is kept."""
        self._park(lane.partition, error)
        self._loader.drop(self.lanes.pop(lane.partition))
        self._consumer.pause([self._place(lane.partition, lane.position)])

    def _read_again(self, partition: int) -> None:
        place = self._place(partition, self.lanes[partition].position)
        self._consumer.incremental_unassign([place])
        self._consumer.incremental_assign([place])

    def _hand_out(self) -> None:
        """Commit what has left and how far was read; what is under way must be brought to an end."""
        while True:
            try:
                self._commit([lane for lane in self.lanes.values() if lane.moved])
            except Fenced as fenced:
                self._take_name_again(fenced)
            except Unavailable as error:
                self.trouble = error.message
                if self._stopping.wait(self._pause):
                    raise Abandoned from None
            if not self._transactions.under_way:
                return

    def _commit(self, moved: list[Lane]) -> None:
        if moved:
            places = [self._place(lane.partition, lane.position, lane.mark.metadata()) for lane in moved]
            loads = [self._load(lane) for lane in moved if lane.lines]
            self._transactions.send(loads, places, self._member)
        for lane in self.lanes.values():
            for output in lane.settle():
                self._saw(output)
        if moved or self.ready:
            self.trouble = ""

    def _member(self) -> Any:
        """Prove to Kafka that this is a member of the group as it is now.

        One that was put out loses its id before it is told, and a group without members takes positions from
        everybody: so whoever has no id has no proof. The id goes first, so it is looked at last.
        """
        proof = self._consumer.consumer_group_metadata()
        if not self._consumer.memberid():
            raise Stale("Kafka's group goes on without this service")
        return proof

    def _load(self, lane: Lane) -> Load:
        """Give each lane a partition of the sink; lines say which lane they are of where they must share."""
        shared = self._sink_partitions < self._partitions
        return Load(lane.partition % self._sink_partitions, lane.lines, lane.partition if shared else None)

    def _take_name_again(self, fenced: Fenced) -> None:
        """Begin anew after Kafka gave the producer up; end if somebody else wants its name."""
        now, kind = time.monotonic(), type(fenced)
        again = now - self._fenced_at.get(kind, -RIVAL) < RIVAL
        if again and not isinstance(fenced, Stuck) and not self._was_put_out():
            raise client.rival(str(fenced))
        self._fenced_at[kind] = now
        _log.warning("begins anew in Kafka", extra={"fault": kind.__name__})
        self.insist(self._open_names)
        if isinstance(fenced, Replaced):
            self._join_anew()
            return
        self._again |= {place.partition for place in self._consumer.assignment()}
        self._load_again()

    def _join_anew(self) -> None:
        """Join the group as a new member of the same name; the old one can do nothing more."""
        self._lost([self._place(partition, 0) for partition in self.lanes])
        self._consumer.close()
        self._fault.clear()
        self._consumer = self._member_of_group()
        self._subscribe()

    def _stay_member(self) -> None:
        """Join anew after half a minute outside the group: one that was shut out is not always told so."""
        if self._consumer.memberid():
            self._member_at = time.monotonic()
        elif time.monotonic() - self._member_at > OUTSIDE:
            self._member_at = time.monotonic()
            self._join_anew()

    def _was_put_out(self) -> bool:
        """Say whether others shut this service out because it was gone from the group."""
        return self._loader.shared and not self.insist(lambda: heritage.is_member(self.source, self._name))

    def _load_again(self) -> None:
        """Load lanes anew that are still assigned, since what is here of them is not what is kept."""
        some, self._again = self._again, set()
        places = [place for place in self._consumer.assignment() if place.partition in some]
        self._lost(places)
        self._consumer.incremental_unassign(places)
        self._assigned(places)

    # What Kafka gives and takes

    def _guarded(
        self, work: Callable[[list[TopicPartition]], None]
    ) -> Callable[[Consumer, list[TopicPartition]], None]:
        """Keep a failure until the call into the library is over."""

        def guarded(consumer: Consumer, places: list[TopicPartition]) -> None:
            if self._left:
                return
            try:
                work(places)
            except BaseException as error:
                self._fault.append(error)

        return guarded

    def _assigned(self, places: list[TopicPartition]) -> None:
        """Load lanes for partitions, and read each from where its snapshot stands."""
        begin = []
        if self._renew:
            self.insist(self._open_names)
        self.insist(lambda: self._loader.inherit([place.partition for place in places]))
        for place in self.insist(lambda: self._consumer.committed(places, client.PATIENCE)):
            try:
                lane = self.insist(lambda found=place: self._loaded(found))  # type: ignore[misc]
            except (Stale, DataError, Refused) as error:
                if isinstance(error, client.Rival):
                    raise
                if isinstance(error, Stale) or self._has_gone_on(place):
                    self._again.add(place.partition)
                else:
                    self._park(place.partition, error)
                begin.append(self._place(place.partition, max(0, place.offset)))
                continue
            self.lanes[lane.partition] = lane
            self._fresh.add(lane.partition)
            self._told_of.discard(lane.partition)
            begin.append(self._place(lane.partition, lane.position))
        self._consumer.incremental_assign(begin)
        if still := [place for place in begin if place.partition in self.parked]:
            self._consumer.pause(still)
            self.trouble = "" if self.trouble == _NO_LANES else self.trouble

    def _park(self, partition: int, error: QueryCloakError) -> None:
        """Leave a lane alone that cannot be loaded, so that the others go on; with no other services, end.

        Nothing of it is read, committed or kept. It is tried again when Kafka gives it to somebody anew.
        """
        of_all = isinstance(error, client.KafkaRefuses) or partition >= self._partitions
        if of_all or not self._loader.shared:
            raise error
        self.parked[partition] = error
        if partition not in self._told_of:
            self._told_of.add(partition)
            told = {"partition": partition, "code": error.code, "trouble": error.message}
            _log.error("a lane cannot be loaded and is parked", extra=told)

    def _has_gone_on(self, place: TopicPartition) -> bool:
        """Say whether somebody else has a lane that did not fit: this service slept while it loaded it."""
        if not self._loader.shared:
            return False
        now = self.insist(lambda: self._consumer.committed([place], client.PATIENCE)[0])
        return (now.offset, now.metadata) != (place.offset, place.metadata)

    def _loaded(self, place: TopicPartition) -> Lane:
        if place.partition >= self._partitions:
            raise Refused(
                f"the topic has more partitions now than the {self._partitions} that it began with",
                hint="people would change lanes; start anew with another topic, group and folder",
            )
        committed = Mark.read(place.offset, place.metadata) if place.offset >= 0 else None
        low, high = self._consumer.get_watermark_offsets(place, client.PATIENCE)
        return self._loader.load(
            place.partition, committed, low if self.source.start == "earliest" else high, low
        )

    def _revoked(self, places: list[TopicPartition]) -> None:
        """Keep lanes for the next owner; one with something uncommitted is as its snapshot was."""
        mine = [self.lanes[place.partition] for place in places if place.partition in self.lanes]
        try:
            with contextlib.suppress(Stale):  # too late: it is read again from the snapshot before
                self.keep(mine)
        finally:
            self._lost(places)

    def _put_out(self, places: list[TopicPartition]) -> None:
        """Begin anew after the group went on without this service; whoever has its lanes shut it out."""
        self._lost(places)
        self._renew = self._loader.shared

    def _lost(self, places: list[TopicPartition]) -> None:
        """Forget lanes that somebody else may have by now."""
        for place in places:
            self._again.discard(place.partition)
            self.parked.pop(place.partition, None)
            lane = self.lanes.pop(place.partition, None)
            if lane is not None:
                self._loader.drop(lane)
        if not self.lanes:
            self.trouble = _NO_LANES

    def insist(self, work: Callable[[], T]) -> T:
        """Try until Kafka or the profiles answer."""
        while True:
            try:
                return work()
            except client.library().KafkaException as error:
                if client.replaced(client.fault(error)):
                    raise Replaced(client.fault(error).name()) from None
                if not client.passes(client.fault(error)):
                    raise client.told(client.fault(error)) from None
                self.trouble = client.unavailable(error).message
            except Stale:
                raise
            except Unavailable as error:
                self.trouble = error.message
            if self._stopping.wait(self._pause):
                raise Abandoned

    def _error(self, error: KafkaError) -> None:
        """Note what the library says; most of it passes."""
        if client.replaced(error):
            self._fault.append(Replaced(error.name()))
        elif not client.passes(error):
            self._fault.append(client.told(error))
        self._away(error)

    def _away(self, error: KafkaError) -> None:
        if error.code() in client.away():
            self.trouble = f"Kafka does not answer ({error.name()})"

    # What is due

    @property
    def counts(self) -> Counts:
        """How far all lanes have come, taken together."""
        return Counts(position=sum(lane.counts.position for lane in list(self.lanes.values())))

    @property
    def ready(self) -> bool:
        """Whether there are lanes, and all are where Kafka knows them to be."""
        return bool(self.lanes) and all(lane.at_rest for lane in self.lanes.values())

    def in_order(self) -> list[Lane]:
        """Give the lanes that are here."""
        return [lane for _, lane in sorted(self.lanes.items())]

    def carry_out(self, lane: Lane, kind: entries.Kind, **facts: Any) -> dict[str, int]:
        """Note a request with the place at which it takes effect, then let it take effect."""
        now = max(time.time_ns() // 1000, lane.stream.at)
        entry = Entry(kind, now, facts=facts | {"input": lane.position})
        if not self._loader.shared:
            return lane.carry_out(self._loader.note(lane, entry), entry)
        # Perhaps it was noted, and only the answer was lost: then the next owner would carry it out.
        return lane.carry_out(self.insist(lambda: self._loader.note(lane, entry)), entry)

    def _save_one(self) -> None:
        """Write profiles that are due; keep the lane that waits longest, if it is time."""
        for lane in self.in_order():
            if lane.tally.due():
                self._careful(lane, lane.tally.flush)
        now = time.monotonic()
        due = now - self._snapshot_seconds()
        late = [lane for lane in self._unsaved() if lane.saved_at <= due]
        self.keep(sorted(late, key=lambda lane: lane.saved_at)[:1])
        oldest = min(self.in_order(), key=lambda lane: lane.saved_at, default=None)
        if self._loader.shared and oldest and oldest.at_rest and oldest.saved_at <= now - REFRESHED:
            self._careful(oldest, lambda: self._loader.save(oldest))

    def keep(self, lanes: Iterable[Lane]) -> None:
        """Keep what is at rest and not kept yet."""
        for lane in lanes:
            if lane.at_rest and lane.saved != lane.mark:
                self._careful(lane, lambda found=lane: self._loader.save(found))  # type: ignore[misc]

    def _careful(self, lane: Lane, work: Callable[[], None]) -> None:
        """Do what writes profiles; where an earlier owner wrote them late, load the lane and count anew."""
        try:
            self.insist(work)
        except Overtaken:
            if not self._loader.shared:
                raise
            self._again.add(lane.partition)

    def _unsaved(self) -> list[Lane]:
        return [lane for lane in self.lanes.values() if lane.saved != lane.mark]

    def keep_all(self) -> None:
        """Keep all lanes now; for use inside `ask`."""
        self.keep(self._unsaved())

    # The end

    def _leave(self) -> None:
        """Let everything go; lanes stay to be looked at."""
        self._left = True
        for lane in self.lanes.values():
            self._loader.drop(lane)
        self._loader.leave()
        self._transactions.close()
        self._consumer.close()

    def _refuse_tasks(self) -> None:
        while True:
            try:
                self._tasks.get_nowait().result.set_exception(
                    Unavailable("the service does not read the topic")
                )
            except queue.Empty:
                return

    def _place(self, partition: int, offset: int, metadata: str = "") -> TopicPartition:
        return client.library().TopicPartition(self.source.topic, partition, offset, metadata)  # type: ignore[no-any-return]


def _in_words(error: BaseException) -> BaseException:
    """Put a failure of the library into our words."""
    if isinstance(error, client.library().KafkaException):
        return client.told(client.fault(error))
    return client.rival(str(error)) if isinstance(error, Fenced) else error
