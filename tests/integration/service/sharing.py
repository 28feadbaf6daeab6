"""Several services on one topic: their topics, their common files, and what they should release together."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.integration.service.test_kafka import CALM, COHORT, expected, log
from tests.support.kafka_topics import Sent, Topics, spread
from tests.support.servers.kafka import LocalKafka
from tests.support.servers.process import wait_until
from tests.support.service_process import LiveService

#: Who is gone is noticed soon; a test has not the ten seconds that a service has.
SOON = {"kafka.session.timeout.ms": "3000", "kafka.heartbeat.interval.ms": "300"}
GOOD = {"cleanup.policy": "compact", "max.compaction.lag.ms": "3600000"}


def make_topic(kafka: LocalKafka, partitions: int, **config: str) -> str:
    """Make a topic with settings of its own."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    name = f"lanes{secrets.token_hex(6)}"
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(60)
    wait_until(
        lambda: len(admin.list_topics(name, timeout=10).topics[name].partitions) == partitions, "it is there"
    )
    return name


class Sharing:
    """A source, a sink, a topic of lanes, and services over them."""

    def __init__(self, kafka: LocalKafka, folder: Path, partitions: int, users: int) -> None:
        self.topics, self.folder, self.partitions = Topics(kafka), folder, partitions
        self.source, self.sink = self.topics.make(partitions), self.topics.make(partitions)
        self.lanes = make_topic(kafka, partitions + 1, **GOOD)
        self.sent: list[Sent] = spread(log(users), partitions)
        self.wanted = {number: expected(self.sent, number) for number in range(partitions)}
        self.key = folder / "state.key"
        self.key.write_text("k" * 32)
        self.key.chmod(0o600)
        self.services: list[LiveService] = []

    def arguments(self, **options: str | None) -> list[str]:
        """Give what a service is started with; options stand over the usual ones, None takes one away."""
        usual = {"lanes": self.topics.url(self.lanes), "state_key": str(self.key), "profiles": "none"}
        places = ["--source", self.topics.url(self.source, group=self.source, **SOON)]
        places += ["--sink", self.topics.url(self.sink)]
        chosen = [f"{name}={text}" for name, text in (usual | options).items() if text is not None]
        return places + [part for text in chosen for part in ("-o", text)]

    def start(
        self,
        name: str,
        *methods: str,
        environment: Mapping[str, str] | None = None,
        **options: str | None,
    ) -> LiveService:
        """Start one service."""
        chosen = methods or COHORT
        folder, more = self.folder / name, self.arguments(**options)
        made = LiveService(folder, *chosen, *CALM, *more, environment=environment)
        made.start()
        self.services.append(made)
        return made

    def start_two(self, one: str, other: str, *methods: str) -> tuple[LiveService, LiveService]:
        """Start two services at the same moment."""
        with ThreadPoolExecutor() as pool:
            begun = [pool.submit(self.start, name, *methods) for name in (one, other)]
            return begun[0].result(), begun[1].result()

    def kill(self, service: LiveService) -> None:
        """Kill one; the others go on."""
        self.services.remove(service)
        service.kill()

    def write(self, start: float, end: float) -> None:
        """Write a stretch of the log, given as shares of the whole."""
        count = len(self.sent)
        self.topics.write(self.source, self.sent[int(start * count) : int(end * count)])

    def accepted(self) -> int:
        """Count what all services together have read."""
        return sum(service.status()["accepted"] for service in self.services)

    def until_read(self, share: float = 1.0, seconds: float = 60) -> float:
        """Wait until so much is read and committed; say how long that took."""
        begin, count = time.monotonic(), int(share * len(self.sent))
        wait_until(lambda: self.accepted() == count and all(map(is_ready, self.services)), "read", seconds)
        return time.monotonic() - begin

    def check(self) -> None:
        """See that each lane's lines are those of a single service, byte for byte."""
        found = self.topics.read(self.sink, self.partitions)
        lost = sum(len(set(self.wanted[p]) - set(found[p])) for p in self.wanted)
        doubled = sum(len(found[p]) - len(set(found[p])) for p in self.wanted)
        assert (lost, doubled) == (0, 0)
        assert found == self.wanted
        assert sum(map(len, found.values()))

    def end(self) -> None:
        """End all services that still run."""
        for service in self.services:
            service.kill()


def is_ready(service: LiveService) -> bool:
    """Say whether all lanes of a service are where Kafka knows them to be."""
    return service.client.get("/readyz").status_code == 200
