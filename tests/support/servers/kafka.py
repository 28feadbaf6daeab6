"""A Kafka of one's own: one broker that is its own controller, on free loopback ports."""

from __future__ import annotations

import base64
import secrets
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from querycloak import environment
from querycloak.errors import MissingExtra, UsageError
from tests.support import programs
from tests.support.ports import free_ports
from tests.support.servers.base import LocalServer
from tests.support.servers.process import LIMIT, wait_until

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

#: One broker stands for three, a group starts at once, and whoever is gone is noticed soon.
_QUICK = {
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 2,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    # After a crash the controller waits so long before it admits the same broker again.
    "broker.session.timeout.ms": 4000,
    "broker.heartbeat.interval.ms": 500,
    "auto.create.topics.enable": "false",
}


class LocalKafka(LocalServer):
    """A Kafka broker; `bootstrap` is where clients begin. Topics are made by name, never by accident."""

    name = "Kafka"

    def __init__(self, jars: Path | None = None, folder: Path | None = None) -> None:
        self._java, self._jars = _java(), jars or _jars()
        super().__init__(folder)
        self.port, self._controller_port = free_ports(2)

    @property
    def bootstrap(self) -> str:
        """Where clients begin."""
        return f"127.0.0.1:{self.port}"

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic, and wait until it can be written."""
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        admin = self._admin()
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(LIMIT)
        wait_until(
            lambda: len(admin.list_topics(name, timeout=LIMIT).topics[name].partitions) == partitions,
            f"topic {name} is there",
        )

    def prepare(self) -> None:
        """Write the settings, and format the store unless there is one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = _QUICK | self._addresses() | {"log.dirs": self.folder / "data"}
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.folder / "server.properties").write_text(lines, "utf-8")
        if (self.folder / "data").exists():
            return
        cluster = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=").replace("-", "_")
        done = subprocess.run(
            self._run("kafka.tools.StorageTool", "format", "-t", cluster, "-c", "server.properties"),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        if done.returncode:
            raise UsageError(f"Kafka could not format its store: {done.stderr.strip()}")

    def command(self) -> list[str | Path]:
        """Run broker and controller in one process."""
        return self._run("kafka.Kafka", "server.properties")

    def answers(self) -> bool:
        """Ask for the list of brokers: a broker that is not admitted yet is not in it."""
        from confluent_kafka import KafkaException

        try:
            return bool(self._admin().list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def _addresses(self) -> dict[str, str | int | Path]:
        clients, controller = f"PLAINTEXT://{self.bootstrap}", f"127.0.0.1:{self._controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{clients},CONTROLLER://{controller}",
            "advertised.listeners": clients,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }

    def _run(self, main: str, *arguments: str) -> list[str | Path]:
        machine = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData", f"-Djava.io.tmpdir={self.folder}"]
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return [self._java, *machine, quiet, "-cp", f"{self._jars}/*", main, *arguments]

    def _admin(self) -> AdminClient:
        try:
            from confluent_kafka.admin import AdminClient
        except ModuleNotFoundError:
            raise MissingExtra("kafka", "asking a Kafka broker") from None
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})


def _java() -> Path:
    if found := environment.java():
        return found
    raise UsageError("Java is not on this machine", hint=programs.how_to_install("Java"))


def _jars() -> Path:
    if found := programs.kafka():
        return found
    raise UsageError("no Kafka broker is on this machine", hint=programs.how_to_install("Kafka broker"))
