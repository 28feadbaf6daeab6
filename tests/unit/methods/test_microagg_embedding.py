"""`microagg-semantic` with `similarity=embedding`: people compared by vectors of words, without a tree."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

import querycloak as qc
from querycloak.errors import MissingExtra, ParameterError
from querycloak.methods.likeness_by_vectors import TOO_RARE, WORDLESS, ByVectors
from querycloak.methods.microagg_semantic import MicroaggSemantic
from querycloak.methods.microaggregation import STANDS_FOR
from querycloak.topics import embeddings
from querycloak.topics.classify.normalise import plain
from tests.reference import naive_vectors
from tests.unit.methods.made_dp import made, part

FOOD = (
    "apple pie recipe",
    "chocolate cake",
    "baking bread",
    "chicken soup",
    "pasta sauce",
    "cheese omelette",
)
CARS = ("used trucks", "car engine repair", "tire pressure", "brake pads", "oil change", "motorcycle parts")


@pytest.fixture(scope="module")
def log():
    return qc.generate(60, seed=3, categories=True)


@pytest.fixture(scope="module")
def two_subjects():
    """Twelve people of each subject, no two of whom ask all the same; every other person is a cook."""
    chance = np.random.default_rng(5)
    pairs = [
        (f"{'food' if n % 2 else 'cars'}{n}", query)
        for n in range(24)
        for query in chance.choice(FOOD if n % 2 else CARS, size=2 + n % 4).tolist()
    ]
    return made(*pairs)


def protect(log, **settings):
    return qc.protect(log, "microagg-semantic", **({"seed": 3, "k": 3, "similarity": "embedding"} | settings))


def histories(release):
    """Give each label's rows, all columns, as a multiset."""
    found = {}
    for row in release.log.frame.drop("row").iter_rows(named=True):
        found.setdefault(row.pop("user"), Counter())[tuple(row.values())] += 1
    return found


def vectors_of(queries):
    distinct = sorted(set(queries))
    found = embeddings.vectors(plain(pl.Series(distinct)).to_list())
    return {query: one.astype(int).tolist() for query, one in zip(distinct, found, strict=True)}


# Refusals, which need no vectors


@pytest.mark.parametrize(
    "settings",
    [{"diversity": 2}, {"closeness": 0.5}, {"taxonomy": "tree.csv"}, {"mapper": "linguistic"}],
    ids=str,
)
def test_what_needs_categories_is_refused(settings):
    (name,) = settings
    with pytest.raises(ParameterError, match=f"has no categories for `{name}`") as caught:
        MicroaggSemantic.Settings(similarity="embedding", **settings)
    assert f"leave out `{name}`, or use `similarity=taxonomy`" in str(caught.value)
    assert MicroaggSemantic.Settings(**settings).similarity == "taxonomy"


def test_all_of_them_are_named_at_once():
    with pytest.raises(ParameterError, match="has no categories for `diversity` and `closeness`"):
        MicroaggSemantic.Settings(similarity="embedding", diversity=3, closeness=0.1)


def test_other_ways_to_compare_are_refused():
    with pytest.raises(ParameterError, match="one of taxonomy, embedding"):
        MicroaggSemantic.Settings(similarity="syntactic")


def test_without_the_extra_it_says_so_before_the_log_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(embeddings, "installed", lambda: False)
    with pytest.raises(MissingExtra, match="`similarity=embedding` needs the extra `embeddings`") as caught:
        protect(tmp_path / "not there.csv")
    assert caught.value.exit_status == 2
    assert "querycloak[embeddings]" in str(caught.value)
    assert all(settings.similarity == "taxonomy" for settings in MicroaggSemantic.examples())


# Who is grouped, and what stands for a group


@pytest.mark.embeddings
@pytest.mark.parametrize("k", [2, 3, 4])
def test_people_of_two_subjects_are_kept_apart(two_subjects, k):
    """Sizes are multiples of k, so no group has to be mixed; nor does a drawn query leave its subject."""
    for label, history in histories(protect(two_subjects, k=k)).items():
        own = FOOD if label.startswith("food") else CARS
        assert {query for (query,) in history} <= set(own)


@pytest.mark.embeddings
@pytest.mark.parametrize("k", [3, 5])
def test_a_history_is_that_of_the_naive_twin(log, monkeypatch, k):
    """Before queries are drawn: the quotas, the middle, and who gives what."""
    seen, spelt, real = [], [], MicroaggSemantic._represented

    def spy(self, theirs, members):
        own = [self.texts.query.decode(theirs.query[theirs.user == m]).to_list() for m in members]
        one = real(self, theirs, members)
        seen.append((own, spelt.pop(), self.texts.query.decode(one.query).to_list()))
        return one

    def noted(self, thing, names, old=ByVectors.picked):
        spelt.append(self.texts.query.decode(self._query[thing]).to_list())
        return old(self, thing, names)

    monkeypatch.setattr(MicroaggSemantic, "_represented", spy)
    monkeypatch.setattr(ByVectors, "picked", noted)
    release = protect(log, k=k)
    vector_of = vectors_of(log.frame["query"])
    everything = np.array([*vector_of.values()])
    for own, chosen, drawn in seen:
        assert Counter(chosen) == naive_vectors.history(own, vector_of)
        for query, instead in zip(chosen, drawn, strict=True):
            products = np.sort(everything @ vector_of[query])
            assert np.dot(vector_of[query], vector_of[instead]) >= products[-k]
    assert len(seen) == 60 // k
    assert sum(len(own) * len(drawn) for own, _, drawn in seen) == len(release.log)


