"""`dp-semantic` on whole logs: what is kept, what changes, and what cannot be asked for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

import querycloak as qc
from querycloak.errors import DataError, ParameterError, Refused, UsageError
from querycloak.methods.dp_semantic import ALL_USED, UNMAPPED, DpSemantic
from querycloak.text.concept_space import PAPER_4, PAPER_19, partition_by_topic
from querycloak.text.senses import concept_lexicon
from querycloak.text.wordnet import wordnet
from tests.support.logs import made_up
from tests.unit.methods.made_dp import SETTINGS, beside, made, meant, part, protect


@pytest.fixture(scope="module")
def log():
    return made_up(60, seed=3, categories=True)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_everyone_has_as_many_records_as_were_mapped(log, settings):
    release = protect(log, **settings)
    mapped = [bool(concepts) for concepts in meant(log.frame["query"])]
    wanted = Counter(log.frame.filter(pl.Series(mapped))["user"])
    assert Counter(release.truth["original_user"]) == wanted
    assert sorted(Counter(release.log.frame["user"]).values()) == sorted(wanted.values())
    assert set(release.report.reasons["dp-semantic"]) == {UNMAPPED}
    assert release.certificate["audit"] == "not checkable", "no release shows probabilities"
    assert release.log.frame["user"].to_list() == release.truth["original_label"].to_list()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_clicks_are_gone_and_times_are_coarse(log, settings):
    assert log.frame["url"].null_count() < len(log)
    shown = beside(log, protect(log, **settings))
    assert shown["url"].null_count() == shown["rank"].null_count() == shown.height > 0
    if settings.get("time") == "drop":
        assert shown["time"].null_count() == shown.height
    else:
        assert (shown["time"] == shown["old_time"].dt.truncate("1h")).all()


@pytest.mark.parametrize("settings", [s for s in SETTINGS if "rebuild" not in s], ids=str)
def test_each_phrase_becomes_one_and_the_category_is_the_first_s(log, settings):
    concepts = concept_lexicon()
    number = {text: c for c, text in enumerate(concepts.label) if text}
    shown = beside(log, protect(log, **settings))
    new = [[number[text] for text in query.split(", ")] for query in shown["query"]]
    assert [len(n) for n in new] == [len(old) for old in meant(shown["old_query"])]
    assert shown["category"].to_list() == [concepts.category[n[0]] for n in new]
    assert meant(shown["query"]) == new, "who reads the release understands what was drawn"


def jsd_of_profiles(shown, topics):
    """Give the largest divergence of anyone's topics, before and after, as a reader would find them."""
    found = []
    for _, own in shown.group_by("user"):
        profiles = [
            np.bincount(topics.of[np.concatenate(meant(own[name]))], minlength=len(topics.names))
            for name in ("old_query", "query")
        ]
        found.append(qc.measures.jensen_shannon(*(profile.tolist() for profile in profiles)))
    return max(found)


@pytest.mark.parametrize("prior", ["none", "microagg-semantic"])
@pytest.mark.parametrize("criterion", ["sqc1", "sqc2", "none"])
@pytest.mark.parametrize(
    "topics", ["categories", "paper-4", "paper-19", "animal.n.01, artifact.n.01,dog.n.01"]
)
def test_the_domain_of_a_topic_keeps_every_topic(log, criterion, topics, prior):
    """Acceptance 3: the divergence of profiles is exactly 0."""
    shown = beside(
        log, protect(log, domain="topic", topics=topics, criterion=criterion, prior=prior, epsilon=1.0)
    )
    of = partition_by_topic(concept_lexicon(), topics)
    for old, new in zip(meant(shown["old_query"]), meant(shown["query"]), strict=True):
        assert of.of[old].tolist() == of.of[new].tolist()
    assert jsd_of_profiles(shown, of) == 0.0
    assert jsd_of_profiles(beside(log, protect(log, epsilon=1.0)), of) > 0.0


