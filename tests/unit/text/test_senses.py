"""Concepts and what queries mean: the paper's examples (002, section 3.4), idioms, and any text at all."""

from __future__ import annotations

import gc
import os
import weakref

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from querycloak.errors import UsageError
from querycloak.text.concept_space import (
    PAPER_4,
    PAPER_19,
    ConceptModel,
    ConceptSpec,
    partition_by_topic,
)
from querycloak.text.normalise import FUNCTION_WORDS
from querycloak.text.senses import ConceptMapper, concept_lexicon, of_tree, pluralised, rewrite_query
from querycloak.text.taxonomy import build
from querycloak.text.taxonomy_files import TreeBuilder
from querycloak.text.wordnet import wordnet

SHOP = ("goods", "goods/apple phone", "goods/huawei tablet", "places", "places/store", "places/web site")
NEW = {"apple phone": "huawei tablet", "store": "web site"}
PAPER = "stores offering the new Apple phones"


def tree_of(*paths):
    builder = TreeBuilder()
    for path in paths:
        builder.add(path.split("/"))
    return of_tree(build(builder.parent, builder.names, builder.lexicon()))


@pytest.fixture(scope="module")
def shop():
    return tree_of(*SHOP)


def read(concepts, *queries, how="lexical"):
    """Give what each query means, in words."""
    mapped = ConceptMapper(concepts, how).read(pl.Series(queries, dtype=pl.String))
    said = [concepts.label[phrase.concept] for phrase in mapped.phrases]
    return [said[a:b] for a, b in zip(mapped.start[:-1], mapped.start[1:], strict=True)]


def rewritten(concepts, query, rebuild, how):
    mapped = ConceptMapper(concepts, how).read(pl.Series([query]))
    new = [NEW[concepts.label[phrase.concept]] for phrase in mapped.phrases]
    return rewrite_query(mapped.phrases, new, rebuild)


@pytest.mark.nlp
def test_the_paper_s_query_is_two_phrases(shop):
    phrases = ConceptMapper(shop, "linguistic").read(pl.Series([PAPER])).phrases
    assert [shop.label[p.concept] for p in phrases] == ["store", "apple phone"]
    assert [p.plural for p in phrases] == [True, True]
    assert phrases[1].before == ("offering", "the")
    assert phrases[1].removed == ("new",)


@pytest.mark.nlp
@pytest.mark.parametrize(
    ("rebuild", "wanted"),
    [
        ("paper", "web sites offering the new huawei tablets"),
        ("form", "web sites the huawei tablets"),
        ("none", "web site, huawei tablet"),
    ],
)
def test_the_paper_s_query_is_written_anew(shop, rebuild, wanted):
    assert rewritten(shop, PAPER, rebuild, "linguistic") == wanted


@pytest.mark.parametrize("query", ["Apple phone", "Apple phones", "new Apple phone", "the new APPLE phones!"])
def test_forms_of_a_phrase_mean_the_same(shop, query):
    assert read(shop, query) == [["apple phone"]]


@pytest.mark.parametrize(
    ("rebuild", "wanted"),
    [
        ("none", "huawei tablet, web site"),
        ("form", "the huawei tablets in web sites"),
        ("paper", "the new huawei tablets in big web sites"),
    ],
)
def test_words_are_put_back_only_if_asked_for(shop, rebuild, wanted):
    assert rewritten(shop, "the new apple phones in big stores", rebuild, "lexical") == wanted


@pytest.mark.parametrize("rebuild", ["none", "form"])
@given(st.text(st.characters(categories=["L", "N", "Zs", "P"]), max_size=40))
def test_no_word_outside_the_taxonomy_survives_without_paper(shop, rebuild, name):
    """`form` may keep stop words; everything else is a word of the taxonomy, plural or not."""
    mapped = ConceptMapper(shop).read(pl.Series([f"{name} stores of {name} and {name} apple phone"]))
    said = rewrite_query(mapped.phrases, [shop.label[p.concept] for p in mapped.phrases], rebuild)
    known = {word for text in shop.label for word in (*text.split(" "), *pluralised(text).split(" "))}
    left = set(said.replace(",", "").split()) - known
    assert not left if rebuild == "none" else left <= FUNCTION_WORDS


@pytest.mark.nlp
@pytest.mark.parametrize("query", ["bob's stores offering apple phones", "the store's apple phones"])
def test_a_possessive_hides_no_later_phrase(shop, query):
    assert "apple phone" in read(shop, query, how="linguistic")[0]


