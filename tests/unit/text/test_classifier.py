"""What the lexical classifier answers, on a small taxonomy."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querycloak.errors import ParameterError, UnknownName
from querycloak.text import classifier
from querycloak.text.classifier import Evidence, LexicalClassifier, NgramModel
from querycloak.text.classify import CLASSIFIERS, categories, make
from querycloak.text.taxonomy import build

from .small_taxonomy import lexicon_of, small_classifier, small_taxonomy


def answers(queries):
    reader = small_classifier()
    found = reader.classify(pl.Series(queries, dtype=pl.String))
    paths = [reader.taxonomy.path(node) if node >= 0 else None for node in found.category]
    return paths, [Evidence(i).name.lower() for i in found.evidence], found.confidence


@pytest.mark.parametrize(
    ("query", "path", "how"),
    [
        ("hotels in boston", "Recreation/Travel", "lexical"),
        ("boston", "Regional/Cities", "lexical"),
        ("Bank of America", "Business/Banking", "lexical"),
        ("bank america", "Business/Banking", "lexical"),
        ("www.bankofamerica.com", "Business/Banking", "lexical"),
        ("creditcards", "Business/Banking", "lexical"),
        ("mortgage payoff", "Business/Banking", "lexical"),
        ("hotel", "Recreation/Travel", "lexical"),
        ("wether denver", "News/Weather", "spelling"),
        ("hotmial", "Computers/Email", "spelling"),
        ("chiken recpies", "Home/Cooking", "spelling"),
        ("hurricanes", "News/Weather/storm/windstorm/cyclone/hurricane", "lexical"),
        ("someone@mail.example", "Computers/Email", "form"),
        ("(555) 555-0134", "Reference/Phone Directories", "form"),
        ("00501", "Regional/United States", "form"),
    ],
)
def test_a_query_gets_the_category_that_a_person_would_give(query, path, how):
    paths, hows, confidence = answers([query])
    assert (paths, hows) == ([path], [how])
    assert 0 < confidence[0] <= 1


@pytest.mark.parametrize("query", ["", "   ", "?!", "\u0000"])
def test_nothing_readable_gets_no_category(query):
    paths, hows, confidence = answers([query])
    assert (paths, hows, confidence.tolist()) == ([None], ["none"], [0.0])


def test_unknown_words_still_get_a_guess_marked_as_such():
    paths, hows, confidence = answers(["zorblax quuxington"])
    assert paths[0] is not None
    assert hows == ["ngrams"]
    assert confidence[0] < answers(["golf clubs"])[2][0]


def test_a_clicked_url_is_read_by_its_words():
    urls = pl.Series(["http://www.weather.example/boston/forecast?x=golf", "http://qwxzv.example/", None])
    found = small_classifier().classify_urls(urls)
    assert [Evidence(i).name for i in found.evidence] == ["URL", "NONE", "NONE"]
    assert small_taxonomy().path(int(found.category[0])) == "News/Weather"


queries = st.lists(
    st.one_of(
        st.text(max_size=40), st.sampled_from(["wether", "golf clubs", "bankofamerica", "zorblax", ""])
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(queries, st.randoms(use_true_random=False))
def test_an_answer_does_not_depend_on_its_neighbours(texts, random):
    whole = small_classifier().classify(pl.Series(texts))
    order = list(range(len(texts)))
    random.shuffle(order)
    mixed = small_classifier().classify(pl.Series([texts[i] for i in order]))
    alone = [small_classifier().classify(pl.Series([text], dtype=pl.String)) for text in texts]
    assert mixed.category.tolist() == whole.category[order].tolist()
    assert mixed.confidence.tolist() == whole.confidence[order].tolist()
    assert [int(one.category[0]) for one in alone] == whole.category.tolist()
    assert [float(one.confidence[0]) for one in alone] == whole.confidence.tolist()


@settings(deadline=None)
@given(st.text(max_size=60))
def test_confidence_is_a_share_and_nodes_exist(text):
    found = small_classifier().classify(pl.Series([text], dtype=pl.String))
    assert 0 <= found.confidence[0] <= 1
    assert -1 <= found.category[0] < small_classifier().taxonomy.size
    assert found.category[0] != 0


def test_an_endless_query_is_read_up_to_its_limit():
    paths, _, _ = answers(["golf " * 300_000])
    assert paths == ["Sports/Golf"]


def test_no_queries_give_no_answers():
    assert len(small_classifier().classify(pl.Series([], dtype=pl.String))) == 0


def test_a_taxonomy_without_words_answers_nothing():
    empty = LexicalClassifier(build([-1, 0], ["", "Sports"], lexicon_of([])))
    assert empty.classify(pl.Series(["golf", ""], dtype=pl.String)).category.tolist() == [-1, -1]


def test_the_best_categories_of_a_term_come_first():
    found = categories("chicken weather", 2, small_taxonomy())
    assert len(found) == 2
    assert set(found) == {"News/Weather", "Home/Cooking"}
    assert categories("golf", 5, small_taxonomy()) == ["Sports/Golf"]
    with pytest.raises(ParameterError, match="at least 1"):
        categories("golf", 0)


def test_classifiers_are_found_by_name():
    assert CLASSIFIERS.names()[:2] == ["lexical", "http"]
    assert CLASSIFIERS.get("lexical") is LexicalClassifier
    with pytest.raises(UnknownName, match="did you mean `lexical`"):
        make("lexcal")


def test_the_index_keeps_the_stronger_weight_where_forms_meet():
    def said(*pairs):
        tree = build([-1, 0, 1], ["", "Sports", "Golf"], lexicon_of(pairs))
        return LexicalClassifier(tree).scores("golfing")[1].tolist()

    assert said(("golf", 2, 3.0), ("golfs", 2, 1.0)) == said(("golf", 2, 3.0)) > said(("golfs", 2, 1.0))


def deep_tree(depth):
    """Return a taxonomy with the same terms at depth 2 or 3."""
    names = ["", "Sports", "Golf", "Golf Clubs"][: depth + 1]
    pairs = [("driver set", depth, 1.0), ("putting green", depth, 1.0), ("fairway wood", depth, 1.0)]
    return build(range(-1, depth), names, lexicon_of(pairs))


def test_own_terms_count_as_much_at_any_depth():
    """Depth 3 was taken for WordNet: less weight, no correction of misspelt words, no n-grams."""
    queries = pl.Series(["driver set", "puting green", "fairwayish"])
    shallow, deep = (LexicalClassifier(deep_tree(depth)).classify(queries) for depth in (2, 3))
    assert deep.confidence.tolist() == shallow.confidence.tolist()
    assert deep.evidence.tolist() == shallow.evidence.tolist()
    assert deep.evidence[1] == Evidence.SPELLING


def test_threads_train_the_model_once(monkeypatch):
    trained = []
    monkeypatch.setattr(classifier, "NgramModel", lambda tree: trained.append(1) or NgramModel(tree))
    monkeypatch.setattr(classifier, "PIECE", 2)
    LexicalClassifier(small_taxonomy()).classify(pl.Series(["golf", "hotel", "boston"] * 10))
    assert len(trained) == 1
