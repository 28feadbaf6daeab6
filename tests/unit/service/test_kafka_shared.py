"""Lanes that are shared, as far as no broker is needed: pieces, keys, and who may share."""

from __future__ import annotations

import logging
import os
import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest
from querycloak.service.kafka.board import SINCE, Asked, Board, answer_name, packed
from querycloak.service.kafka.errands import _told
from querycloak.service.kafka.keying import key_of, partition_of
from querycloak.service.kafka.lane import REMEMBERED, Lane, Mark
from querycloak.service.kafka.pieces import Pieces

from querycloak.errors import DataError, ParameterError, QueryCloakError, Refused, Unavailable
from querycloak.service import kinds
from querycloak.service.kafka import agreement, client, pieces
from querycloak.service.kafka import board as boards
from querycloak.service.kafka import runner as runners
from querycloak.service.kafka.address import parse
from querycloak.service.settings import setup
from querycloak.service.sinks.profiles import open_store
from querycloak.service.tally import Tally
from querycloak.service.wal import Cipher
from querycloak.service.web.app import _in_brief

pytestmark = pytest.mark.service
CIPHER = Cipher(b"k" * 32)


@pytest.fixture
def small_pieces(monkeypatch) -> Pieces:
    monkeypatch.setattr(pieces, "PIECE", 10)
    return Pieces(CIPHER, "topic", 3)


