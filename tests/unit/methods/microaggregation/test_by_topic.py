"""`microagg-topic`: categories of phrases, groups and histories of the naive twin, topics, blocks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.errors import ParameterError
from querycloak.methods.microaggregation import REPLACED, mdav, topic_groups
from querycloak.methods.microaggregation.by_meaning import COIN, NO_TOPIC, MicroaggTopic
from querycloak.text.senses import ConceptMapper, concept_lexicon
from tests.reference import naive_topic
from tests.support.logs import made_up
from tests.support.releases import with_ids
from tests.unit.methods.made_dp import made, part

NAME = "microagg-topic"
TREE = """path,terms
Sports,
Sports/Golf,golf clubs;swing
Sports/Water Sports,
Sports/Water Sports/Windsurfing,
Music,
Music/Jazz,swing;big band
Music/Jazz/Dancing,swing
Regional,
Regional/Europe,
Computers,
Computers/C++,
"""
SWING = ["Sports/Golf", "Music/Jazz", "Music/Jazz/Dancing"]
#: What each query's phrases speak for, best first; of equals, the one that stands first in the table.
MEANT = {
    "swing": [SWING],
    "golf": [["Sports/Golf"]],
    "golf clubs": [["Sports/Golf"]],
    "windsurfing": [["Sports/Water Sports/Windsurfing"]],
    "big band": [["Music/Jazz"]],
    "europe": [["Regional/Europe"]],
    "sports": [["Sports", "Sports/Water Sports"]],
    "swing, europe": [SWING, ["Regional/Europe"]],
    "windsurfing in europe": [["Sports/Water Sports/Windsurfing"], ["Regional/Europe"]],
    "c++": [["Computers/C++"]],  # spelt in another way among the terms
    "qzxv": [],
}
people_of = st.lists(st.lists(st.sampled_from([*MEANT]), min_size=1, max_size=6), min_size=4, max_size=9)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    file = tmp_path_factory.mktemp("tree") / "topic-tree.csv"
    file.write_text(TREE)
    return file


def written(people, **columns):
    return made(*((f"p{n}", query) for n, own in enumerate(people) for query in own), **columns)


def protect(log, **settings):
    return with_ids(log, NAME, **({"seed": 3, "k": 2} | settings))


def spied(log, **settings):
    """Protect; give the records of each group's members, with their draws, and what stands for them."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        old = MicroaggTopic._representative

        def spy(self, records, members):
            one, queries = old(self, records, members), records.texts.query
            draws, coins = (self.draws(records, *purpose).tolist() for purpose in ((), (COIN,)))
            own = {int(m): [] for m in members}
            texts = queries.decode(records.query).to_list()
            for user, *record in zip(records.user.tolist(), texts, draws, coins, strict=True):
                own[user].append(naive_topic.Record(*record))
            seen.append((own, queries.decode(one.query).to_list()))
            return one

        patch.setattr(MicroaggTopic, "_representative", spy)
        release = protect(log, **settings)
    return release, seen


# Categories


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_phrase_has_its_best_categories_first(tree, most):
    concepts = concept_lexicon(tree)
    paths = concepts.tree.paths
    mapped = ConceptMapper(concepts).read(pl.Series([*MEANT]))
    found = [
        [paths[n] for n in concepts.categories(phrase.lexicon_phrase, most)] for phrase in mapped.phrases
    ]
    assert found == [ranked[:most] for phrases in MEANT.values() for ranked in phrases]


def test_a_phrase_of_wordnet_has_categories_of_several_senses():
    concepts = concept_lexicon()
    paths = concepts.tree.paths
    phrases = ConceptMapper(concepts).read(pl.Series(["cheap lawyers", "bank"])).phrases
    assert [phrase.lexicon_phrase for phrase in phrases] == ["lawyer", "bank"]
    found = [paths[n] for n in concepts.categories("bank", 5)]
    assert found[0] == "Business/Banking"
    assert len(set(found)) == 5
    assert any(path.startswith("Science/Earth Sciences/") for path in found)
    assert concepts.categories("bank", 1) == concepts.categories("bank", 5)[:1]


# The whole method, against algorithms 2 to 6


@given(people=people_of, k=st.integers(2, 4), categories=st.integers(1, 3), levels=st.integers(0, 4))
def test_any_small_log_gives_the_naive_twin_s_groups_and_histories(tree, people, k, categories, levels):
    _, seen = spied(written(people), k=k, categories=categories, levels=levels, taxonomy=tree)
    users = {member: records for own, _ in seen for member, records in own.items()}
    known = [own for own in people if {*own} != {"qzxv"}]
    known = known if len(known) >= k else []
    assert sorted(users) == list(range(len(known)))
    paths = {
        query: [path.replace("/", ":") for ranked in phrases for path in ranked[:categories]]
        for query, phrases in MEANT.items()
    }
    in_order = [users[n] for n in range(len(users))]
    assert Counter(r.query for own in in_order for r in own) == Counter(q for own in known for q in own)
    expected = naive_topic.groups(in_order, paths, levels or 3, k) if known else []
    assert [set(own) for own, _ in seen] == expected
    for own, shown in seen:
        assert Counter(shown) == Counter(naive_topic.history([*own.values()]))