@pytest.mark.embeddings
def test_every_near_query_is_drawn_about_as_often():
    """Two queries, 400 groups of two. Chance of a false alarm below 1e-8 (6 sigma)."""
    log = made(*((f"u{n}", ("dog", "dogs")[n % 2]) for n in range(800)))
    drawn = Counter(protect(log, k=2).log.frame["query"])
    assert set(drawn) == {"dog", "dogs"}
    assert abs(drawn["dog"] / 800 - 0.5) < 6 * 0.5 / 400**0.5


@pytest.mark.embeddings
def test_spelling_is_no_meaning():
    """Queries of one plain form have one vector: people who spell them otherwise are alike."""
    log = made(
        ("a", "Café Olé"),
        ("b", "cafe-ole"),
        ("c", "tax law"),
        ("d", "law of taxes"),
        ("e", "coffee"),
        ("f", "tea"),
    )
    found = histories(protect(log, k=2))
    assert found["a"] == found["b"]
    assert {query for (query,) in found["a"]} <= {"Café Olé", "cafe-ole"}


# What is shown


@pytest.mark.embeddings
@pytest.mark.parametrize("asked_by", [2, 3])
def test_only_queries_of_enough_people_are_shown(log, asked_by):
    askers = dict(log.frame.group_by("query").agg(pl.col("user").n_unique()).iter_rows())
    release = protect(log, asked_by=asked_by)
    assert len(release.log) > 0
    assert all(askers[query] >= asked_by for query in release.log.frame["query"])
    assert any(askers[query] < asked_by for query in protect(log).log.frame["query"])


@pytest.mark.embeddings
def test_where_no_query_is_of_enough_people_nothing_is_shown(two_subjects):
    release = protect(two_subjects, asked_by=24)
    assert len(release.log) == 0
    assert release.report.reasons["microagg-semantic"] == {TOO_RARE: len(two_subjects)}


@pytest.mark.embeddings
@pytest.mark.parametrize(
    "settings", [{"k": 2}, {"k": 5, "labels": "fresh"}, {"k": 20, "time": "drop"}], ids=str
)
def test_the_promise_is_kept_in_all_columns(log, settings):
    release = protect(log, **settings)
    sizes = Counter(frozenset(history.items()) for history in histories(release).values())
    assert all(size >= settings["k"] for size in sizes.values())
    assert sum(sizes.values()) == 60
    assert part(release)["audit"] == "kept"
    assert part(release)["settings"]["similarity"] == "embedding"
    frame = release.log.frame
    emptied = {"url", "rank", "category"} | ({"time"} if settings.get("time") == "drop" else set())
    assert {name for name in frame.columns if frame[name].null_count() == len(frame)} == emptied


@pytest.mark.embeddings
def test_verify_needs_the_release_alone(log, tmp_path):
    source, out = tmp_path / "log.csv", tmp_path / "out.csv"
    log.frame.drop("row").write_csv(source)
    qc.protect(source, "microagg-semantic", k=5, similarity="embedding", seed=1, output=out)
    assert not qc.verify(out).broken
    shown = pl.read_csv(out)
    shown.with_columns(
        query=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("x")).otherwise("query")
    ).write_csv(out)
    assert qc.verify(out).broken


@pytest.mark.embeddings
def test_who_knows_whole_histories_is_right_one_time_in_k_at_most():
    known = qc.generate(300, seed=7)
    (found,) = qc.attack(protect(known, k=5), known, "link-overlap", seed=1)
    assert found.n == 300
    assert 0 < found.success <= 1 / 5


# Odd logs, and the same release however the log comes


@pytest.mark.embeddings
def test_queries_without_words_are_dropped_and_counted():
    people = [(f"u{n}", "dog") for n in range(4)]
    release = protect(made(*people, ("v", "?!"), ("u0", "…")))
    assert set(release.log.frame["user"]) == {f"u{n}" for n in range(4)}
    assert release.report.reasons["microagg-semantic"] == {WORDLESS: 2, STANDS_FOR: 4}


@pytest.mark.embeddings
def test_too_few_people_with_words_show_nothing():
    release = protect(made(("a", "dog"), ("b", "cat"), *((f"v{n}", "?") for n in range(4))))
    assert len(release.log) == 0
    reasons = {WORDLESS: 4, "too few people have anything to go by": 2}
    assert release.report.reasons["microagg-semantic"] == reasons
    assert len(protect(made(), k=2).log) == 0
    assert len(protect(made(*((f"v{n}", "?") for n in range(4)))).log) == 0


@pytest.mark.embeddings
@pytest.mark.parametrize("settings", [{}, {"asked_by": 2, "k": 5}], ids=str)
def test_neither_pieces_nor_the_order_of_the_file_change_a_release(log, settings, monkeypatch):
    whole = protect(log, **settings)
    assert whole.log.frame.equals(protect(log, piece_rows=97, **settings).log.frame)
    mixed = log.frame.sample(fraction=1, shuffle=True, seed=9)
    numbered = mixed.drop("row").with_row_index("row").cast({"row": pl.Int64})
    monkeypatch.setattr(embeddings, "PIECE", 101)
    for frame in (mixed, numbered):
        assert histories(protect(log.with_frame(frame), **settings)) == histories(whole)


@pytest.mark.embeddings
def test_blocks_do_not_depend_on_the_order_of_the_file_either(log, monkeypatch):
    """With blocks so small that every log has many."""
    monkeypatch.setattr("querycloak.kernels.alike.MOST", 32)
    mixed = log.with_frame(log.frame.sample(fraction=1, shuffle=True, seed=2))
    whole = histories(protect(log))
    assert histories(protect(mixed)) == whole
    monkeypatch.undo()
    assert histories(protect(log)) != whole
