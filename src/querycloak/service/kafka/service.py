"""A service from topic to topic: what `Service` is for one journal, this is for the partitions of a topic."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import polars as pl

from querycloak.engines.local import warm_up
from querycloak.errors import DataError, NotThere, ParameterError, QueryCloakError, Refused, Unavailable
from querycloak.service import entries
from querycloak.service.base import Base
from querycloak.service.classifying import Classifying
from querycloak.service.entries import Entry
from querycloak.service.journal import Cipher
from querycloak.service.kafka import client
from querycloak.service.kafka.address import parse
from querycloak.service.kafka.lane import Lane
from querycloak.service.kafka.loading import Loader
from querycloak.service.kafka.runner import Runner
from querycloak.service.kafka.store import LaneStore, LocalLanes
from querycloak.service.kafka.watch import LaneWatch
from querycloak.service.outlets.profiles import Profiles, open_store
from querycloak.service.settings import Setup
from querycloak.service.stream import Stream

T = TypeVar("T")
#: Seconds that a person's request may take until it is in all state files.
PATIENCE: Final = 60.0


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
        cipher = Cipher.from_file(Path(self.settings.state_key)) if self.settings.state_key else None
        self.store: LaneStore = store or LocalLanes(self.folder / "lanes", cipher)
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
        loader = Loader(self.setup.stages, self.store, self._stream, self._profiles, secret)
        self.worker = Runner(
            self.source,
            self.sink,
            loader,
            name=client.name_in(self.folder),
            stream=self._stream(secret),  # faults in the settings are told now
            partitions=self._partitions(),
            snapshot_seconds=lambda: self.settings.snapshot_seconds,
            saw=self._saw,
            beat=self._beat,
        )
        self.worker.open()

    def _stream(self, secret: bytes) -> Stream:
        made = Stream(self.setup.stages, secret, self._classify)
        made.onlooker = self.watch.window
        return made

    def _profiles(self, stream: str) -> Profiles:
        return open_store(self._profiles_url(), stream)

    def _partitions(self) -> int:
        """Ask how many partitions the source has; refuse another number than at the first start."""
        asking = client.consumer(self.source)
        try:
            count = client.partitions_of(asking, self.source)
        finally:
            asking.close()
        known = self.store.agree({"topic": self.source.topic, "partitions": count})
        if (known["topic"], known["partitions"]) != (self.source.topic, count):
            raise Refused(
                f"this state belongs to topic `{known['topic']}` with {known['partitions']} partitions;"
                f" `{self.source.topic}` has {count}",
                hint="people would change lanes; use another state folder, and another group",
            )
        return count

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
        return [lane for _, lane in sorted(self.worker.lanes.items())]

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
        raise NotThere("nothing was released under this label")

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
        return self.failure() or self.worker.trouble

    # People's rights

    def erase(self, user: str) -> dict[str, int]:
        """Forget a person in every lane; say how many of her records waited, and how many had left before."""
        told = self._ask(
            lambda: [self._carry_out(lane, "erasure", **_whom(lane, user)) for lane in self._lanes()]
        )
        self._keep()
        return {name: sum(one[name] for one in told) for name in ("held", "released", "dropped")}

    def export(self, user: str) -> dict[str, Any]:
        """Give what is held of a person, and how many records of hers have left."""
        found = self._ask(lambda: [lane.stream.person(_pseudonym(lane, user)) for lane in self._lanes()])
        held = pl.concat([frame for frame, _ in found], how="diagonal_relaxed").to_dicts() if found else []
        return {"held": held, "released": sum(left for _, left in found)}

    def rotate(self) -> dict[str, int]:
        """Start a new epoch in every lane; one that a crash left behind is brought up to the others first."""

        def turn() -> list[dict[str, int]]:
            epochs = [lane.stream.epoch for lane in self._lanes()]
            behind = [lane for lane in self._lanes() if lane.stream.epoch < max(epochs)] or self._lanes()
            return [self._carry_out(lane, "epoch") for lane in behind]

        told = self._ask(turn)
        self._keep()
        return {"dropped": sum(one["dropped"] for one in told), "epoch": self.status()["epoch"]}

    def _carry_out(self, lane: Lane, kind: entries.Kind, **facts: Any) -> dict[str, int]:
        """Note a request with the place at which it takes effect, then let it take effect."""
        now = max(time.time_ns() // 1000, lane.stream.at)
        entry = Entry(kind, now, facts=facts | {"input": lane.position})
        return lane.carry_out(self.store.note(lane.partition, entries.encode(entry)), entry)

    def _keep(self) -> None:
        """Return when no state file holds what was there before."""
        self._ask(self.worker.keep_all)
        self.saved_at = time.time()

    def _ask(self, work: Callable[[], T]) -> T:
        try:
            return self.worker.ask(work).result(PATIENCE)
        except TimeoutError:
            raise Unavailable(
                "the lanes are not at rest; it will be done when they are", hint="ask again later"
            ) from None

    def _beat(self) -> None:
        """Drop what has waited too long, if it is time; in the thread that reads."""
        now, hold = time.monotonic(), self.settings.hold_seconds
        if hold and now - self._last_tick >= max(0.5, hold / 10) and self.worker.ready:
            self._last_tick = now
            for lane in self._lanes():
                if lane.stream.held:
                    self._carry_out(lane, "tick", retention=hold * 1_000_000)


def _elsewhere() -> NotThere:
    return NotThere("released lines go to a Kafka topic, and are not kept here", hint="read the topic")


def _pseudonym(lane: Lane, user: str) -> str:
    return lane.pseudonyms.of([user])[0]


def _whom(lane: Lane, user: str) -> dict[str, Any]:
    """Name a person as an erasure does: her pseudonym, and those of earlier epochs."""
    return {"user": _pseudonym(lane, user), "before": lane.pseudonyms.before(user)}
