"""Topics as source and sink, as far as no broker is needed: addresses and messages."""

from __future__ import annotations

import json
import sys

import pytest

from querycloak.errors import MissingExtra, ParameterError, UsageError
from querycloak.service import kafka_client
from querycloak.service.kafka_client import parse
from querycloak.service.sources.kafka import parse_messages

pytestmark = pytest.mark.service


class Message:
    """What a source looks at in a message."""

    def __init__(self, value: bytes | None, offset: int = 0, stamp: int = 1000) -> None:
        self._value, self._offset, self._stamp = value, offset, stamp

    def value(self):
        return self._value

    def offset(self):
        return self._offset

    def timestamp(self):
        return 1, self._stamp


def record(user: str, query: str, **more: object) -> bytes:
    return json.dumps({"user": user, "query": query, "category": "A/B"} | more).encode()


def log(count: int, first: int = 0) -> list[Message]:
    """Messages of a few people, with holes between their offsets."""
    found = range(first, first + count)
    return [Message(record(f"u{n % 7}", f"q{n % 5}"), offset=3 * n, stamp=1000 + n) for n in found]


# Addresses


def test_an_address_with_everything():
    found = parse("kafka://a.example:9092,[::1]:9093/logs.raw?group=g-1&start=latest&kafka.client.id=me")
    assert (found.servers, found.topic, found.group) == ("a.example:9092,[::1]:9093", "logs.raw", "g-1")
    assert (found.start, found.partitions, dict(found.options)) == ("latest", None, {"client.id": "me"})
    assert parse("kafka://h:9092/t?partitions=2-5").partitions == range(2, 6)
    assert str(found) == "kafka://a.example:9092,[::1]:9093/logs.raw"


@pytest.mark.parametrize(
    "url",
    [
        "kafka://host/topic",
        "kafka://host:9092/",
        "kafka://host:9092/a/b",
        "kafka://host:9092/a b",
        "kafka://:9092/topic",
        "kafka://host:9092/topic#part",
        "http://host:9092/topic",
        "kafka://host:9092/topic?grup=x",
        "kafka://host:9092/topic?start=middle",
        "kafka://host:9092/topic?partition=-1",
        "kafka://host:9092/topic?partitions=3",
        "kafka://host:9092/topic?partitions=3-1",
        "kafka://host:9092/topic?kafka.isolation.level=read_uncommitted",
        "kafka://someone:secret@host:9092/topic",
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(url):
    with pytest.raises(ParameterError) as caught:
        parse(url)
    assert "secret" not in str(caught.value)
    assert "9092" not in str(caught.value)


def test_a_password_is_read_from_a_private_file_and_never_shown(tmp_path):
    path = tmp_path / "options"
    path.write_text("# of the broker\nsasl.username=me\nsasl.password=hunter2=3\n")
    path.chmod(0o644)
    with pytest.raises(UsageError, match="others can read"):
        parse(f"kafka://host:9092/topic?options={path}")
    path.chmod(0o600)
    found = parse(f"kafka://host:9092/topic?options={path}")
    assert found.options == {"sasl.username": "me", "sasl.password": "hunter2=3"}
    assert "hunter2" not in f"{found} {found!r}"


def test_an_option_that_the_client_does_not_know_is_told_by_name_alone():
    pytest.importorskip("confluent_kafka")
    with pytest.raises(ParameterError, match="does not take the options") as caught:
        kafka_client.consumer(parse("kafka://host:9092/topic?kafka.sasl.pasword=hunter2"))
    assert "`sasl.pasword`" in caught.value.hint
    assert "hunter2" not in str(caught.value)


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingExtra, match="extra `kafka`"):
        kafka_client.library()


# Messages


def test_one_record_a_message():
    found = parse_messages([Message(record("u", "a")), Message(record("v", "b"), 1, 1001)])
    assert [one.user for one in found.records] == ["u", "v"]
    assert found.message_index.tolist() == [0, 1]
    assert found.arrival_times.tolist() == [1_000_000, 1_001_000]


def test_several_records_in_a_message_and_bad_ones_between():
    listed = b"[" + record("u", "a") + b",\n" + record("u", "b") + b"]"
    lines = record("v", "c") + b"\n{broken\n" + record("w", "d") + b"\n"
    some = [Message(listed), Message(None), Message(lines), Message(b"[1]")]
    found = parse_messages(some)
    assert [one.query for one in found.records] == ["a", "b", "c", "d"]
    assert found.message_index.tolist() == [0, 0, 2, 2]
    assert {reason: rows.size for reason, rows in found.bad.items()} == {"not JSON": 3}