def test_every_label_of_wordnet_means_its_own_concept():
    concepts = concept_lexicon()
    sayable = concepts.labelled.tolist()
    labels = [concepts.label[concept] for concept in sayable]
    mapped = ConceptMapper(concepts).read(pl.Series(labels))
    assert np.diff(mapped.start).tolist() == [1] * len(labels)
    assert mapped.concept.tolist() == sayable
    assert all(p.removed == () and p.before == () and not p.plural for p in mapped.phrases)
    assert len(set(labels)) == len(labels) > 65_000


def test_lists_of_labels_are_read_back_as_written():
    concepts = concept_lexicon()
    chosen = np.random.default_rng(1).choice(concepts.labelled, (3000, 3))
    texts = [", ".join(concepts.label[c] for c in row) for row in chosen.tolist()]
    assert ConceptMapper(concepts).read(pl.Series(texts)).concept.reshape(-1, 3).tolist() == chosen.tolist()


NAME = st.text(st.characters(codec="utf-8", exclude_characters="/\r\n"), min_size=1, max_size=12)
WORDS = st.lists(
    st.sampled_from(["bank", "of", "the", "new", "york", "city", "hall", "in", "rights"]),
    min_size=1,
    max_size=4,
)


@given(st.lists(st.one_of(NAME, WORDS.map(" ".join)).filter(str.strip), min_size=1, max_size=12))
@example(["new of york", "new york city", "new york city hall"])
@example(["bank of the york", "bank", "york"])
@example(["Straße", "ΣΊΣΥΦΟΣ", "İstanbul", "C++", "c#", ".net in", "ﬁsh", "½ mile", "x²"])
def test_every_label_of_any_tree_means_its_own_concept(names):
    concepts = tree_of(*(name.strip() for name in names))
    sayable = concepts.labelled.tolist()
    mapped = ConceptMapper(concepts).read(pl.Series([concepts.label[c] for c in sayable], dtype=pl.String))
    assert np.diff(mapped.start).tolist() == [1] * len(sayable)
    assert mapped.concept.tolist() == sayable


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("bill of rights", ["bill of rights"]),
        ("the bill of rights and the dog", ["bill of rights", "dog"]),
        ("dogs, cats", ["dog", "cat"]),
        ("dogs; cats | birds\nfish", ["dog", "cat", "bird", "fish"]),
        ("dogs and cats", ["dog", "cat"]),
        ("big red dogs", ["dog"]),
        ("Dog", ["dog"]),
        ("DOGS!!!", ["dog"]),
        ("ﬁsh", ["fish"]),
        ("www.invented.example/dog", []),
        ("http://invented.example dog", []),
        ("dog.com", []),
        ("www dog com", []),
        ("dog.com, cat", ["cat"]),
        ("", []),
        ("  ,  ; ", []),
        ("the of and", []),
        ("qzxv wqkj", []),
        ("x", []),
        ("犬", []),
        (None, []),
    ],
)
def test_what_queries_mean(query, meant):
    assert read(concept_lexicon(), query) == [meant]


def test_a_very_long_query_is_read_in_part_and_a_long_list_in_whole():
    assert read(concept_lexicon(), "qzxv " * 5000 + "dog") == [[]]
    assert read(concept_lexicon(), ", ".join(["dog"] * 500)) == [["dog"] * 500]


@given(st.lists(st.text(max_size=60), max_size=8))
@example(["\x00", "\ud7ff", "a" * 5000, "🐕 dog", "\u202egod", "dog\tcat"])
def test_no_text_is_too_odd(texts):
    for queries in (texts, [*texts, None]):
        mapped = ConceptMapper(concept_lexicon()).read(pl.Series(queries, dtype=pl.String))
        assert mapped.start.size == len(queries) + 1
        assert mapped.start[0] == 0
        assert mapped.start[-1] == len(mapped.phrases)
        assert (np.diff(mapped.start) >= 0).all()
        for rebuild in ("none", "form", "paper"):
            rewrite_query(mapped.phrases, ["dog"] * len(mapped.phrases), rebuild)


@pytest.mark.nlp
@given(st.lists(st.text(max_size=30), max_size=3))
@example(["", " ", "\x00", "🐕 dog", "dog's"])
def test_no_text_is_too_odd_for_the_parser(texts):
    mapped = ConceptMapper(concept_lexicon(), "linguistic").read(pl.Series(texts, dtype=pl.String))
    assert mapped.start[-1] == len(mapped.phrases)


