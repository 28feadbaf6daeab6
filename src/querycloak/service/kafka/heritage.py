"""What services leave unfinished that are gone: given up at once, so that nobody waits for it to time out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from querycloak.errors import DataError
from querycloak.service.kafka import client
from querycloak.service.kafka.address import Address
from querycloak.service.kafka.lane import Mark
from querycloak.service.kafka.transactions import Transactions


def names_of(group: str, owner: str) -> tuple[str, str]:
    """Give the names under which a service writes: to the sink, and to the topic of lanes."""
    return f"querycloak-{group}-{owner}", f"querycloak-{group}-{owner}-lanes"


def give_up(source: Address, partitions: Sequence[int], own: str) -> None:
    """Shut out those who had partitions last and are no longer in the group; their transactions end.

    If one of them is not dead but slept, it finds itself shut out and begins anew.
    """
    admin = client.admin(source)
    try:
        gone = _owners(admin, source, partitions) - _members(admin, source.group) - {own}
    except client.library().KafkaException as error:
        raise client.unavailable(error) from None
    for owner in sorted(gone):
        for name in names_of(source.group, owner):
            taken = Transactions(source, name)
            taken.open()
            taken.close()


def is_member(source: Address, owner: str) -> bool:
    """Say whether a service is in the group now."""
    try:
        return owner in _members(client.admin(source), source.group)
    except client.library().KafkaException as error:
        raise client.unavailable(error) from None


def _owners(admin: Any, source: Address, partitions: Iterable[int]) -> set[str]:
    """Name those who committed last; what is not committed yet does not count here."""
    kafka = client.library()
    asked = kafka.ConsumerGroupTopicPartitions(
        source.group, [kafka.TopicPartition(source.topic, partition) for partition in partitions]
    )
    found = admin.list_consumer_group_offsets([asked], require_stable=False, request_timeout=client.PATIENCE)
    owners = set()
    for place in found[source.group].result().topic_partitions:
        try:
            owners.add(Mark.read(place.offset, place.metadata).by)
        except DataError:  # nothing is committed, or by somebody else: the lane's own check says so
            continue
    return owners - {""}


def _members(admin: Any, group: str) -> set[str]:
    found = admin.describe_consumer_groups([group], request_timeout=client.PATIENCE)[group].result()
    return {member.group_instance_id for member in found.members}
