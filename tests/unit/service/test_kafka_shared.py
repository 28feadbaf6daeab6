"""Lanes that are shared, as far as no broker is needed: pieces, keys, and who may share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from querycloak.errors import DataError, ParameterError, Refused
from querycloak.service import kinds
from querycloak.service.journal import Cipher
from querycloak.service.kafka import agreement, pieces
from querycloak.service.kafka.address import parse
from querycloak.service.kafka.keying import key_of, partition_of
from querycloak.service.kafka.lane import REMEMBERED, Lane, Mark
from querycloak.service.kafka.pieces import Pieces
from querycloak.service.outlets.profiles import open_store
from querycloak.service.settings import setup
from querycloak.service.tally import Tally

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
