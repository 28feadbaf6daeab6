"""Paper 003's measures of two logs, against the plain functions called for each person."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak import measures
from querycloak.errors import NotApplicable
from querycloak.measures import histories as by_person
from querycloak.measures import partitions
from querycloak.measures.base import LogPair
from querycloak.measures.histories import drawn
from querycloak.registry import MEASURES
from tests.reference.plain_measures import partition_loss

PATHS = ["Arts", "Arts/Music", "Arts/Music/Jazz", "Arts/Film", "Games/Chess", "Sports", "Sports/Soccer/UEFA"]
PEOPLE = ["u", "v", "w", "x"]
NAMES = ["profile_exposure", "information_loss_ratio", "semantic_remain", "record_linkage", "partition_loss"]
record = st.tuples(st.sampled_from(PEOPLE), st.sampled_from("abcd"), st.sampled_from(PATHS))
records = st.lists(record, min_size=1, max_size=40)


def log(rows):
    schema = {"user": pl.String, "query": pl.String, "category": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").with_row_index("row").cast({"row": pl.Int64})


def histories(rows, column):
    return {person: [row[column] for row in rows if row[0] == person] for person in PEOPLE}


def people_of(rows):
    return sorted({row[0] for row in rows})


def each(measure, before, after, column, *more):
    """Call a plain function for every person of the original, and drop what is not defined."""
    first, second = histories(before, column), histories(after, column)
    found = [measure(first[person], second[person], *more) for person in people_of(before)]
    return [value for value in found if not math.isnan(value)]


def known(before, after):
    return bool(set(people_of(before)) & set(people_of(after)))


def run(name, before, after):
    return MEASURES.get(name)()(LogPair(log(before), log(after)))


@given(before=records, after=records)
def test_exposure_puts_together_what_each_person_has(before, after):
    expected = {
        kind: each(measures.profile_exposure, before, after, column)
        for kind, column in (("queries", 1), ("categories", 2))
    }
    if not known(before, after) or not any(expected.values()):
        with pytest.raises(NotApplicable):
            run("profile_exposure", before, after)
        return
    found = run("profile_exposure", before, after)
    for kind, values in expected.items():
        if values:
            assert found[f"{kind}_mean"] == pytest.approx(np.minimum(values, 100).mean())
            assert found[f"{kind}_median"] == pytest.approx(np.median(np.minimum(values, 100)))
            assert found[f"{kind}_above_60"] == pytest.approx(np.mean(np.array(values) > 60))
            assert found[f"{kind}_over_100"] == pytest.approx(np.mean(np.array(values) > 100 + 1e-9))
            assert found[f"{kind}_people"] == len(values)
        else:
            assert f"{kind}_mean" not in found


@given(before=records, after=records)
def test_loss_ratio_puts_together_what_each_person_has(before, after):
    expected = each(measures.information_loss_ratio, before, after, 1)
    if known(before, after) and expected:
        found = run("information_loss_ratio", before, after)
        assert found["queries_mean"] == pytest.approx(np.mean(expected), abs=1e-9)
        assert found["queries_median"] == pytest.approx(np.median(expected), abs=1e-9)


@given(before=records, after=records)
def test_remain_is_the_mean_of_each_person_by_level(before, after):
    if not known(before, after):
        return
    found = run("semantic_remain", before, after)
    expected = {
        f"level_{level}": np.mean(values)
        for level in range(1, 6)
        if (values := each(measures.semantic_remain, before, after, 2, level))
    }
    assert found == pytest.approx(expected)


@given(before=records, after=records)
def test_linkage_is_that_of_the_histories(before, after):
    if not known(before, after):
        return
    found = run("record_linkage", before, after)
    for kind, column in (("queries", 1), ("categories", 2)):
        first, second = histories(before, column), histories(after, column)
        lists = [[side[person] for person in people_of(before)] for side in (first, second)]
        assert found[kind] == pytest.approx(measures.record_linkage(*lists))
        assert found[f"{kind}_people"] == len(people_of(before))


@pytest.mark.parametrize("seed", range(8))
def test_partitions_are_those_of_the_histories(seed):
    draws = np.random.default_rng(seed)
    sides = [
        [(f"p{draws.integers(15)}", "q", PATHS[draws.integers(len(PATHS))]) for _ in range(120)]
        for _ in range(2)
    ]
    people = list(dict.fromkeys(row[0] for row in sides[0]))
    plain = [[Counter(row[2] for row in side if row[0] == person) for person in people] for side in sides]
    found = run("partition_loss", *sides)
    assert found["loss"] == pytest.approx(partition_loss(*plain, clusters=found["clusters"]))
    assert (found["people"], found["clusters"]) == (len(people), 2)
    assert 0 < found["rand_10"] <= 1


def test_two_people_are_no_clusters():
    rows = [("u", "a", "Arts"), ("v", "b", "Games")]
    with pytest.raises(NotApplicable, match="fewer than three"):
        run("partition_loss", rows, rows)


@pytest.mark.parametrize("name", ["profile_exposure", "information_loss_ratio"])
def test_a_kind_without_variety_is_left_out(name):
    rows = [("u", "a", "Arts"), ("u", "b", "Arts")]
    assert run(name, rows, rows)["queries_people"] == 1
    assert "categories_people" not in run(name, rows, rows)
    with pytest.raises(NotApplicable, match="more than one distinct"):
        run(name, rows[:1], rows)


def two_camps(flip=()):
    """Forty people of two interests, and one of their own each; those in `flip` are of the other camp."""
    rows = []
    for person in range(40):
        camp = ("Arts/Music", "Games/Chess")[(person % 2) ^ (person in flip)]
        rows += [(f"p{person:02d}", "q", camp)] * 3 + [(f"p{person:02d}", "r", f"{camp}/{person}")]
    return log(rows)


def test_partitions_by_hand():
    measure = partitions.PartitionLoss()
    same = measure(LogPair(two_camps(), two_camps()))
    assert (same["loss"], same["clusters"], same["people"]) == (0, 2, 40)
    assert same["rand_10"] == same["jaccard_10"] == 1
    assert same["loss_by_chance"] > 50
    some = measure(LogPair(two_camps(), two_camps(flip={0, 1, 2})))
    labels = [person % 2 for person in range(40)]
    moved = [label ^ (person in {0, 1, 2}) for person, label in enumerate(labels)]
    assert some["loss"] == pytest.approx(100 * measures.partition_distance(labels, moved))


def test_partition_loss_of_plain_histories():
    music, games, chess = {"Arts/Music": 2}, {"Games": 3}, {"Games/Chess": 1}
    people = [music, music, games, chess]
    assert partition_loss(people, people) == 0
    assert partition_loss(people, [music, games, chess, music], clusters=2) == pytest.approx(100)
    assert partition_loss(people, [music] * 4, clusters=2) == 100  # nothing is left to tell them apart
    assert math.isnan(partition_loss([], []))
    with pytest.raises(ValueError, match="equally long; got 4 and 1"):
        partition_loss(people, [music])
    with pytest.raises(ValueError, match="at least 1"):
        partition_loss(people, people, clusters=0)


def test_the_number_of_groups_is_chosen_in_the_original():
    topics = ["Arts/Music", "Games/Chess", "Sports/Soccer", "Health/Sleep"]
    people = [{topics[i % 4]: 5, f"{topics[i % 4]}/{i}": 1} for i in range(80)]
    moved = people[4:] + people[1:2] * 4
    expected = 100 * measures.partition_distance(
        [i % 4 for i in range(80)], [i % 4 for i in range(76)] + [1] * 4
    )
    assert partition_loss(people, moved) == pytest.approx(expected)


def test_those_who_are_not_drawn_do_not_count(monkeypatch):
    monkeypatch.setattr(partitions, "MOST_CLUSTERED", 30)
    chosen = [f"p{person:02d}" for person in drawn(np.arange(40), 30)]
    pair = LogPair(two_camps(), two_camps(flip={4, 5, 8, 11}))
    few = LogPair(*(side.filter(pl.col("user").is_in(chosen)) for side in (pair.original, pair.released)))
    assert few.original["user"].n_unique() == 30
    assert partitions.PartitionLoss()(pair) == pytest.approx(partitions.PartitionLoss()(few))


@pytest.mark.parametrize("name", NAMES)
def test_fresh_labels_need_the_truth(name):
    original = two_camps()
    fresh = original.with_columns(user="f" + pl.col("user")).sort("user", descending=True)
    fresh = fresh.drop("row").with_row_index("row").cast({"row": pl.Int64})
    measure = MEASURES.get(name)()
    with pytest.raises(NotApplicable, match="truth"):
        measure(LogPair(original, fresh))
    truth = pl.DataFrame({"released_row": fresh["row"], "label_user": fresh["user"].str.slice(1)})
    assert measure(LogPair(original, fresh, truth)) == pytest.approx(measure(LogPair(original, original)))


@pytest.mark.parametrize("name", NAMES)
def test_without_people_there_is_nothing_to_say(name):
    original = two_camps()
    with pytest.raises(NotApplicable, match="the release has no user"):
        MEASURES.get(name)()(LogPair(original, original.with_columns(user=pl.lit(None, pl.String))))


@pytest.mark.parametrize("name", ["profile_exposure", "information_loss_ratio", "record_linkage"])
def test_without_categories_queries_are_measured_alone(name):
    pair = LogPair(two_camps(), two_camps().drop("category"))
    assert all(key.startswith("queries") for key in MEASURES.get(name)()(pair))
    for other in ("semantic_remain", "partition_loss"):
        with pytest.raises(NotApplicable, match="no category"):
            MEASURES.get(other)()(pair)


def test_people_without_a_release_count_as_hidden_lost_and_not_linked():
    original = log([("u", "a", "Arts"), ("u", "b", "Arts"), ("v", "c", "Arts"), ("v", "d", "Sports")])
    released = original.filter(pl.col("user") == "u")
    pair = LogPair(original, released)
    assert by_person.ProfileExposure()(pair)["queries_mean"] == pytest.approx(50)
    assert by_person.InformationLossRatio()(pair)["queries_mean"] == pytest.approx(50)
    assert by_person.SemanticRemain()(pair)["level_1"] == 0.5
    assert by_person.RecordLinkage()(pair)["queries"] == 50


def test_many_people_are_drawn_the_same_each_time(monkeypatch):
    monkeypatch.setattr(by_person, "MOST_LINKED", 7)
    monkeypatch.setattr(partitions, "MOST_CLUSTERED", 30)
    pair = LogPair(two_camps(), two_camps(flip={4, 5}))
    for measure, key, many in (
        (by_person.RecordLinkage(), "queries_people", 7),
        (partitions.PartitionLoss(), "people", 30),
    ):
        found = measure(pair)
        assert found[key] == many
        assert found == measure(pair)