def test_finer_domains_than_topics_keep_the_topics_too(log):
    """The paper's D(q) < P. What is in none of the 19 stays in its one of the 4, so both are named."""
    # Of social events only the concept itself would be left, and one concept cannot hide: it keeps its shows.
    parts = [name for name in PAPER_19 if name != "show.n.03"]
    both = ",".join((*PAPER_4, *parts))
    shown = beside(log, protect(log, domain="topic", topics="paper-4", domain_topics=both, epsilon=1.0))
    assert jsd_of_profiles(shown, partition_by_topic(concept_lexicon(), "paper-4")) == 0.0
    assert jsd_of_profiles(shown, partition_by_topic(concept_lexicon(), ",".join(parts))) == 0.0


def test_a_topic_of_one_concept_is_refused(log):
    with pytest.raises(ParameterError, match="only one concept"):
        protect(log, domain="topic", topics=",".join((*PAPER_4, *PAPER_19)))


def first_that_fit(log, most):
    """Say which records go, one after the other, if each person has so many draws and records go whole."""
    used, rows = Counter(), set()
    for row, user, concepts in sorted(
        zip(log.frame["row"], log.frame["user"], meant(log.frame["query"]), strict=True)
    ):
        if concepts and used[user] + len(concepts) <= most:
            used[user] += len(concepts)
            rows.add(row)
    return rows, used


@pytest.mark.parametrize("settings", [{}, {"per": "query"}, {"rebuild": "form"}], ids=str)
@pytest.mark.parametrize("most", [1, 2, 7])
def test_max_queries_counts_phrases(log, most, settings):
    once = log.with_frame(
        log.frame.sort("time").unique(["user", "query", "time"], keep="first", maintain_order=True)
    )
    once = once.with_frame(once.frame.drop("row").with_row_index("row").cast({"row": pl.Int64}))
    release = protect(once, max_queries=most, **settings)
    rows, used = first_that_fit(once, most)
    assert set(release.truth["original_row"]) == rows
    assert max(used.values()) == most
    assert set(release.report.reasons["dp-semantic"]) == {UNMAPPED, ALL_USED}
    assert release.report.withheld == len(once) - len(rows)


def test_a_search_with_several_clicks_is_one_draw():
    time = pl.Series([0, 0, 0, 10**10, 10**10]).cast(pl.Datetime("us", "UTC"))
    log = made(("ann", "dog"), ("ann", "dog"), ("ann", "cat"), ("ann", "dog"), ("bob", "dog"), time=time)
    for seed in range(5):
        release = protect(log, epsilon=1.0, seed=seed, max_queries=3)
        shown = dict(zip(release.truth["original_row"], release.log.frame["query"], strict=True))
        assert shown[0] == shown[1]
        assert len(shown) == 5, "two rows of one search are one of the three draws"
        assert len({shown[0], shown[2], shown[3], shown[4]}) == 4


def test_a_small_share_shows_less_than_a_large_one(log):
    kept = []
    for settings in ({"epsilon": 0.1}, {"epsilon": 30.0, "per": "query"}):
        shown = beside(log, protect(log, **settings))
        same = [a == b for a, b in zip(meant(shown["old_query"]), meant(shown["query"]), strict=True)]
        kept.append(np.mean(same))
    assert kept[0] < 0.01
    assert kept[1] > 0.3


def test_long_histories_share_what_short_ones_have_alone():
    """A history of one phrase is kept at ε = 40 nearly always, and one of forty nearly never."""
    log = made(*((f"u{n}", "dog") for n in range(50)), *(("many", "dog") for _ in range(40)))
    shown = beside(log, protect(log, epsilon=40.0, criterion="none", labels="keep", source="test"))
    same = shown.group_by(pl.col("user") == "many").agg((pl.col("query") == "dog").mean())
    kept = dict(same.rows())
    assert kept[False] > 0.9
    assert kept[True] < 0.1


