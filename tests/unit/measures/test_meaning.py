"""What replaced queries keep: the measures on logs say what the plain functions say, person by person."""

from __future__ import annotations

import math

import polars as pl
import pytest

import querycloak as qc
from querycloak.errors import NotApplicable
from querycloak.log import Log
from querycloak.measures.base import LogPair
from querycloak.measures.meaning import MeaningKept, Readability, TopicLoss
from tests.reference.plain_measures import meaning_kept, readability, topic_loss
from tests.support.logs import made_up
from tests.support.releases import release as shared_release

BEFORE = [("a", "asthma"), ("a", "tennis, golf"), ("b", "lung cancer"), ("b", "qzxv"), ("c", "cat")]
AFTER = [("a", "flu"), ("a", "golf, cat"), ("b", "tennis"), ("c", "cat")]
ROWS = [0, 1, 2, 4]


def frame(rows):
    table = pl.DataFrame(rows, schema={"user": pl.String, "query": pl.String}, orient="row")
    return table.with_row_index("row").cast({"row": pl.Int64})


def pair(after=AFTER, rows=ROWS):
    released = frame(after)
    truth = pl.DataFrame({"released_row": range(len(rows)), "original_row": rows})
    users = frame(BEFORE)["user"].gather(rows)
    return LogPair(frame(BEFORE), released, truth.with_columns(original_user=users, released_after=pl.lit(9)))


def queries(rows, user):
    return [query for who, query in rows if who == user]


@pytest.mark.parametrize(
    ("name", "topics"), [("categories", "categories"), ("paper_4", "paper-4"), ("paper_19", "paper-19")]
)
def test_profiles_lose_what_each_person_loses_on_average(name, topics):
    each = [topic_loss(queries(BEFORE, u), queries(AFTER, u), topics) for u in "abc"]
    assert TopicLoss()(pair())[name] == pytest.approx(sum(each) / 3, abs=1e-12)
    assert 0 < sum(each) / 3 < 1


def test_people_are_found_by_the_truth_where_labels_are_new():
    known = pair()
    hidden = LogPair(known.original, known.released.with_columns(user=pl.col("user") + "!"), known.truth)
    assert TopicLoss()(hidden) == TopicLoss()(known)


def test_the_same_topics_lose_exactly_nothing():
    assert topic_loss(["asthma", "tennis"], ["golf", "flu"], "paper-4") == 0.0
    assert math.isnan(topic_loss(["qzxv"], ["golf"]))


def test_likeness_is_that_of_each_phrase_to_the_one_it_replaced():
    before = [BEFORE[row][1] for row in ROWS]
    plain = meaning_kept(before, [query for _, query in AFTER])
    found = MeaningKept()(pair())
    assert {name: found[name] for name in plain} == pytest.approx(plain)
    assert found["phrases"] == 5
    assert plain["unchanged"] == 0.2  # the cat of the last row; golf stands where tennis was
    with pytest.raises(ValueError, match="equally long"):
        meaning_kept(["cat"], [])


def test_likeness_needs_the_truth_and_as_many_phrases():
    with pytest.raises(NotApplicable, match="truth"):
        MeaningKept()(LogPair(frame(BEFORE), frame(AFTER)))
    longer = [(user, query + ", dog") for user, query in AFTER]
    with pytest.raises(NotApplicable, match="as many known phrases"):
        MeaningKept()(pair(longer))
    assert math.isnan(meaning_kept(["cat"], ["cat, dog"])["similarity"])


def test_readability_compares_words():
    plain = readability([query for _, query in BEFORE], [query for _, query in AFTER])
    assert Readability()(pair()) == pytest.approx(plain)
    assert plain["words_of_the_log"] == pytest.approx(4 / 5)  # flu is nobody's word
    with pytest.raises(NotApplicable):
        Readability()(pair([("a", "..."), ("a", "!"), ("b", "?"), ("c", "-")]))


def test_a_release_within_topics_keeps_profiles():
    log = made_up(60, seed=4)
    release = shared_release(log, "dp-semantic", domain="topic", seed=1)
    found = qc.measure(log, release.log, ["topic_loss", "meaning_kept"], truth=release.truth)
    assert found["topic_loss"]["categories"] == 0.0
    assert found["topic_loss"]["paper_4"] > 0.0
    assert found["meaning_kept"]["rows_compared"] == 1.0
    assert isinstance(log, Log)
