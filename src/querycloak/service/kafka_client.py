"""Kafka addresses (`kafka://HOST:PORT/TOPIC?group=NAME`) and clients with settings for exactly-once."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np

from querycloak.errors import (
    DataError,
    ParameterError,
    QueryCloakError,
    Refused,
    Unavailable,
    UsageError,
    import_extra,
)
from querycloak.keys import others_can_read
from querycloak.service.task import Task

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer

T = TypeVar("T")
S = TypeVar("S", bound=Sized)
#: Seconds that a broker may take to answer.
TIMEOUT: Final = 30.0
_PARAMETERS: Final = frozenset({"group", "start", "partition", "partitions", "options"})
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):\d{1,5}")
_PARTITIONS: Final = re.compile(r"(\d{1,6})-(\d{1,6})")
#: Client options that exactly-once relies on; an address cannot change them.
_FIXED: Final = frozenset(
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
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "transactional.id",
    }
)
_SILENT: Final = logging.getLogger("querycloak.kafka")  # librdkafka's own messages may contain addresses
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class KafkaRefuses(DataError):
    """Kafka refuses permanently, for example for lack of rights."""

    code = "kafka-refuses"


class Rival(Refused):
    """Another service uses the same name in Kafka."""

    code = "rival"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"another service uses the same name in Kafka ({reason})",
            hint="does a copy of the state folder run elsewhere? each service needs its own",
        )


@dataclass(frozen=True)
class Address:
    """A topic and how to reach it. `options` can contain a password and is never shown."""

    servers: str
    topic: str
    group: str = "querycloak"
    start: str = "earliest"
    partition: int = 0
    partitions: range | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"kafka://{self.servers}/{self.topic}"


def parse(url: str) -> Address:
    """Parse an address. Raise ParameterError without repeating it, since it may hold a password."""
    parts = urlsplit(url)
    servers, topic = parts.netloc, unquote(parts.path.lstrip("/"))
    known = all(_SERVER.fullmatch(server) for server in servers.split(","))
    if parts.scheme != "kafka" or not known or not _NAME.fullmatch(topic) or parts.fragment:
        raise ParameterError(
            "this is no address of a Kafka topic",
            hint="write `kafka://HOST:PORT[,HOST:PORT]/TOPIC`; user and password belong into `options=FILE`",
        )
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if any(name not in _PARAMETERS and not name.startswith("kafka.") for name in given):
        raise ParameterError(
            "an address of a Kafka topic has an unknown parameter",
            hint=f"known are {', '.join(sorted(_PARAMETERS))}; options of the client begin with `kafka.`",
        )
    options = _read_options(Path(given["options"])) if "options" in given else {}
    options |= {
        name.removeprefix("kafka."): text for name, text in given.items() if name.startswith("kafka.")
    }
    if fixed := sorted(_FIXED & set(options)):
        raise ParameterError(f"`{fixed[0]}` of Kafka's client is set by querycloak and cannot be changed")
    group, start = given.get("group", "querycloak"), given.get("start", "earliest")
    partition = given.get("partition", "0")
    if not _NAME.fullmatch(group) or start not in ("earliest", "latest") or not partition.isdecimal():
        raise ParameterError("`group` is a name, `start` is earliest or latest, `partition` counts from 0")
    return Address(servers, topic, group, start, int(partition), _split(given.get("partitions")), options)


def _split(text: str | None) -> range | None:
    """Parse `0-3`: the partitions of a source that this service reads, the last one included."""
    if text is None:
        return None
    found = _PARTITIONS.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        raise ParameterError("`partitions` is FIRST-LAST, for example `partitions=0-3`")
    return range(int(found[1]), int(found[2]) + 1)


def _read_options(path: Path) -> dict[str, str]:
    """Read lines of `name=value`, as for Kafka's own tools, from a file that only its owner can read."""
    try:
        text, exposed = path.read_text("utf-8"), others_can_read(path)
    except (OSError, UnicodeDecodeError):
        raise UsageError("the file of Kafka's options cannot be read") from None
    if exposed:
        raise UsageError("others can read the file of Kafka's options", hint="run `chmod 600` on it first")
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.partition("=") for line in lines if line and line[0] not in "#!"]
    return {name.strip(): value.strip() for name, _, value in pairs}


