"""What services that share lanes must have in common; who differs is refused before it reads anything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from querycloak.errors import ParameterError, Refused, UsageError
from querycloak.keys import derive
from querycloak.service.kafka import compacted
from querycloak.service.kafka.address import Address, parse
from querycloak.service.settings import Setup
from querycloak.service.sinks.profiles import NONE

#: Lanes that are kept in the service's own folder.
LOCAL: Final = "local"
#: How each fact is called in a message.
_NAMES: Final = {
    "topic": "source",
    "partitions": "number of partitions",
    "group": "group",
    "sink": "sink",
    "secret": "secret or seed",
    "methods": "methods or their settings",
    "classify": "`classify`",
    "taxonomy": "taxonomy",
}


def address_of_lanes(setup: Setup) -> Address | None:
    """Give the topic that lanes are shared in, if they are; refuse what cannot be shared."""
    chosen = setup.settings
    if chosen.lanes == LOCAL:
        return None
    address = parse(chosen.lanes)
    if not chosen.state_key:
        raise ParameterError(
            "lanes in a topic hold raw searches, and others read the topic; give a key: `state_key`",
            hint="head -c 32 /dev/urandom > state.key; the same file for all services, mode 0600",
        )
    if setup.seed is None and not chosen.secret_file:
        raise ParameterError(
            "services that share lanes need one secret; give a file: `secret_file`",
            hint="head -c 32 /dev/urandom | base64 > secret; the same file for all services, mode 0600",
        )
    if chosen.profiles.partition(":")[0] == "sqlite":
        raise ParameterError(
            "profiles in a file do not move with lanes, and would miss what others release",
            hint=f"use `profiles=postgresql://…`, or `profiles={NONE}` to keep none",
        )
    return address


def check_places(source: Address, sink: Address, lanes: Address, partitions: int) -> None:
    """Refuse topics that no transaction spans, and one that cannot keep lanes."""
    if lanes.topic in (source.topic, sink.topic):
        raise ParameterError("lanes need a topic of their own")
    for other, name in ((sink, "the sink"), (lanes, "the topic of lanes")):
        if other.servers != source.servers and not compacted.same_cluster(source, other):
            raise Refused(
                f"{name} is in another cluster than the source", hint="a transaction has one cluster"
            )
    compacted.check(lanes, partitions)


def facts(setup: Setup, source: Address, sink: Address, partitions: int, secret: bytes) -> dict[str, Any]:
    """Say what a service goes by; of the secret and the taxonomy only by what they are known again."""
    found = {
        "topic": source.topic,
        "partitions": partitions,
        "group": source.group,
        "sink": sink.topic,
        "secret": derive(secret, "whose lanes these are").hex(),
        "methods": [[stage.method, stage.settings.as_dict()] for stage in setup.stages],
        "classify": setup.settings.classify,
        "taxonomy": _content(setup.settings.taxonomy),
    }
    return dict(json.loads(json.dumps(found)))  # as it comes back from the topic


def compare(known: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Refuse a service that is not like those before it; say in what, never with which value."""
    other = [name for fact, name in _NAMES.items() if known.get(fact) != own[fact]]
    if other:
        raise Refused(
            f"other services share these lanes, and have another {' and another '.join(other)}",
            hint="start all with the same, or use another group and another topic of lanes",
        )


def _content(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else ""
    except OSError as error:
        raise UsageError(f"the taxonomy cannot be read: {error.strerror}") from None
