"""Which partition a record belongs into: by person, by topic or by query, as the method needs it.

    from querycloak.service.kafka.keying import key_of, partition_of

    key = key_of({"user": "u1", "query": "rain"}, by="user")
    producer.produce("searches", value, key=key, partition=partition_of(key, 8))

It needs the standard library alone. Clients of Kafka in Java choose the same partition by themselves; those
built on librdkafka do with `partitioner=murmur2`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from querycloak.errors import ParameterError

By = Literal["user", "category", "query"]
_MIX: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C
_WORD: Final = 0xFFFFFFFF


def key_of(record: Mapping[str, Any], by: By = "user", level: int = 1) -> bytes:
    """Give the key of a record's message: what must stay together, as text.

    `user` for `cohort` and the methods with an ε, `category` (cut to a level) for `swap`, `query` for
    `frequent-only` and `z-anonymity`.
    """
    if by not in ("user", "category", "query"):
        raise ParameterError("records are kept together by `user`, `category` or `query`")
    value = record.get(by)
    if not isinstance(value, str) or not value:
        raise ParameterError(f"a record without `{by}` cannot be kept together by it")
    return ("/".join(value.split("/")[:level]) if by == "category" else value).encode()


def partition_of(key: bytes, partitions: int) -> int:
    """Give the partition that Kafka's Java clients choose for a key: the same in every process."""
    return (_murmur2(key) & 0x7FFFFFFF) % partitions


def _murmur2(data: bytes) -> int:
    """Hash bytes as Kafka's default partitioner does (MurmurHash2, 32 bits)."""
    found = (_SEED ^ len(data)) & _WORD
    whole = len(data) - len(data) % 4
    for start in range(0, whole, 4):
        part = int.from_bytes(data[start : start + 4], "little") * _MIX & _WORD
        part = (part ^ part >> 24) * _MIX & _WORD
        found = (found * _MIX & _WORD) ^ part
    if whole < len(data):
        found = (found ^ int.from_bytes(data[whole:], "little")) * _MIX & _WORD
    found = (found ^ found >> 13) * _MIX & _WORD
    return found ^ found >> 15
