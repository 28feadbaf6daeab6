"""Topic to topic: the service beside a loop that only reads and writes messages.

Both read the same topic on a broker of this machine, with the same client settings, the same batches and a
transaction for each; they take turns, so that a busy machine slows both down alike. The loop parses no
message. The clock starts when a tenth is done.
It starts a Kafka broker of its own: see `querycloak doctor` for what that needs.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.kafka_topics import BEGIN, Sent, Topics
from tests.support.servers.kafka import LocalKafka

from querycloak.service import kafka_client as client
from querycloak.service.kafka_client import parse
from querycloak.service.service import Service
from querycloak.service.settings import setup
from querycloak.service.sources.kafka import BATCH, POLL

PARTITIONS = 2
TURNS = 3
METHODS = {"cohort": {"k": "10"}, "swap": {"k": "10"}}


def workload(records: int, seed: int = 7) -> list[Sent]:
    """Return records of users with some fifty searches and a dozen interests each, partitioned by user."""
    draw = random.Random(seed)
    people = max(100, records // 50)
    found = []
    for number in range(records):
        person = draw.randrange(people)
        thing = (person * 7919 + draw.randrange(12) * 104_729) % 20_000
        value = {
            "user": f"person-{person}",
            "query": f"made up query number {thing}",
            "time": f"2026-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}Z",
            "category": f"Topic {thing % 40}/Part {thing % 400}",
        }
        found.append(Sent(person % PARTITIONS, BEGIN, json.dumps(value).encode()))
    return found


class Stopwatch:
    """Counts records and seconds from a tenth of the way on."""

    def __init__(self, records: int) -> None:
        self._begin = records // 10
        self._first: tuple[int, float, float] | None = None
        self.spent = (0.0, 0.0, 0.0)

    def see(self, done: int) -> None:
        """Store how many records are done now."""
        now = (done, time.perf_counter(), time.process_time())
        if self._first is None and done >= self._begin:
            self._first = now
        if self._first is not None:
            records, clock, processor = (a - b for a, b in zip(now, self._first, strict=True))
            self.spent = (records, clock, processor)


class Plain:
    """Reads and writes on, in transactions, as the service does; nothing else."""

    def __init__(self, source: str, sink: str, records: int, name: str) -> None:
        self._there, self._here, self._records = parse(source), parse(sink), records
        self._producer = client.producer(self._here, name)
        self._producer.init_transactions(client.TIMEOUT)
        self._consumer = client.consumer(self._there)

    def run(self, watch: Stopwatch) -> None:
        """Copy all messages."""
        self._consumer.assign([self._place(number, 0) for number in range(PARTITIONS)])
        done, places = 0, dict[int, int]()
        while done < self._records:
            some = self._consumer.consume(BATCH, POLL)
            found: dict[int, list[dict[str, Any]]] = {}
            for message in some:
                found.setdefault(message.partition() or 0, []).append({"value": message.value()})
                places[message.partition() or 0] = (message.offset() or 0) + 1
            if found:
                self._write(found, [self._place(number, place) for number, place in places.items()])
            done += len(some)
            watch.see(done)

    def _write(self, found: dict[int, list[dict[str, Any]]], places: list[Any]) -> None:
        made = self._producer
        made.begin_transaction()
        for partition, values in found.items():
            made.produce_batch(self._here.topic, values, partition=partition)
        made.send_offsets_to_transaction(places, self._consumer.consumer_group_metadata(), client.TIMEOUT)
        made.commit_transaction(client.TIMEOUT)

    def _place(self, partition: int, offset: int) -> Any:
        return client.library().TopicPartition(self._there.topic, partition, offset)

    def stop(self) -> None:
        """Close the connections."""
        self._consumer.close()


class Served:
    """A service, which starts to read when the time runs."""

    def __init__(self, source: str, sink: str, records: int, folder: Path, method: str) -> None:
        given = {"state": str(folder), "source": source, "sink": sink, "classify": "false"}
        self._service = Service(setup(given, [method], METHODS[method], seed=1, environment={}))
        self._service.open()
        self._records = records

    def run(self, watch: Stopwatch) -> None:
        """Wait until all is read and committed."""
        service = self._service
        service.start()
        while (done := service.state().status()["accepted"]) < self._records:
            watch.see(done)
            if service.worker.failure is not None:
                raise service.worker.failure
            time.sleep(0.01)
        watch.see(done)

    def stop(self) -> None:
        """End the service."""
        self._service.stop()


def measure(scale: float) -> dict[str, Any]:
    """Run the loop and the service in turns on one topic."""
    records = int(400_000 * scale)
    spent: dict[str, tuple[float, ...]] = {}
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as place:
        topics = Topics(kafka)
        source = topics.make(PARTITIONS)
        topics.write(source, workload(records))
        for turn in range(TURNS):
            for name in ("plain", *METHODS):
                sink = topics.url(topics.make(PARTITIONS))
                url = topics.url(source, group=f"{name}-{turn}")
                way: Plain | Served = (
                    Plain(url, sink, records, f"{name}-{turn}")
                    if name == "plain"
                    else Served(url, sink, records, Path(place) / f"{name}-{turn}", name)
                )
                watch = Stopwatch(records)
                way.run(watch)
                way.stop()
                before = spent.get(name, (0.0, 0.0, 0.0))
                spent[name] = tuple(a + b for a, b in zip(before, watch.spent, strict=True))
    return _summary(spent, records)


def _summary(spent: dict[str, tuple[float, ...]], records: int) -> dict[str, Any]:
    """Return rates, and each beside the plain loop."""
    rates = {name: (done / clock, done / processor) for name, (done, clock, processor) in spent.items()}
    rows: dict[str, Any] = {"records": records, "turns": TURNS, "partitions": PARTITIONS}
    for name, (clock, processor) in rates.items():
        rows[name] = {
            "records_per_second": round(clock),
            "records_per_processor_second": round(processor),
            "of_plain": round(clock / rates["plain"][0], 2),
            "of_plain_by_processor": round(processor / rates["plain"][1], 2),
        }
    return rows
