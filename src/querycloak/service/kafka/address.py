"""Addresses of topics, `kafka://HOST:PORT/TOPIC?group=…`: checked, and never shown with a password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from querycloak.errors import ParameterError, UsageError
from querycloak.keys import others_can_read

SCHEME: Final = "kafka"
#: Parameters that begin so are handed to the client library without the beginning.
PREFIX: Final = "kafka."
FORM: Final = "kafka://HOST:PORT[,HOST:PORT]/TOPIC"
_OWN: Final = frozenset({"group", "start", "partition", "options"})
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):\d{1,5}")
#: What exactly-once rests on; nobody may change these.
FIXED: Final = frozenset(
    {
        "acks",
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "group.id",
        "group.instance.id",
        "isolation.level",
        "metadata.broker.list",
        "partition.assignment.strategy",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "transactional.id",
    }
)
Start = Literal["earliest", "latest"]


@dataclass(frozen=True)
class Address:
    """Where a topic is, and how to get in; options may hold a password, so they are never printed."""

    servers: str
    topic: str
    group: str = "querycloak"
    start: Start = "earliest"
    partition: int = 0
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{SCHEME}://{self.servers}/{self.topic}"


def is_kafka(url: str) -> bool:
    """Say whether a source or sink is a topic."""
    return url.partition(":")[0] == SCHEME


def parse(url: str) -> Address:
    """Read an address; refuse anything that is not understood, without repeating it."""
    parts = urlsplit(url)
    servers, topic = parts.netloc, unquote(parts.path.lstrip("/"))
    if "@" in servers:
        raise ParameterError(
            "an address of Kafka has no user in front of the host",
            hint="write `kafka.sasl.username=…` behind `?`, and the password into a file: `options=FILE`",
        )
    known = all(_SERVER.fullmatch(server) for server in servers.split(","))
    if parts.scheme != SCHEME or not known or not _TOPIC.fullmatch(topic) or parts.fragment:
        raise ParameterError(f"this is no address of a topic; it looks like `{FORM}`")
    return _with_parameters(servers, topic, parse_qsl(parts.query, keep_blank_values=True))


def _with_parameters(servers: str, topic: str, given: list[tuple[str, str]]) -> Address:
    own = {name: text for name, text in given if name in _OWN}
    for name, _ in given:
        if name not in _OWN and not name.startswith(PREFIX):
            raise ParameterError(
                "an address of Kafka has a parameter that is not known",
                hint=f"known are {', '.join(sorted(_OWN))}; options of the client begin with `{PREFIX}`",
            )
    options = _from_file(Path(own["options"])) if "options" in own else {}
    options |= {name.removeprefix(PREFIX): text for name, text in given if name.startswith(PREFIX)}
    if taken := sorted(FIXED & set(options)):
        raise ParameterError(f"`{taken[0]}` of Kafka's client is set by querycloak and cannot be changed")
    return Address(servers, topic, _group(own), _start(own), _partition(own), options)


def _group(own: Mapping[str, str]) -> str:
    group = own.get("group", "querycloak")
    if not _TOPIC.fullmatch(group):
        raise ParameterError("`group` has letters, digits, dots, dashes and underscores only")
    return group


def _start(own: Mapping[str, str]) -> Start:
    start = own.get("start", "earliest")
    if start not in ("earliest", "latest"):
        raise ParameterError("`start` is `earliest` or `latest`")
    return "earliest" if start == "earliest" else "latest"


def _partition(own: Mapping[str, str]) -> int:
    text = own.get("partition", "0")
    if not text.isdecimal():
        raise ParameterError("`partition` is a number from 0 on")
    return int(text)


def _from_file(path: Path) -> dict[str, str]:
    """Read options, `name=value` a line as for Kafka's own tools, from a file that nobody else may read."""
    try:
        text, open_to_all = path.read_text("utf-8"), others_can_read(path)
    except (OSError, UnicodeDecodeError):
        raise UsageError("the file of Kafka's options cannot be read") from None
    if open_to_all:
        raise UsageError("others can read the file of Kafka's options", hint="run `chmod 600` on it first")
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.partition("=") for line in lines if line and line[0] not in "#!"]
    return {name.strip(): value.strip() for name, _, value in pairs}
