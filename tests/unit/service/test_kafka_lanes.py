"""Topics as source and sink, as far as no broker is needed: addresses, messages, lanes, their store."""

from __future__ import annotations

import json
import sys

import polars as pl
import pytest
from querycloak.service.kafka.lane import Lane, Mark
from querycloak.service.kafka.loading import Loader
from querycloak.service.kafka.store import LocalLanes
from querycloak.service.pseudonyms import Pseudonyms

from querycloak.engines import state_codec
from querycloak.engines.pipeline import parse_stages
from querycloak.errors import DataError, MissingExtra, ParameterError, Refused, UsageError
from querycloak.service import entries
from querycloak.service.entries import Entry
from querycloak.service.kafka import address, client, messages
from querycloak.service.sinks.profiles import open_store
from querycloak.service.stream import Stream
from querycloak.service.tally import Tally

pytestmark = pytest.mark.service
SECRET = b"s" * 32
STAGES = parse_stages(["cohort"], {"k": "2"})


class Message:
    """What a lane looks at in a message."""

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


@pytest.fixture
def make(tmp_path):
    """Makes lanes over one store, as a service does."""
    store = LocalLanes(tmp_path / "lanes")
    loader = Loader(
        STAGES,
        store,
        lambda secret: Stream(STAGES, secret),
        lambda name: open_store(f"sqlite:///{tmp_path / 'profiles.sqlite'}", name),
        SECRET,
    )
    loader.store = store
    return loader


def lines_of(lane: Lane) -> list[bytes]:
    """Give what is to be sent, and note it as committed."""
    lines = lane.lines
    lane.settle()
    return lines


# Addresses


def test_an_address_with_everything():
    found = address.parse(
        "kafka://a.example:9092,[::1]:9093/logs.raw?group=g-1&start=latest&kafka.client.id=me"
    )
    assert (found.servers, found.topic, found.group) == ("a.example:9092,[::1]:9093", "logs.raw", "g-1")
    assert (found.start, dict(found.options)) == ("latest", {"client.id": "me"})
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
        "kafka://host:9092/topic?kafka.isolation.level=read_uncommitted",
        "kafka://someone:secret@host:9092/topic",
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(url):
    with pytest.raises(ParameterError) as caught:
        address.parse(url)
    assert "secret" not in str(caught.value)
    assert "9092" not in str(caught.value)


def test_a_password_is_read_from_a_private_file_and_never_shown(tmp_path):
    path = tmp_path / "options"
    path.write_text("# of the broker\nsasl.username=me\nsasl.password=hunter2=3\n")
    path.chmod(0o644)
    with pytest.raises(UsageError, match="others can read"):
        address.parse(f"kafka://host:9092/topic?options={path}")
    path.chmod(0o600)
    found = address.parse(f"kafka://host:9092/topic?options={path}")
    assert found.options == {"sasl.username": "me", "sasl.password": "hunter2=3"}
    assert "hunter2" not in f"{found} {found!r}"


def test_an_option_that_the_client_does_not_know_is_told_by_name_alone():
    pytest.importorskip("confluent_kafka")
    with pytest.raises(ParameterError, match="does not take the options") as caught:
        client.consumer(address.parse("kafka://host:9092/topic?kafka.sasl.pasword=hunter2"))
    assert "`sasl.pasword`" in caught.value.hint
    assert "hunter2" not in str(caught.value)


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingExtra, match="extra `kafka`"):
        client.library()


# Messages


def test_one_record_a_message():
    found = messages.read([Message(record("u", "a")), Message(record("v", "b"))], messages.stamps_of(log(2)))
    assert [one.user for one in found.records] == ["u", "v"]
    assert found.parts.tolist() == [0, 1]
    assert found.stamps.tolist() == [1_000_000, 1_001_000]


def test_several_records_in_a_message_and_bad_ones_between():
    listed = b"[" + record("u", "a") + b",\n" + record("u", "b") + b"]"
    lines = record("v", "c") + b"\n{broken\n" + record("w", "d") + b"\n"
    some = [Message(listed), Message(None), Message(lines), Message(b"[1]")]
    found = messages.read(some, messages.stamps_of(some))
    assert [one.query for one in found.records] == ["a", "b", "c", "d"]
    assert found.parts.tolist() == [0, 0, 2, 2]
    assert {reason: rows.size for reason, rows in found.bad.items()} == {"not JSON": 3}


# Lanes


def test_however_messages_are_cut_the_lines_are_the_same(make):
    some = [*log(40), Message(b"{", 120), *log(60, first=41), Message(b"", 400)]
    found = []
    for size in (1, 7, 1000):
        stream = Stream(STAGES, SECRET)
        lane = Lane(0, stream, Pseudonyms(SECRET, 0), Tally(NoStore()), Mark(0))
        for start in range(0, len(some), size):
            lane.take(some[start : start + size])
        found.append((lines_of(lane), lane.mark, dict(lane.skipped)))
    assert found[0] == found[1] == found[2]
    assert found[0][0]
    assert found[0][2] == {"not JSON": 2}


class NoStore:
    last = 0