@pytest.mark.parametrize("size", [0, 1, 10, 11, 20, 95])
def test_a_thing_of_any_size_comes_back(small_pieces, size):
    data = os.urandom(size)
    found = small_pieces.cut("thing", data)
    assert list(found)[-1] == "thing"  # who has the head has all parts
    assert len(found) == 1 + (-(-size // 10) if size > 10 else 0)
    assert small_pieces.join("thing", found) == data
    assert small_pieces.join("other", found) is None
    assert all(len(part) <= 10 + 48 for key, part in found.items() if key != "thing")


def test_parts_that_do_not_belong_together_are_refused(small_pieces):
    old, new = (small_pieces.cut("thing", data * 30) for data in (b"a", b"b"))
    with pytest.raises(DataError, match="does not open"):
        small_pieces.join("thing", new | {"thing/1": old["thing/1"]})
    with pytest.raises(DataError, match="does not open"):
        small_pieces.join("thing", new | {"thing/1": new["thing/2"], "thing/2": new["thing/1"]})
    with pytest.raises(DataError, match="not whole"):
        small_pieces.join("thing", {key: part for key, part in new.items() if key != "thing/2"})
    for cipher, partition in ((CIPHER, 4), (Cipher(b"x" * 32), 3)):
        with pytest.raises(DataError, match="does not open"):
            Pieces(cipher, "topic", partition).join("thing", new)


def test_a_mark_says_where_its_snapshot_is_only_where_that_is_shared():
    assert Mark.read(7, Mark(7, 3, 1).metadata()).kept == -1
    found = Mark.read(7, Mark(7, 3, 1, kept=12, by="me").metadata())
    assert (found, found.kept, found.by) == (Mark(7, 3, 1), 12, "me")


def test_a_lane_forgets_old_answers():
    lane = Lane(0, None, None, Tally(open_store("none")), Mark(0))
    for number in range(REMEMBERED + 5):
        lane.answer(str(number), {"dropped": number})
    assert len(lane.answers) == REMEMBERED
    assert "4" not in lane.answers
    assert lane.answers["5"] == {"dropped": 5}


def test_no_profiles_are_kept_on_demand():
    store = open_store("none")
    store.add(7, [("label", "Arts", 7)])
    assert (store.last, store.of("label"), store.totals(), store.forget("label")) == (7, None, {}, 0)
    store.close()


def given(**options: str) -> dict[str, str]:
    places = {"source": "kafka://h:1/a", "sink": "kafka://h:1/b", "lanes": "kafka://h:1/c"}
    return places | {"state_key": "key", "secret_file": "secret", "profiles": "none"} | options


def made(**options: str):
    return setup(given(**options), [], {}, environment={})


def test_what_can_be_shared():
    assert agreement.address_of_lanes(made(lanes="local")) is None
    assert agreement.address_of_lanes(made()) == parse("kafka://h:1/c")
    for options, message in (
        ({"state_key": ""}, "hold raw searches"),
        ({"secret_file": ""}, "need one secret"),
        ({"profiles": "sqlite"}, "do not move with lanes"),
        ({"profiles": "sqlite:///x"}, "do not move with lanes"),
        ({"lanes": "folder"}, "no address of a topic"),
    ):
        with pytest.raises(ParameterError, match=message):
            agreement.address_of_lanes(made(**options))


def test_the_example_for_several_services_can_be_read():
    path = Path(__file__).parents[3] / "deploy" / "serve-lanes.toml"
    found = setup({}, [], {}, config=path, environment={})
    assert found.settings.lanes.startswith("kafka://")
    assert [stage.method for stage in found.stages] == ["cohort"]


def test_lanes_of_a_service_without_topics_are_refused():
    with pytest.raises(ParameterError, match="from topic to topic"):
        kinds.make(made(source="http"))


def test_services_are_compared_without_showing_values():
    source, sink = parse("kafka://h:1/a"), parse("kafka://h:1/b")
    own = agreement.facts(made(), source, sink, 8, b"s" * 32)
    agreement.compare(own, own)
    other = agreement.facts(made(classify="no"), source, sink, 8, b"t" * 32)
    with pytest.raises(Refused, match="another secret or seed and another `classify`") as refused:
        agreement.compare(own, other)
    assert own["secret"] not in str(refused.value)
    assert (b"s" * 32).hex() not in own["secret"]


def test_partitions_are_those_of_kafkas_own_clients():
    """Hashes of these texts are in the tests of Apache Kafka's own client."""
    known = {b"21": -973932308, b"foobar": -790332482, b"abc": 479470107}
    known |= {b"a-little-bit-long-string": -985981536, b"a-little-bit-longer-string": -1486304829}
    for text, value in known.items():
        assert partition_of(text, 1 << 31) == value & 0x7FFFFFFF


def test_the_key_of_a_record():
    record = {"user": "u1", "query": "rain", "category": "Sports/Soccer/UEFA"}
    assert key_of(record) == b"u1"
    assert key_of(record, "query") == b"rain"
    assert [key_of(record, "category", level) for level in (1, 2)] == [b"Sports", b"Sports/Soccer"]
    with pytest.raises(ParameterError, match="without `category`"):
        key_of({"user": "u1"}, "category")
    with pytest.raises(ParameterError):
        key_of(record, "url")


# What is asked of all lanes


@pytest.fixture
def board(monkeypatch) -> Board:
    """A board whose topic is a dictionary: what is written is read back at once."""
    monkeypatch.setattr(client, "sender", lambda address: None)
    monkeypatch.setattr(client, "consumer", lambda address: None)
    made = Board(parse("kafka://h:1/c"), 2, CIPHER)

    def write(messages):
        for key, value in messages.items():
            if value is None:
                made._found.pop(key, None)
            else:
                made._found[key] = value
            made._noted(key)

    made._write = write
    return made


def answer(board: Board, asked: str, lane: int, **told: int) -> None:
    board._write(board._pieces.cut(answer_name(asked, lane), packed(told)))


def test_an_erasure_that_is_asked_again_is_carried_out_again_in_every_lane(board):
    """Lane 0 answered the first; what she searched for since then waits there, and must go too."""
    with pytest.raises(Unavailable, match="2 of 2 lanes"):
        board.ask("erasure", {"user": "u"}, 0)
    (first,) = board.requests()
    answer(board, first.id, 0, held=3)
    with pytest.raises(Unavailable, match="2 of 2 lanes"):
        board.ask("erasure", {"user": "u"}, 0)
    with pytest.raises(Unavailable):
        board.ask("erasure", {"user": "somebody else"}, 0)
    again = next(one for one in board.requests() if one.facts.get(SINCE))
    assert (again.facts["user"], again.facts[SINCE]) == ("u", [first.id])
    assert not any(board.answered(again.id, lane) for lane in range(2))


def test_a_lane_tells_what_earlier_erasures_did_that_nobody_was_told_of():
    lane = Lane(0, None, None, Tally(open_store("none")), Mark(0))
    lane.answer("first", {"held": 3, "released": 1, "dropped": 3})
    lane.answer("again", {"held": 1, "released": 0, "dropped": 1})
    asked = Asked("again", "erasure", {"user": "u", SINCE: ["first", "not here"]}, 0.0)
    assert _told(lane, asked) == {"held": 4, "released": 1, "dropped": 4}


def test_an_epoch_that_is_asked_again_is_the_one_under_way(board):
    for _ in range(2):
        with pytest.raises(Unavailable):
            board.ask("epoch", {"epoch": 4}, 0)
    assert len(board.requests()) == 1


def test_erasures_that_nobody_waits_for_any_more_do_not_pile_up(board, monkeypatch):
    now = time.time()
    for minutes in range(10):
        monkeypatch.setattr(boards.time, "time", lambda minutes=minutes: now + 600 * minutes)
        with pytest.raises(Unavailable):
            board.ask("erasure", {"user": "u"}, 0)
    (last,) = board.requests()
    assert len(last.facts[SINCE]) == 9


def test_what_is_answered_takes_earlier_requests_with_it(board, monkeypatch):
    with pytest.raises(Unavailable):
        board.ask("erasure", {"user": "u"}, 0)
    (first,) = board.requests()
    monkeypatch.setattr(Future, "result", lambda self, patience: answered(board))
    assert board.ask("erasure", {"user": "u"}, 0) == "all"
    assert (board.requests(), board._found, board._waiting) == ([], {}, {})
    assert first.facts[SINCE] == []


def answered(board: Board) -> str:
    """Let both lanes answer all that is asked."""
    for one in board.requests():
        for lane in range(2):
            answer(board, one.id, lane, held=0)
    return "all"


# Lanes that cannot be loaded


class Consumer:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.assigned: list[int] = []
        self.paused: list[int] = []

    def committed(self, places, patience):
        return places

    def get_watermark_offsets(self, place, patience):
        return 0, 0

    def incremental_assign(self, places):
        self.assigned += [place.partition for place in places]

    def pause(self, places):
        self.paused += [place.partition for place in places]


class Loading:
    """Loads lanes, but for those that it cannot."""

    def __init__(self, broken: dict[int, QueryCloakError], shared: bool = True) -> None:
        self.broken, self.shared, self.dropped = broken, shared, list[int]()

    def inherit(self, partitions):
        pass

    def load(self, partition, committed, first, low):
        if partition in self.broken:
            raise self.broken[partition]
        return FakeLane(partition)

    def drop(self, lane):
        self.dropped.append(lane.partition)


class FakeLane(SimpleNamespace):
    """A lane that is where Kafka knows it to be."""

    def __init__(self, partition: int) -> None:
        super().__init__(partition=partition, position=0, moved=False, behind=False, at_rest=True)

    def take(self, some):
        raise DataError("another way than before")


@pytest.fixture
def run(monkeypatch):
    """Makes a runner that has no Kafka behind it."""
    pytest.importorskip("confluent_kafka")
    monkeypatch.setattr(runners, "Transactions", lambda *_: SimpleNamespace())
    monkeypatch.setattr(client, "consumer", lambda *_, **__: Consumer())
    monkeypatch.setattr(logging.getLogger("querycloak.service"), "propagate", True)

    def made(broken, shared=True):
        more = {"name": "n", "stream": None, "partitions": 3, "snapshot_seconds": lambda: 60.0}
        more |= {"saw": print, "beat": lambda: None}
        source = parse("kafka://h:1/a?group=g")
        return runners.Runner(source, parse("kafka://h:1/b"), Loading(broken, shared), **more)

    return made


LEFT = Refused("this state was left by version 0 with work to do")


def places(runner, *partitions):
    return [runner._place(partition, -1001) for partition in partitions]


def test_a_lane_that_cannot_be_loaded_is_parked_and_the_others_go_on(run, caplog):
    runner = run({1: LEFT})
    for _ in range(2):  # given, taken away and given again: the log says it once
        runner._assigned(places(runner, 0, 1, 2))
        assert sorted(runner.lanes) == [0, 2]
        assert runner.parked == {1: LEFT}
        assert runner._consumer.paused == [1]
        assert runner._consumer.assigned == [0, 1, 2]
        runner._lost(places(runner, 0, 1, 2))
        assert runner.parked == {}
        runner._consumer.paused.clear()
        runner._consumer.assigned.clear()
    told = [record for record in caplog.records if "parked" in record.msg]
    assert [(one.partition, one.trouble) for one in told] == [(1, LEFT.message)]
    runner._loader.broken = {}
    runner._assigned(places(runner, 1))
    assert (sorted(runner.lanes), runner.parked, runner._consumer.paused) == ([1], {}, [])


def test_a_lane_that_goes_another_way_than_before_is_parked(run):
    runner = run({})
    runner._assigned(places(runner, 0, 1))
    runner._give(runner.lanes[1], [])
    assert (sorted(runner.lanes), sorted(runner.parked)) == ([0], [1])
    assert (runner._loader.dropped, runner._consumer.paused) == ([1], [1])


def test_a_partition_whose_next_messages_are_gone_is_parked(run):
    runner = run({})
    runner._assigned(places(runner, 0, 1))
    kafka = client.library()
    runner._error_of(1, kafka.KafkaError(kafka.KafkaError._AUTO_OFFSET_RESET))
    assert (sorted(runner.lanes), sorted(runner.parked), runner._fault) == ([0], [1], [])


@pytest.mark.parametrize(
    "fault", [client.Rival("another has the name"), client.KafkaRefuses("Kafka refuses (X)")]
)
def test_what_is_no_lanes_own_trouble_ends_the_service(run, fault):
    runner = run({1: fault})
    with pytest.raises(type(fault)):
        runner._assigned(places(runner, 0, 1))


def test_a_service_that_shares_with_nobody_refuses_a_lane_that_it_cannot_load(run):
    runner = run({1: LEFT}, shared=False)
    with pytest.raises(Refused, match="left by version"):
        runner._assigned(places(runner, 0, 1))


def test_readiness_names_parked_lanes_and_nothing_else():
    service = SimpleNamespace(
        trouble=lambda: "lane 3 is parked: kafka.example", ready=True, failure=lambda: "", parked=(3, 5)
    )
    assert "parked: 3, 5;" in _in_brief(service)
    assert "example" not in _in_brief(service)