def test_people_are_grouped_by_what_they_have_in_common_at_all_levels(tree):
    """At the first level both of the other pairs are as good; deeper down only one is."""
    people = [["golf"], ["golf"], ["windsurfing"], ["windsurfing"]]
    for seed in range(5):
        release = protect(written(people), taxonomy=tree, seed=seed)
        assert [*release.log.frame.sort("user")["query"]] == ["golf", "golf", "windsurfing", "windsurfing"]
    mixed = [protect(written(people), taxonomy=tree, levels=1, seed=seed) for seed in range(12)]
    assert any([*r.log.frame.sort("user")["query"][:2]] != ["golf", "golf"] for r in mixed)


def test_more_categories_find_more_in_common(tree):
    """`swing` is golf at first sight, and jazz at second."""
    people = [["swing"], ["big band", "big band"], ["golf"], ["europe"]]
    for categories, other in ((5, "big band"), (1, "golf")):
        _, seen = spied(written(people), taxonomy=tree, categories=categories)
        first = {record.query for own in seen[0][0].values() for record in own}
        assert first == {"swing", other}


def test_who_asks_more_gives_more_and_her_commonest_first(tree):
    people = [["golf"] * 6 + ["golf clubs"] * 2, ["golf", "golf clubs"]]
    shown = Counter()
    for seed in range(20):
        _, [(_, queries)] = spied(written(people), taxonomy=tree, seed=seed)
        assert len(queries) == 5
        shown.update(queries)
    assert shown["golf"] > 2 * shown["golf clubs"]


def test_draws_and_coins_differ_with_the_key(tree):
    log = written([["golf", "swing", "europe"], ["big band", "sports", "windsurfing"]])
    assert len({tuple(sorted(protect(log, taxonomy=tree, seed=s).log.frame["query"])) for s in range(8)}) > 2


# What is shown beside queries


def test_category_and_time_are_those_of_a_record_and_clicks_are_gone(tree):
    log = made_up(40, seed=3, categories=True)
    release = protect(log, k=3)
    known = {(q, t.replace(minute=0, second=0, microsecond=0), c)
             for q, t, c in log.frame.select("query", "time", "category").iter_rows()}  # fmt: skip
    assert set(release.log.frame.select("query", "time", "category").iter_rows()) <= known
    assert release.log.frame["category"].n_unique() > 10
    assert release.log.frame.select("url", "rank").null_count().row(0) == (len(release.log),) * 2


def test_a_query_without_a_category_may_stand_for_its_person_but_a_person_without_one_is_gone(tree):
    people = [["golf", "qzxv", "qzxv"], ["golf", "qzxv", "qzxv"], ["qzxv"]]
    release = protect(written(people), taxonomy=tree)
    assert release.report.reasons[NAME] == {NO_TOPIC: 1, REPLACED: 6}
    assert set(release.log.frame["user"]) == {"p0", "p1"}
    assert "qzxv" in set(release.log.frame["query"])


def test_no_query_at_all_shows_nothing():
    assert len(protect(made(("a", None), ("b", None), ("c", ""))).log) == 0


# Topics


def first_names(release):
    frame = release.log.frame.with_columns(topic=pl.col("category").str.split("/").list.first())
    return frame.group_by("user").agg(pl.col("topic").n_unique())["topic"]


def test_histories_have_the_topics_that_were_asked_for(tree):
    chance = np.random.default_rng(2)
    queries = [q for q in MEANT if len(MEANT[q]) == 1]
    taste = {0: queries[:4], 1: ["big band"], 2: ["europe"]}
    people = [
        [str(chance.choice(taste[n % 3])) for _ in range(5)] + [str(chance.choice(queries))]
        for n in range(36)
    ]
    category = pl.col("query").replace_strict({q: MEANT[q][0][0] for q in queries}, return_dtype=pl.String)
    log = written(people, category=category)
    assert first_names(protect(log, taxonomy=tree, k=3)).min() == 1
    release = protect(log, taxonomy=tree, k=3, diversity=3, closeness=0.35)
    assert first_names(release).min() >= 3
    assert [check["verdict"] for check in part(release)["checks"]] == ["kept"] * 4
    with pytest.raises(ParameterError, match="even one history of all people has fewer topics"):
        protect(log, taxonomy=tree, k=3, diversity=5)


# Many people


def test_people_past_the_size_of_a_matrix_are_cut_into_blocks_and_lose_little(monkeypatch):
    """Of what exact groups have in common over random ones, blocks of a sixteenth keep four fifths."""
    log, given_to, k = made_up(600, seed=5), [], 5
    real = topic_groups.group

    def spy(counts, *rest, **more):
        label = real(counts, *rest, **more)
        given_to.append((counts, label))
        return label

    monkeypatch.setattr(topic_groups, "group", spy)
    protect(log, k=k)
    monkeypatch.setattr(mdav, "EXACT", 40)
    release = protect(log, k=k)
    (counts, exact), (_, blocks) = given_to
    together = topic_groups.incidence(counts)

    def common(label):
        return int(together[label[:, None] == label[None, :]].sum())

    assert sorted(np.bincount(exact)) == sorted(np.bincount(blocks))
    chance = np.random.default_rng(1)
    random = np.mean([common(chance.permutation(exact)) for _ in range(5)])
    assert 0.8 < (common(blocks) - random) / (common(exact) - random) < 1
    assert part(release)["audit"] == "kept"


@pytest.mark.parametrize("chosen", [{"categories": 0}, {"categories": 6}, {"levels": -1}], ids=str)
def test_settings_have_bounds(chosen):
    with pytest.raises(ParameterError):
        MicroaggTopic.Settings(**chosen)