def test_a_lane_comes_back_to_where_it_was(make):
    """Whatever was committed after the snapshot is gone through again, and not one line of it sent again."""
    some = log(120)
    lane = make.load(0, None, 0, 0)
    lane.take(some[:40])
    sent = lines_of(lane)
    make.save(lane)
    lane.take(some[40:70])
    sent += lines_of(lane)
    committed = lane.committed
    lane.take(some[70:90])  # applied, never committed
    make.drop(lane)
    lane = make.load(0, committed, 0, 0)
    assert (lane.position, lane.behind, lane.moved) == (some[39].offset() + 1, True, False)
    lane.take(some[40:60])
    assert (lane.lines, lane.moved) == ([], False)
    lane.settle()
    lane.take(some[60:])
    assert (lane.behind, lane.moved) == (False, True)
    sent += lines_of(lane)
    make.drop(lane)
    whole = Lane(
        0, Stream(STAGES, lane.stream._secret), Pseudonyms(lane.stream._secret, 0), NoTally(), Mark(0)
    )
    whole.take(some)
    assert sent == whole.lines
    assert sent


class NoTally:
    def add(self, frame: pl.DataFrame) -> None:
        """Count nothing."""


def ask(make, lane: Lane, kind: str, **facts: object) -> int:
    """Note a request as a service does."""
    entry = Entry(kind, 5_000_000, facts=facts | {"input": lane.position})
    return make.store.note(lane.partition, lane.committed, entries.encode(entry))


def test_a_request_takes_effect_at_the_same_place_again(make):
    some = log(100)
    lane = make.load(0, None, 0, 0)
    lane.take(some[:50])
    sent = lines_of(lane)
    number = ask(make, lane, "epoch")
    lane.carry_out(number, Entry("epoch", 5_000_000, facts={"input": lane.position}))
    sent += lines_of(lane)
    lane.take(some[50:80])
    sent += lines_of(lane)
    committed = lane.committed
    assert committed.requests == 1
    make.drop(lane)
    lane = make.load(0, committed, 0, 0)
    lane.take(some)
    assert lane.stream.epoch == 1
    sent += lines_of(lane)
    make.drop(lane)
    numbers = [json.loads(line)["offset"] for line in sent]
    assert numbers == list(range(1, len(numbers) + 1))
    assert lane.stream.released == len(numbers)


def test_a_request_that_was_noted_and_not_committed_is_carried_out_after_a_crash(make):
    some = log(30)
    lane = make.load(0, None, 0, 0)
    lane.take(some)
    lines_of(lane)
    make.save(lane)
    ask(make, lane, "erasure", user=lane.pseudonyms.of(["u1"])[0])
    committed = lane.committed
    make.drop(lane)  # a crash: it was noted, and nothing else
    lane = make.load(0, committed, 0, 0)
    assert (lane.requests, lane.moved) == (1, True)
    lines_of(lane)
    make.save(lane)
    assert list(make.store.notes(0, 1)) == []
    assert lane.stream.strangers.erased
    make.drop(lane)


def test_a_topic_with_other_messages_is_not_taken_for_the_same(make):
    some = log(60)
    lane = make.load(0, None, 0, 0)
    lane.take(some)
    lines_of(lane)
    committed = lane.committed
    make.drop(lane)
    lane = make.load(0, committed, 0, 0)
    with pytest.raises(DataError, match="lines were released up to offset"):
        lane.take(some[:20] + some[40:])
    make.drop(lane)


@pytest.mark.parametrize(
    ("committed", "low", "message"),
    [
        (Mark(10), 0, "the state stands at"),
        (None, 0, "the group nowhere"),
        (Mark(10**6, 10**6), 500, "is needed, but Kafka's first is 500"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(make, committed, low, message):
    lane = make.load(0, None, 0, 0)
    lane.take(log(40))
    lines_of(lane)
    make.save(lane)
    make.drop(lane)
    with pytest.raises(DataError, match=message):
        make.load(0, committed, 0, low)


def test_a_group_without_its_state_is_refused(make):
    with pytest.raises(DataError, match="no state belongs to it"):
        make.load(0, Mark(10, 3), 0, 0)


def test_offsets_that_another_program_committed_are_refused():
    assert Mark.read(7, Mark(7, 3, 1).metadata()) == Mark(7, 3, 1)
    for metadata in (None, "", "{}", "[1]", '{"released": "x", "requests": 0}'):
        with pytest.raises(DataError, match="by another program"):
            Mark.read(7, metadata)


def test_other_methods_are_refused(make, tmp_path):
    make.drop(make.load(0, None, 0, 0))
    make._stages = parse_stages(["cohort"], {"k": "3"})
    with pytest.raises(Refused, match="other methods or settings"):
        make.load(0, None, 0, 0)


def test_two_lanes_draw_differently(make):
    found = []
    for partition in (0, 1):
        lane = make.load(partition, None, 0, 0)
        lane.take(log(60))
        found.append(lines_of(lane))
        make.drop(lane)
    labels = [{json.loads(line)["user"] for line in lines} for lines in found]
    assert labels[0]
    assert not labels[0] & labels[1]


def test_what_a_store_keeps_is_private_and_first_come(tmp_path):
    store = LocalLanes(tmp_path / "lanes")
    assert store.agree({"topic": "a", "partitions": 2}) == {"topic": "a", "partitions": 2}
    assert store.agree({"topic": "a", "partitions": 3}) == {"topic": "a", "partitions": 2}
    store.open(0, None)
    store.save(0, Mark(5), state_codec.dump({"x": 1}))
    assert store.newest(0) == (5, state_codec.dump({"x": 1}))
    with pytest.raises(Refused, match="another process"):
        LocalLanes(tmp_path / "lanes").open(0, None)
    store.close(0)
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "lanes").rglob("*"))
