"""How long lanes stand still when services join, stop and die, and what keeping lanes in a topic costs.

python -m benchmarks.service_lanes [PEOPLE]

Records flow steadily into eight partitions. `rules` releases each at once, so the longest gap between two
lines of a lane, after something happened, is the time that the lane stood still. Services are processes with
the default session timeout. First `cohort` reads a log of so many people, and its snapshots are weighed.
It starts a Kafka broker of its own: see `querycloak doctor` for what that needs.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import secrets
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.support.kafka_topics import Sent, Topics
from tests.support.servers.kafka import LocalKafka
from tests.support.servers.process import wait_until
from tests.support.service_process import LiveService

from benchmarks.service_kafka import workload

LANES = 8
#: Records a second in all, and how long a gap is looked for after something happened.
RATE = 400
WATCHED = 35.0


def _record(number: int) -> bytes:
    """Make a record that `rules` lets pass."""
    query = f"rain in {'abcdefghij'[number % 10] * 4}"
    return json.dumps({"user": f"u{number % 97}", "query": query}).encode()


class Flow:
    """Writes records all the time, and notes when lines of each lane come out."""

    def __init__(self, kafka: LocalKafka, source: str, sink: str) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._topics, self._source = Topics(kafka), source
        choices = {"bootstrap.servers": kafka.bootstrap, "group.id": secrets.token_hex(4), "log_level": 0}
        self._reader = Consumer(choices | {"isolation.level": "read_committed", "enable.auto.commit": False})
        self._reader.assign([TopicPartition(sink, lane, 0) for lane in range(LANES)])
        self.seen: dict[int, list[float]] = {lane: [] for lane in range(LANES)}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._write, self._read)]
        for thread in self._threads:
            thread.start()

    def _write(self) -> None:
        number = 0
        while not self._stop.wait(0.05):
            now = time.time_ns() // 1_000_000
            sent = [Sent(one % LANES, now, _record(one)) for one in range(number, number + RATE // 20)]
            number += RATE // 20
            self._topics.write(self._source, sent)

    def _read(self) -> None:
        while not self._stop.is_set():
            for message in self._reader.consume(1000, 0.02):
                if message.error() is None:
                    self.seen[message.partition() or 0].append(time.monotonic())

    def gaps(self, since: float) -> list[float]:
        """Give each lane's longest time without a line since then, in seconds."""
        found = []
        for seen in self.seen.values():
            times = [since, *(at for at in list(seen) if at >= since)]
            found.append(round(max((b - a for a, b in itertools.pairwise(times)), default=-1.0), 1))
        return sorted(found)

    def stop(self) -> None:
        """End."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._reader.close()


class Harness:
    """Topics, a key, and services over them."""

    def __init__(self, kafka: LocalKafka, folder: Path, method: tuple[str, ...]) -> None:
        self.kafka, self.topics, self._folder, self._method = kafka, Topics(kafka), folder, method
        self.source, self.sink = self.topics.make(LANES), self.topics.make(LANES)
        self.lanes = _compacted(kafka)
        self._key = folder / "state.key"
        self._key.write_text(secrets.token_hex(32))
        self._key.chmod(0o600)

    def service(self, name: str) -> LiveService:
        """Give one service, not started yet."""
        options = {"lanes": self.topics.url(self.lanes), "state_key": str(self._key), "profiles": "none"}
        options |= {"classify": "false", "snapshot_seconds": "5"}
        arguments = [
            *self._method,
            "--seed",
            "1",
            "--source",
            self.topics.url(self.source, group=self.source),
        ]
        arguments += ["--sink", self.topics.url(self.sink)]
        arguments += [part for item in options.items() for part in ("-o", "=".join(item))]
        return LiveService(self._folder / f"{name}-{self.source}", *arguments)


def _compacted(kafka: LocalKafka) -> str:
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    name = f"lanes{secrets.token_hex(4)}"
    config = {"cleanup.policy": "compact", "max.compaction.lag.ms": "3600000"}
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, LANES + 1, 1, config=config)])[name].result(60)
    wait_until(lambda: name in admin.list_topics(timeout=10).topics, "the topic is there")
    return name


def pauses(kafka: LocalKafka, folder: Path) -> dict[str, list[float]]:
    """Let services come and go while records flow; give each lane's longest gap after each event."""
    bench = Harness(kafka, folder, ("-m", "rules"))
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(bench.service(name)) for name in ("first", "second"))
        return _pauses(kafka, bench, first, second, stack)


def _pauses(
    kafka: LocalKafka, bench: Harness, first: LiveService, second: LiveService, stack: contextlib.ExitStack
) -> dict[str, list[float]]:
    third = bench.service("third")
    stack.callback(third.kill)
    flow = Flow(kafka, bench.source, bench.sink)
    wait_until(lambda: all(flow.seen.values()), "all lanes flow")
    time.sleep(10)
    found: dict[str, list[float]] = {}

    def after(name: str, event: Any) -> None:
        since = time.monotonic()
        event()
        time.sleep(max(0.0, since + WATCHED - time.monotonic()))
        found[name] = flow.gaps(since)
        print(name, found[name], file=sys.stderr)

    after("nothing", lambda: None)
    after("a third joins", third.start)
    after("one is killed", first.kill)
    after("it comes back", first.start)
    after("one is stopped and started again", lambda: (second.stop(), second.start()))
    after("one is stopped", third.stop)
    flow.stop()
    return found


def weights(kafka: LocalKafka, folder: Path, people: int) -> dict[str, Any]:
    """Read a log with `cohort`, and weigh what is kept of it."""
    bench = Harness(kafka, folder, ("-m", "cohort", "-s", "k=10", "-s", "shards=1"))
    records = 50 * people
    sent = [Sent(number % LANES, one.stamp, one.value) for number, one in _by_person(workload(records))]
    bench.topics.write(bench.source, sent)
    with bench.service("one") as one:
        wait_until(lambda: one.status()["accepted"] == records, "all is read", 600)
        one.stop()
        begin = time.monotonic()
        one.start()
        wait_until(lambda: one.client.get("/readyz").status_code == 200, "lanes are loaded")
        loaded = time.monotonic() - begin
        one.stop()
    sizes = [_newest(bench, lane) for lane in range(LANES)]
    return {
        "people": people,
        "records": records,
        "bytes_of_all_snapshots": sum(sizes),
        "bytes_per_person": round(sum(sizes) / people),
        "seconds_from_start_to_all_lanes_loaded": round(loaded, 1),
    }


def _by_person(some: list[Sent]) -> list[tuple[int, Sent]]:
    return [(int(json.loads(one.value)["user"].rpartition("-")[2]), one) for one in some]


def _newest(bench: Harness, lane: int) -> int:
    """Weigh the messages of a lane's newest snapshot."""
    from querycloak.service.kafka.address import parse
    from querycloak.service.kafka.reading import Reader

    reader = Reader(parse(bench.topics.url(bench.lanes)))
    found = reader.read(lane, 0)
    reader.close()
    return sum(len(value) for key, value in found.items() if key.startswith("snapshot"))


def measure(people: int = 10_000) -> dict[str, Any]:
    """Measure both."""
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as place:
        weighed = weights(kafka, Path(place), people)
        return {"longest_gap_of_each_lane_in_seconds": pauses(kafka, Path(place))} | weighed


if __name__ == "__main__":
    print(json.dumps(measure(*(int(text) for text in sys.argv[1:2])), indent=1))
