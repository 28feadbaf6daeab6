"""`dp-histogram`: what it counts, its noise, and that one history moves no more than was said."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

import querycloak as qc
from querycloak.errors import ParameterError, Refused
from querycloak.methods import dp_counts
from querycloak.text.concept_space import PAPER_4, partition_by_topic
from querycloak.text.senses import ConceptMapper, concept_lexicon
from tests.unit.methods.made_dp import made, part

pytestmark = pytest.mark.dp
LOG = [
    ("ann", "cat"),
    ("ann", "cat, dog"),
    ("ann", "tennis"),
    ("bob", "cat"),
    ("bob", "qzxv"),
    ("cid", "flu"),
]


@pytest.fixture
def exact(monkeypatch):
    """Leave the noise out, and note its scales."""
    scales = []

    def none(counts, scale):
        scales.append(scale)
        return counts

    monkeypatch.setattr(dp_counts, "add_laplace", none)
    return scales


def counts(release, *keys):
    table = release.log.frame.filter(pl.col("count") > 0)
    return {row[:-1] if len(keys) > 1 else row[0]: row[-1] for row in table.select(*keys, "count").rows()}


def test_every_concept_has_a_line_and_phrases_are_counted(exact):
    release = qc.protect(made(*LOG), "dp-histogram")
    words = Counter({"cat": 3, "dog": 1, "tennis": 1, "flu": 1})
    concepts = concept_lexicon()
    spoken = Counter()
    for word, n in words.items():
        (phrase,) = ConceptMapper(concepts).read(pl.Series([word])).phrases
        spoken[concepts.label[phrase.concept]] += n
    assert counts(release, "query") == dict(spoken)
    assert release.log.frame.height == len(concepts.labelled)
    assert release.log.frame.columns == ["row", "query", "category", "count"]


def test_the_first_phrases_of_each_person_count_and_whole_searches(exact):
    found = counts(qc.protect(made(*LOG), "dp-histogram", max_queries=2), "query")
    assert sum(found.values()) == 2 + 1 + 1  # ann's cat, then her tennis: the pair would be one too many
    assert set(exact) == {4.0}


def test_replacing_a_history_moves_at_most_what_the_noise_is_for(exact):
    """All histories of up to three searches, one of them with two phrases, at most two phrases counted."""
    searches = ["cat", "dog", "cat, flu", "qzxv"]
    histories = [(), *[(a,) for a in searches], *[(a, b) for a in searches for b in searches]]
    tables = []
    for history in histories:
        log = made(("bob", "tennis"), *[("ann", query) for query in history])
        tables.append(
            qc.protect(log, "dp-histogram", max_queries=2, epsilon=0.5).log.frame["count"].to_numpy()
        )
    farthest = max(int(np.abs(one - other).sum()) for one in tables for other in tables)
    assert farthest == 4 == exact[0] * 0.5


def test_one_table_for_each_person(exact):
    named = {"labels": "keep", "source": "test"}
    release = qc.protect(made(*LOG), "dp-histogram", by="history", bins="topics", topics="paper-4", **named)
    found = counts(release, "user", "category")
    assert found["cid", PAPER_4[0]] == 1
    assert sum(n for (user, _), n in found.items() if user == "ann") == 4
    assert release.log.frame.group_by("user").len()["len"].to_list() == [5, 5, 5]


def test_only_topics_leaves_out_everything_else(exact):
    release = qc.protect(made(*LOG), "dp-histogram", topics="paper-4", only_topics=True)
    of = partition_by_topic(concept_lexicon(), "paper-4").of
    assert release.log.frame.height == int((of[concept_lexicon().labelled] < 4).sum())
    assert sum(counts(release, "query").values()) == 2  # tennis and flu


def test_small_counts_are_left_out_after_the_noise(exact):
    release = qc.protect(made(*LOG), "dp-histogram", at_least=3)
    assert list(counts(release, "query").values()) == [3]
    assert release.log.frame.height == 1


def test_the_noise_has_the_scale_that_was_said():
    """The mean of 69,893 lines, all but one empty: a false alarm once in 10⁶ runs."""
    release = qc.protect(made(("ann", "cat")), "dp-histogram", max_queries=3, epsilon=2.0)
    facts = part(release)["facts"]
    assert (facts["sensitivity"], facts["scale_of_noise"], facts["epsilon"]) == (6, 3.0, 2.0)
    shown = release.log.frame["count"].to_numpy()[: facts["bins"]].astype(float)
    p = np.exp(-1 / facts["scale_of_noise"])
    mean = p / (1 - p) / (1 + p)  # of max(x, 0), x discrete Laplace
    square = p / (1 - p) ** 2  # of the same: half of the variance of x is 2p/(1-p)²
    deviation = np.sqrt((square - mean**2) / shown.size)
    assert abs(shown.mean() - mean) < 4.9 * deviation + 1 / shown.size


def test_a_budget_is_shared_with_other_methods(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    named = {"source": "s", "state": tmp_path / "state", "budget": 5.0, "epsilon": 3.0}
    qc.protect(made(*LOG), "dp-semantic", **named)
    with pytest.raises(Refused, match="as little as 2 left"):
        qc.protect(made(*LOG), "dp-histogram", **named)
    release = qc.protect(made(*LOG), "dp-histogram", **(named | {"epsilon": 2.0}))
    assert part(release)["facts"]["spent_by_anyone_at_most"] == 5.0


def test_tables_that_say_nothing_or_too_much_are_refused():
    with pytest.raises(ParameterError, match="no concept is left"):
        qc.protect(made(*LOG), "dp-histogram", root="sport.n.01", topics="disease.n.01", only_topics=True)
    many = made(*((f"u{n}", "cat") for n in range(300)))
    with pytest.raises(ParameterError, match="more than 20,000,000 lines"):
        qc.protect(many, "dp-histogram", by="history")