def test_a_phrase_means_the_first_that_has_it_and_the_rest_cannot_be_said():
    tree = tree_of("arts", "arts/movie", "home", "home/movie")
    assert tree.category[tree.concept_of["movie"]] == "arts/movie"
    assert [tree.label[c] for c in tree.labelled.tolist()] == ["arts", "movie", "home"]


@pytest.mark.parametrize(
    ("one", "many"),
    [("dog", "dogs"), ("city", "cities"), ("day", "days"), ("watch", "watches"), ("box", "boxes"),
     ("glass", "glasses"), ("glasses", "glasses"), ("brush", "brushes"), ("web site", "web sites")],
)  # fmt: skip
def test_plurals(one, many):
    assert pluralised(one) == many


@pytest.mark.parametrize(("wanted", "senses"), [("paper-4", PAPER_4), ("paper-19", PAPER_19)])
def test_the_topics_of_the_paper(wanted, senses):
    lexicon, graph = concept_lexicon(), wordnet()
    topics = partition_by_topic(lexicon, wanted)
    assert len(senses) == int(wanted.partition("-")[2])
    assert topics.names[:-1] == senses
    assert topics.of.size == lexicon.size
    assert set(topics.of.tolist()) == set(range(len(senses) + 1)), "each has concepts, and so has the rest"
    found = [graph.find(sense) for sense in senses]
    rng = np.random.default_rng(2)
    for concept in [*found, *rng.integers(0, lexicon.size, 3000).tolist()]:
        above = set(lexicon.ancestors[concept].tolist())
        wide = {place: len(lexicon.ancestors[c]) for place, c in enumerate(found) if c in above}
        deepest = min(wide, key=lambda place: (-wide[place], place), default=len(senses))
        assert topics.of[concept] == deepest


def test_the_19_topics_lie_below_the_4():
    four, nineteen = (partition_by_topic(concept_lexicon(), name).of for name in ("paper-4", "paper-19"))
    assert (four[nineteen < 19] < 4).all()


def test_deepest_wins_whatever_the_order():
    concepts = concept_lexicon()
    for listed in ("dog.n.01, animal.n.01", "animal.n.01,dog.n.01"):
        topics = partition_by_topic(concepts, listed)
        assert topics.names[topics.of[concepts.find("poodle.n.01")]] == "dog.n.01"
        assert topics.names[topics.of[concepts.find("cat.n.01")]] == "animal.n.01"
        assert topics.names[topics.of[concepts.find("hammer.n.01")]] == "everything else"


def test_topics_of_a_tree_go_by_path_or_phrase(shop):
    topics = partition_by_topic(shop, "places, apple phone")
    assert topics.names == ("places", "apple phone", "everything else")
    assert [topics.names[t] for t in topics.of[1:]] == [
        "everything else", "apple phone", "everything else", "places", "places", "places",
    ]  # fmt: skip
    assert partition_by_topic(shop, "goods/apple phone").of.tolist() == [1, 1, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("make", [concept_lexicon, lambda: tree_of(*SHOP)], ids=["WordNet", "a tree"])
def test_categories_part_all_concepts(make):
    concepts = make()
    topics = partition_by_topic(concepts)
    assert topics.of.size == concepts.size
    assert topics.of.min() >= 0
    for concept in range(0, concepts.size, 97):
        top = concepts.category[concept].partition("/")[0]
        assert topics.names[topics.of[concept]] == (top or "everything else")


@pytest.mark.parametrize(
    "wanted",
    ["zanzibarwalrus", "disease.n.01,zanzibarwalrus.n.01", "dog.n.99", "dog.n.01,dog.n.01", ",", "dog.n.x"],
)
def test_an_unknown_topic_is_refused_without_saying_it(wanted):
    with pytest.raises(UsageError) as caught:
        partition_by_topic(concept_lexicon(), wanted)
    assert "zanzibar" not in str(caught.value)
    assert "dog.n.99" not in str(caught.value)


def test_versions_of_a_changed_file_do_not_pile_up(tmp_path):
    """Every version of a file and every candidate space stayed for the life of the process."""
    file, kept = tmp_path / "own.csv", []
    for version in range(12):
        file.write_text(f"path\nA/B{version}\n")
        os.utime(file, ns=(version, version))
        model = ConceptModel(ConceptSpec(taxonomy=str(file)))
        assert model.concepts.find(f"A/B{version}") == 2
        assert model.space.domains == model.topics.names.index("A") + 1
        kept.append(weakref.ref(model.concepts))
        del model
    gc.collect()
    assert sum(one() is not None for one in kept) <= 8
