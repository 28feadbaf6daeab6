"""A service from topic to topic: what `Service` is for one journal, this is for the partitions of a topic."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NoReturn

from querycloak.engines.local import warm_up
from querycloak.errors import DataError, NotFound, ParameterError, QueryCloakError, Refused
from querycloak.service.base import Base
from querycloak.service.classifying import Classifying
from querycloak.service.kafka import agreement, client
from querycloak.service.kafka.address import parse
from querycloak.service.kafka.board import Board
from querycloak.service.kafka.errands import Errands, OwnErrands, SharedErrands
from querycloak.service.kafka.lane import Lane
from querycloak.service.kafka.loading import Loader
from querycloak.service.kafka.runner import Runner
from querycloak.service.kafka.shared import KafkaLanes
from querycloak.service.kafka.store import LaneStore, LocalLanes
from querycloak.service.kafka.watch import LaneWatch
from querycloak.service.settings import Setup
from querycloak.service.sinks.profiles import Profiles, open_store
from querycloak.service.stream import Stream
from querycloak.service.wal import Cipher


class NoLines:
    """Stands where a service has its released log: here lines go to a topic."""

    @property
    def last(self) -> NoReturn:
        """Say where lines are instead."""
        raise _elsewhere()

    def read(self, after: int, limit: int) -> NoReturn:
        """Say where lines are instead."""
        raise _elsewhere()

    def keep(self, keep_bytes: int, keep_seconds: int) -> None:
        """Keep nothing, for however long."""


class LaneService(Base):
    """Reads a topic, one lane for each partition, and writes another; has the public surface of `Service`."""

    def __init__(self, setup: Setup, store: LaneStore | None = None) -> None:
        super().__init__(setup)
        key = self.settings.state_key
        self._cipher = Cipher.from_file(Path(key)) if key else None
        self._shared_in = agreement.address_of_lanes(setup)
        self.store: LaneStore = store or LocalLanes(self.folder / "lanes", self._cipher)
        self._board: Board | None = None
        self.source, self.sink = parse(self.settings.source), parse(self.settings.sink)
        if (self.source.servers, self.source.topic) == (self.sink.servers, self.sink.topic):
            raise ParameterError("source and sink are the same topic; what leaves would come in again")
        self.watch, self.released = LaneWatch(self), NoLines()
        self._last_tick = time.monotonic()
        self.started = self.saved_at = time.time()
        self.ready = False

    @property
    def journal(self) -> LaneStore:
        """What is kept beside snapshots: requests that no snapshot has in it yet."""
        return self.store

    # Begin and end

    def open(self) -> None:
        """Check settings, topics and state; take the name in Kafka."""
        warm_up(self.setup.stages)
        secret = self._secret()
        chosen = self.settings
        self._classify = Classifying(taxonomy=chosen.taxonomy or None) if chosen.classify else None
        partitions, name = self._partitions(), client.name_in(self.folder)
        if self._shared_in is not None:
            self._share(partitions, name, secret)
        else:
            self._agree(partitions)
        loader = Loader(self.setup.stages, self.store, self._stream, self._profiles, secret)
        self.worker = Runner(
            self.source,
            self.sink,
            loader,
            name=name,
            stream=self._stream(secret),  # faults in the settings are told now
            partitions=partitions,
            snapshot_seconds=lambda: self.settings.snapshot_seconds,
            saw=self._saw,
            beat=self._beat,
        )
        self.errands = self._errands()
        self.worker.open()

    def _errands(self) -> Errands:
        if self._board is None:
            return OwnErrands(self.worker)
        assert isinstance(self.store, KafkaLanes)
        return SharedErrands(self.worker, self._board, self.store)

    def _share(self, partitions: int, name: str, secret: bytes) -> None:
        """Keep lanes where other services find them; refuse to if these are set up otherwise."""
        assert self._shared_in is not None
        assert self._cipher is not None
        agreement.check_places(self.source, self.sink, self._shared_in, partitions)
        self.store = KafkaLanes(self._shared_in, self.source, partitions, self._cipher, name)
        own = agreement.facts(self.setup, self.source, self.sink, partitions, secret)
        try:
            self.store.join(lambda: None)  # what this service left open when it was killed is given up
            agreement.compare(self.store.agree(own), own)
        except BaseException:
            self.store.leave()
            raise
        self._board = Board(self._shared_in, partitions, self._cipher)
        self._board.start()

    def _stream(self, secret: bytes) -> Stream:
        made = Stream(self.setup.stages, secret, self._classify)
        made.onlooker = self.watch.window
        return made

    def _profiles(self, stream: str) -> Profiles:
        name = f"{self.source.group} {stream}" if self._board is not None else stream
        return open_store(self._profiles_url(), name)

    def _partitions(self) -> int:
        """Ask how many partitions the source has."""
        asking = client.consumer(self.source)
        try:
            return client.partitions_of(asking, self.source)
        finally:
            asking.close()

    def _agree(self, count: int) -> None:
        """Refuse another number of partitions than at the first start."""
        known = self.store.agree({"topic": self.source.topic, "partitions": count})
        if (known["topic"], known["partitions"]) != (self.source.topic, count):
            raise Refused(
                f"this state belongs to topic `{known['topic']}` with {known['partitions']} partitions;"
                f" `{self.source.topic}` has {count}",
                hint="people would change lanes; use another state folder, and another group",
            )

    def start(self) -> None:
        """Begin to read."""
        self.worker.start()
        self.watch.start()
        self.ready = True

    def hasten(self) -> None:
        """Begin to end: nothing here waits for long."""

    def stop(self) -> None:
        """Commit what was read and keep all lanes: the next start has nothing to do again."""
        self.ready = False
        self.watch.stop()
        if self._board is not None:
            self._board.stop()
        self.worker.stop()

    # In and out

    def submit(self, sent: Any, key: bytes = b"") -> NoReturn:
        """Refuse: records come from the topic alone, else their order would not be Kafka's."""
        raise Refused(
            "the source of this service is a Kafka topic; it takes no records here", hint="write to the topic"
        )

    submit_searches = submit_clicks = submit

    def retry_key(self, key: str, body: bytes) -> bytes:
        """Give nothing: what it is for is refused."""
        return b""

    def _lanes(self) -> list[Lane]:
        return self.worker.in_order()

    def status(self) -> dict[str, Any]:
        """Count what came and what became of it in all lanes that are here, as far as it is committed."""
        counts = [lane.counts for lane in self._lanes()]
        names = ("accepted", "released", "held", "dropped")
        found = {name: sum(getattr(one, name) for one in counts) for name in names}
        return found | {"queued": 0, "epoch": max((one.epoch for one in counts), default=0)}

    def skipped(self) -> dict[str, int]:
        """Count the records and messages that were not taken, by reason."""
        found: dict[str, int] = {}
        for lane in self._lanes():
            for reason, count in list(lane.skipped.items()):
                found[reason] = found.get(reason, 0) + count
        return found

    def profile(self, label: str) -> dict[str, int]:
        """Give a label's counts by category; a label belongs to one lane."""
        for lane in self._lanes():
            if (found := lane.tally.store.of(label)) is not None:
                return found
        raise NotFound("nothing was released under this label")

    @property
    def over(self) -> QueryCloakError | None:
        """Why the process must end, if so: others wait for its partitions."""
        error = self.worker.failure
        if error is None or isinstance(error, QueryCloakError):
            return error
        return DataError(f"reading the topic failed ({type(error).__name__})")

    def failure(self) -> str:
        """Say why the service cannot go on, if so."""
        return self.over.message if self.over is not None else ""

    def trouble(self) -> str:
        """Say why records are not read or handed out right now, if so."""
        if not self.ready:
            return "the service is starting or stopping"
        parked = [f"lane {number} is parked: {error.message}" for number, error in self._parked()]
        found = [*parked, self.worker.trouble, self._board.trouble if self._board else ""]
        return self.failure() or "; ".join(text for text in found if text)

    @property
    def parked(self) -> tuple[int, ...]:
        """The lanes that are this service's and cannot be loaded."""
        return tuple(number for number, _ in self._parked())

    def _parked(self) -> list[tuple[int, QueryCloakError]]:
        return sorted(self.worker.parked.items()) if self.ready else []

    # People's rights

    def erase(self, user: str) -> dict[str, int]:
        """Forget a person in every lane; say how many of her records waited, and how many had left before."""
        told = self.errands.erase(user)
        self.saved_at = time.time()
        return {name: sum(one[name] for one in told) for name in ("held", "released", "dropped")}

    def export(self, user: str) -> dict[str, Any]:
        """Give what is held of a person, and how many records of hers have left."""
        found = self.errands.export(user)
        held = [record for one in found for record in one["held"]]
        return {"held": held, "released": sum(one["released"] for one in found)}

    def rotate(self) -> dict[str, int]:
        """Start a new epoch in every lane."""
        epoch, told = self.errands.rotate()
        self.saved_at = time.time()
        return {"dropped": sum(one["dropped"] for one in told), "epoch": epoch}

    def _beat(self) -> None:
        """Drop what has waited too long, if it is time, and do what is asked; in the thread that reads."""
        now, hold = time.monotonic(), self.settings.hold_seconds
        if hold and now - self._last_tick >= max(0.5, hold / 10) and self.worker.ready:
            self._last_tick = now
            for lane in self._lanes():
                if lane.stream.held:
                    self.worker.carry_out(lane, "tick", retention=hold * 1_000_000)
        self.errands.attend()


def _elsewhere() -> NotFound:
    return NotFound("released lines go to a Kafka topic, and are not kept here", hint="read the topic")
