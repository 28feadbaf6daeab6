"""Kafka's client library: imported on use, set up the same way everywhere, its faults put into our words."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from querycloak.errors import DataError, MissingExtra, ParameterError, QueryCloakError, Refused, Unavailable
from querycloak.keys import write_private
from querycloak.service.kafka.address import Address

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

#: Seconds that a broker may take to answer before it counts as away.
PATIENCE: Final = 30.0
#: After so many milliseconds without a sign a member of a group counts as gone.
_SESSION: Final = 10_000
_QUEUED_MESSAGES: Final = 1_000_000
_QUEUED_KBYTES: Final = 1 << 20
_MAKE_IT: Final = "make it first; querycloak makes no topics"

_SILENT: Final = logging.getLogger("querycloak.kafka")  # what matters is told by faults, in our own words
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def library() -> Any:
    """Give the client library, or say what to install."""
    try:
        import confluent_kafka
    except ImportError:
        raise MissingExtra("kafka", "reading or writing a Kafka topic") from None
    return confluent_kafka


def consumer(
    address: Address, told: Callable[[KafkaError], None] = lambda error: None, **more: Any
) -> Consumer:
    """Make a consumer that sees committed messages only, and commits nothing by itself."""
    fixed = {
        "group.id": address.group,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",  # a gap must be told, never jumped over
        "session.timeout.ms": _SESSION,
    }
    made: Consumer = _made(library().Consumer, address, fixed | more, told)
    return made


def producer(
    address: Address, transactional_id: str, told: Callable[[KafkaError], None] = lambda error: None
) -> Producer:
    """Make a producer for transactions under a name; whoever used that name before is shut out."""
    fixed = {
        "transactional.id": transactional_id,
        "enable.idempotence": True,
        "queue.buffering.max.messages": _QUEUED_MESSAGES,
        "queue.buffering.max.kbytes": _QUEUED_KBYTES,
        "linger.ms": 5,
        # The next transaction can begin when all brokers know of the last: until then it is tried again.
        "retry.backoff.ms": 10,
    }
    made: Producer = _made(library().Producer, address, fixed, told)
    return made


def sender(address: Address) -> Producer:
    """Make a producer that sends each message once, without transactions."""
    fixed = {"enable.idempotence": True, "linger.ms": 5}
    made: Producer = _made(library().Producer, address, fixed, lambda error: None)
    return made


def admin(address: Address) -> AdminClient:
    """Make a client that asks about topics and groups."""
    library()
    from confluent_kafka.admin import AdminClient

    made: AdminClient = _made(AdminClient, address, {}, lambda error: None)
    return made


def _made(
    kind: Callable[[dict[str, Any]], Any],
    address: Address,
    fixed: dict[str, Any],
    told: Callable[[KafkaError], None],
) -> Any:
    own = {"bootstrap.servers": address.servers, "log_level": 0, "logger": _SILENT, "error_cb": told}
    try:
        return kind(own | fixed | dict(address.options))
    except library().KafkaException:  # its text repeats values, and one of them may be a password
        names = ", ".join(f"`{name}`" for name in sorted(address.options)) or "none"
        raise ParameterError(
            "Kafka's client does not take the options of the address", hint=f"given were: {names}"
        ) from None


def partitions_of(client: Any, address: Address, *, hint: str = _MAKE_IT) -> int:
    """Ask how many partitions a topic has."""
    found = library()
    try:
        topic = client.list_topics(address.topic, timeout=PATIENCE).topics[address.topic]
    except found.KafkaException as error:
        raise unavailable(error) from None
    if topic.error is not None:
        if topic.error.retriable() and topic.error.code() != found.KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise Unavailable(f"Kafka does not answer ({topic.error.name()})")
        raise DataError(
            f"the topic `{address.topic}` cannot be used ({topic.error.name()})",
            hint=hint,
        )
    return len(topic.partitions)


def away() -> tuple[int, ...]:
    """Give the faults that mean: nobody answers."""
    codes = library().KafkaError
    return codes._ALL_BROKERS_DOWN, codes._TRANSPORT, codes._TIMED_OUT, codes._RESOLVE


def passes(error: KafkaError) -> bool:
    """Say whether a fault may be over the next time: most are, but no rights and no name are for good."""
    codes = library().KafkaError
    lasting = {
        codes._AUTHENTICATION,
        codes._AUTO_OFFSET_RESET,
        codes._FATAL,
        codes.CLUSTER_AUTHORIZATION_FAILED,
        codes.FENCED_INSTANCE_ID,
        codes.GROUP_AUTHORIZATION_FAILED,
        codes.SASL_AUTHENTICATION_FAILED,
        codes.TOPIC_AUTHORIZATION_FAILED,
        codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
    return not error.fatal() and error.code() not in lasting


def name_in(folder: Path) -> str:
    """Give the name by which Kafka knows a service again after a crash: one for each state folder."""
    path = folder / "kafka-name"
    if not path.exists():
        write_private(path, secrets.token_hex(8).encode())
    return path.read_text("ascii")


def replaced(error: KafkaError) -> bool:
    """Say whether the group holds somebody else for this member: a rival, or its broker has an old list."""
    codes = library().KafkaError
    return error.code() in (codes.FENCED_INSTANCE_ID, codes._FATAL)


def fault(error: Exception) -> KafkaError:
    """Give what the library says about a failure."""
    return error.args[0]  # type: ignore[no-any-return]


class KafkaRefuses(DataError):
    """A fault of Kafka's that does not pass; no lane's own."""

    code = "kafka-refuses"


class Rival(Refused):
    """Somebody else has this service's name."""

    code = "rival"


def unavailable(error: Exception) -> Unavailable:
    """Say that Kafka does not answer, by the fault's name alone: its text may hold more than may be told."""
    return Unavailable(f"Kafka does not answer ({fault(error).name()})", hint="it goes on by itself")


def rival(fault: str) -> Rival:
    """Say that somebody else has taken this service's name."""
    return Rival(
        f"another service uses the same name in Kafka ({fault})",
        hint="does a copy of the state folder run elsewhere? each service needs one of its own",
    )


def told(error: KafkaError) -> QueryCloakError:
    """Put a fault that does not pass into words."""
    codes = library().KafkaError
    if error.code() == codes._AUTO_OFFSET_RESET:
        return DataError(  # of one partition
            "Kafka no longer has the messages that come next",
            hint="the topic's retention is shorter than the service was away; start anew with another group",
        )
    if error.code() in (codes.FENCED_INSTANCE_ID, codes._FENCED, codes._FATAL):
        return rival(error.name())
    return KafkaRefuses(f"Kafka refuses ({error.name()})")
