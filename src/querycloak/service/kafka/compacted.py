"""Checks the topic that lanes are shared in: it must keep what is newest, and let go of what is not."""

from __future__ import annotations

from typing import Any, Final

from querycloak.errors import Refused
from querycloak.service.kafka import client
from querycloak.service.kafka.address import Address

#: Within so many milliseconds Kafka must be told to clear away what was replaced: a week.
LONGEST_LAG: Final = 7 * 86_400_000
#: What one message may need: a piece of a snapshot, sealed.
_MESSAGE: Final = 1_000_000


def check(address: Address, lanes: int) -> None:
    """Refuse a topic that could lose a lane, or keep a person who was erased; say how to make a good one."""
    admin = client.admin(address)
    count = client.partitions_of(admin, address, hint=how_to_make(address.topic, lanes))
    if count != lanes + 1:
        raise _refused(
            address, lanes, f"has {count} partitions; it needs {lanes + 1}: one for each lane, and one more"
        )
    found = _settings(admin, address)
    if found["cleanup.policy"] != "compact":
        raise _refused(address, lanes, f"has the clean-up policy `{found['cleanup.policy']}`, not `compact`")
    if int(found["max.message.bytes"]) < _MESSAGE:
        raise _refused(address, lanes, f"takes messages below {_MESSAGE:,} bytes only (`max.message.bytes`)")
    if int(found["max.compaction.lag.ms"]) > LONGEST_LAG:
        raise _refused(
            address, lanes, "may keep what was erased for more than a week (`max.compaction.lag.ms`)"
        )


def same_cluster(first: Address, second: Address) -> bool:
    """Say whether two topics lie in one cluster: a transaction does not reach further."""
    return _cluster(first) == _cluster(second)


def how_to_make(topic: str, lanes: int) -> str:
    """Give the command that makes the topic."""
    return (
        f"kafka-topics.sh --create --topic {topic} --partitions {lanes + 1} --replication-factor 3"
        " --config cleanup.policy=compact --config max.compaction.lag.ms=3600000"
    )


def _refused(address: Address, lanes: int, why: str) -> Refused:
    return Refused(f"the topic `{address.topic}` {why}", hint=how_to_make(address.topic, lanes))


def _settings(admin: Any, address: Address) -> dict[str, str]:
    from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined]

    topic = ConfigResource(ConfigResource.Type.TOPIC, address.topic)
    try:
        found = admin.describe_configs([topic], request_timeout=client.PATIENCE)[topic].result()
    except client.library().KafkaException as error:
        fault = client.fault(error)
        raise (client.unavailable(error) if client.passes(fault) else client.told(fault)) from None
    return {name: str(entry.value) for name, entry in found.items()}


def _cluster(address: Address) -> str:
    try:
        return str(client.admin(address).list_topics(timeout=client.PATIENCE).cluster_id)
    except client.library().KafkaException as error:
        raise client.unavailable(error) from None