@pytest.mark.parametrize(
    "settings",
    [
        {"prior": "microagg-semantic", "max_queries": 5},
        {"prior": "microagg-semantic", "per": "query"},
        {"per": "query", "composition": "zcdp"},
        {"epsilon": 0.0},
        {"epsilon": 0.0001},
        {"epsilon": 1001.0},
        {"epsilon": float("nan")},
        {"max_queries": 0},
        {"max_queries": "all"},
        {"budget": -1.0},
        {"delta": 0.5},
        {"group": 1},
        {"criterion": "sqc3"},
        {"domain": "mine"},
        {"rebuild": "all"},
        {"time": "keep"},
        {"overspent": "ignore"},
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(settings):
    with pytest.raises(ParameterError):
        DpSemantic.Settings(**settings)


@pytest.mark.parametrize(
    "settings",
    [{"topics": "zanzibarwalrus"}, {"root": "zanzibarwalrus"}, {"root": "zanzibarwalrus.n.01"}],
    ids=str,
)
def test_unknown_concepts_are_refused_without_saying_them(settings):
    with pytest.raises(UsageError) as caught:
        protect(made(("ann", "dog")), **settings)
    assert "zanzibar" not in str(caught.value)


def test_a_missing_taxonomy_is_said_so():
    with pytest.raises(DataError, match="taxonomy file cannot be opened"):
        protect(made(("ann", "dog")), taxonomy="/nowhere/tree.csv")


ODD = {
    "no time": made(("ann", "dog"), ("bob", "cat")),
    "empty queries": made(("ann", ""), ("bob", " "), ("ann", "dog")),
    "one user": made(("ann", "dog")),
    "all unmapped": made(("ann", "qzxv"), ("bob", "wqkj")),
    "no rows": made(),
    "a long list": made(("ann", ", ".join(["dog", "cat"] * 150))),
    "odd letters": made(("ann", "🐕 dog\u202e"), ("bob", "犬")),
}


@pytest.mark.parametrize(
    "settings", [*SETTINGS, {"max_queries": 1}, {"max_queries": 1, "per": "query"}], ids=str
)
@pytest.mark.parametrize("name", ODD)
def test_odd_logs(name, settings):
    release = protect(ODD[name], allow_bad=True, **settings)
    mapped = sum(bool(concepts) for concepts in meant(ODD[name].frame["query"]))
    assert len(release.log) == mapped or "max_queries" in settings
    verdict = "not checkable" if len(release.log) else "not applicable"  # no release shows probabilities
    assert release.certificate["audit"] == verdict


def test_a_draw_never_spends_more_than_its_weights_can_hold():
    """Whether somebody has one phrase only must not decide whether there is a release."""
    assert len(protect(made(("ann", "dog")), epsilon=1000).log) == 1
    assert len(protect(made(("ann", "dog")), epsilon=1000, max_queries=25).log) == 1


@pytest.mark.parametrize("settings", [{}, {"max_queries": 4}, {"prior": "microagg-semantic"}], ids=str)
def test_pieces_of_any_size_give_the_same_release(log, settings):
    whole = protect(log, **settings)
    cut = protect(log, piece_rows=97, **settings)
    assert whole.log.frame.equals(cut.log.frame)
    assert whole.truth.drop("released_after").equals(cut.truth.drop("released_after"))


def test_methods_that_mix_people_cannot_come_before(log):
    for method in ("frequent-only", "km", "swap", "cohort", "z-anonymity"):
        with pytest.raises(Refused):
            qc.protect(log, method, "dp-semantic", seed=1)


def test_rules_can_come_before(log):
    """That a drawn concept has a digit or looks like a name breaks no rule: nobody typed it."""
    found = qc.protect(log, "rules", "dp-semantic", seed=1)
    assert len(found.log) > 0
    assert part(found)["method"] == "rules"
    assert found.certificate["audit"] != "broken"


def test_a_root_leaves_out_what_is_not_below_it():
    """A dog is no abstraction, and love is one."""
    log = made(("ann", "dog, love"), ("ann", "dogs"), ("bob", "love, fear"))
    shown = beside(log, protect(log, root="abstraction.n.06", epsilon=2.0)).sort("row")
    assert shown["row"].to_list() == [0, 2]
    new = meant(shown["query"])
    assert [len(concepts) for concepts in new] == [1, 2]
    top, lexicon = wordnet().find("abstraction.n.06"), concept_lexicon()
    assert all(top in lexicon.ancestors[concept] for concepts in new for concept in concepts)


@pytest.mark.nlp
def test_the_parser_s_phrases_are_replaced_one_by_one(log):
    few = log.with_frame(log.frame.head(300))
    release = protect(few, mapper="linguistic")
    shown = beside(few, release)
    old = meant(shown["old_query"], phrases="linguistic")
    assert [len(query.split(", ")) for query in shown["query"]] == [len(concepts) for concepts in old]
    assert release.certificate["audit"] == "not checkable", "no release shows probabilities"
