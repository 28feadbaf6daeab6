"""Kafka with passwords (SASL/PLAIN): a real broker that lets nobody in without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from querycloak.service.kafka_client import KafkaRefuses
from querycloak.service.service import Service
from querycloak.service.settings import setup
from tests.integration.kafka.test_topics import log
from tests.support.servers.kafka import LocalKafka
from tests.support.servers.process import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.service, pytest.mark.timeout(600)]
USER, PASSWORD = "querycloak", "planted-password-7"
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": USER}
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class SaslKafka(LocalKafka):
    """A broker whose only listener for clients asks for a password."""

    def _addresses(self) -> dict[str, Any]:
        found = super()._addresses()
        found |= {
            name: str(found[name]).replace("PLAINTEXT://", "SASL_PLAINTEXT://")
            for name in found
            if "listeners" in name
        }
        jaas = f'{MODULE} username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
        return found | {
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
        }

    def client(self, kind: Any, **options: Any) -> Any:
        login = LOGIN | {"sasl.password": PASSWORD}
        return kind({"bootstrap.servers": self.bootstrap, "log_level": 0, **login, **options})

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return self.client(AdminClient)


@pytest.fixture(scope="module")
def broker() -> Iterator[SaslKafka]:
    with SaslKafka() as server:
        server.create_topic("in", 2)
        server.create_topic("out", 1)
        yield server


def service(broker: SaslKafka, folder: Path, password: str) -> Service:
    options = folder / "options"
    options.write_text("".join(f"{n}={v}\n" for n, v in (LOGIN | {"sasl.password": password}).items()))
    options.chmod(0o600)
    source, sink = (f"kafka://{broker.bootstrap}/{topic}?options={options}" for topic in ("in", "out"))
    given = {"state": str(folder / "state"), "classify": False, "source": source, "sink": sink}
    return Service(setup(given, ["cohort"], {"k": "3"}, seed=1, environment={}))


def test_topic_to_topic_with_a_password(broker, tmp_path):
    from confluent_kafka import Consumer, Producer, TopicPartition

    sent = log(20)
    producer = broker.client(Producer)
    for number, value in enumerate(sent):
        producer.produce("in", value, partition=number % 2)
    assert producer.flush(30) == 0
    one = service(broker, tmp_path, PASSWORD)
    one.open()
    one.start()
    wait_until(
        lambda: one.state().status()["accepted"] == len(sent) and not one.state().status()["queued"],
        "all is read",
        60,
    )
    lines = one.released.read(0, 10**6).splitlines()
    one.stop()
    reader = broker.client(Consumer, **{"group.id": "reader", "isolation.level": "read_committed"})
    reader.assign([TopicPartition("out", 0, 0)])
    found: list[bytes] = []
    wait_until(
        lambda: bool(found.extend(m.value() for m in reader.consume(999, 0.5))) or len(found) >= len(lines),
        "read",
    )
    reader.close()
    assert found == lines != []


def test_a_wrong_password_is_refused_and_never_shown(broker, tmp_path, capfd):
    one = service(broker, tmp_path, "planted-wrong-9")
    with pytest.raises(KafkaRefuses, match="Kafka refuses") as caught:
        one.open()
    assert "planted" not in f"{caught.value} {caught.value.hint} {''.join(capfd.readouterr())}"
    one.wal.close()