def library() -> Any:
    """Return the module `confluent_kafka`, or raise MissingExtra."""
    return import_extra("confluent_kafka", "kafka", "reading or writing a Kafka topic")


def consumer(
    address: Address, group: str = "", on_error: Callable[[KafkaError], None] = lambda error: None
) -> Consumer:
    """Return a consumer that reads committed messages only and commits nothing by itself."""
    fixed = {
        "group.id": group or address.group,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",  # a gap stops the service, it is never skipped
        "error_cb": on_error,
    }
    made: Consumer = _client(library().Consumer, address, fixed)
    return made


def producer(
    address: Address, transactional_id: str, on_error: Callable[[KafkaError], None] = lambda error: None
) -> Producer:
    """Return a transactional producer; its `init_transactions` fences an earlier one with the same id."""
    fixed = {
        "transactional.id": transactional_id,
        "enable.idempotence": True,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": 1 << 20,
        "linger.ms": 5,
        # The next transaction begins when all brokers know the end of the last; until then it retries.
        "retry.backoff.ms": 10,
        "error_cb": on_error,
    }
    made: Producer = _client(library().Producer, address, fixed)
    return made


def _client(kind: Callable[[dict[str, Any]], Any], address: Address, fixed: Mapping[str, Any]) -> Any:
    own = {"bootstrap.servers": address.servers, "log_level": 0, "logger": _SILENT}
    try:
        return kind(own | dict(fixed) | dict(address.options))
    except library().KafkaException:  # its text repeats values of options
        names = ", ".join(f"`{name}`" for name in sorted(address.options)) or "none"
        raise ParameterError(
            "Kafka's client does not take the options of the address", hint=f"given were: {names}"
        ) from None


def partition_count(client: Any, address: Address, needed: int) -> int:
    """Return the number of partitions of a topic. Raise DataError without it or its partition `needed`."""
    topic = client.list_topics(address.topic, timeout=TIMEOUT).topics[address.topic]
    if (error := topic.error) is not None:
        if error.retriable() and error.code() != library().KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise Unavailable(f"Kafka does not answer ({error.name()})")
        raise DataError(
            f"the topic `{address.topic}` cannot be used ({error.name()})",
            hint="create it first; querycloak creates no topics",
        )
    count = len(topic.partitions)
    if needed >= count:
        raise DataError(f"the topic `{address.topic}` has {count} partitions, counted from 0")
    return count


def call(work: Callable[[], T], seconds: float) -> T:
    """Call the client in a thread of its own. Raise TimeoutError if it does not return in time.

    `send_offsets_to_transaction` ignores its own time limit if the group's coordinator goes away meanwhile
    (librdkafka's issues 5456 and 5511). Such a call keeps its thread, and the producer that it was made on.
    """
    task = Task(work)
    threading.Thread(target=task.run, name="querycloak-kafka-call", daemon=True).start()
    found: T = task.result.result(seconds)
    return found


def translate(error: KafkaError) -> QueryCloakError:
    """Return our error for one of Kafka's: `Unavailable` if trying again can help.

    Only the name of the error is shown: its text can contain addresses.
    """
    codes = library().KafkaError
    if error.code() == codes._AUTO_OFFSET_RESET:
        return DataError(
            "Kafka no longer has the messages that come next",
            hint="the retention of the topic is shorter than the time that the service was stopped",
        )
    if error.code() == codes.MSG_SIZE_TOO_LARGE:
        return DataError(
            "a released line is larger than the sink takes",
            hint="raise `max.message.bytes` of the topic, and `kafka.message.max.bytes` of the address",
        )
    if "AUTHENTICATION" in error.name() or "AUTHORIZATION" in error.name():
        return KafkaRefuses(f"Kafka refuses ({error.name()})")
    return Unavailable(f"Kafka does not answer ({error.name()})", hint="it is tried again")


def split_by_size(items: Sequence[S], most: int) -> Iterator[Sequence[S]]:
    """Yield runs of items whose sizes add up to about `most`."""
    which = np.cumsum([len(item) for item in items]) // most
    ends = [*(np.flatnonzero(np.diff(which)) + 1).tolist(), len(items)]
    for start, end in zip([0, *ends], ends, strict=False):
        yield items[start:end]
