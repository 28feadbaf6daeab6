"""Microaggregation by meaning and by texts: who is grouped, what stands for a group, and odd logs."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import querycloak as qc
from querycloak.dictionary import Dictionaries
from querycloak.errors import DataError, MissingExtra, ParameterError, QueryCloakError, Refused
from querycloak.methods.microaggregation import REPLACED, tree_distance
from querycloak.methods.microaggregation.by_meaning import NO_TOPIC, UNMAPPED, MicroaggSemantic, MicroaggTopic
from querycloak.methods.microaggregation.by_text import MicroaggPlain, MicroaggSyntactic
from querycloak.methods.microaggregation.representatives import member_quotas
from querycloak.text import noun_phrases
from querycloak.text.senses import concept_lexicon
from tests.reference import naive_groups, naive_mdav
from tests.support.logs import made_up
from tests.support.releases import with_ids
from tests.unit.methods.made_dp import made, meant, part

METHODS = ("microagg-semantic", "microagg-topic", "microagg-syntactic", "microagg-plain")
BY_MEANING = METHODS[:2]
TREE = """path,terms
Sports,
Sports/Water Sports,
Sports/Water Sports/Swimming and Diving,diving;swimming
Sports/Water Sports/Windsurfing,
Sports/Golf,golf clubs
Regional,
Regional/Europe,
Regional/Europe/Regions,
Regional/Europe/Regions/Mediterranean,
Health,
Health/Chicken Pox,varicella
"""
WORDS = ("diving", "swimming", "windsurfing", "golf", "golf clubs", "mediterranean", "europe", "chicken pox",
         "varicella", "water sports", "diving in the mediterranean", "golf, windsurfing", "qzxv")  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    file = tmp_path_factory.mktemp("tree") / "microagg-tree.csv"
    file.write_text(TREE)
    return file


@pytest.fixture(scope="module")
def log():
    return made_up(60, seed=3, categories=True)


@pytest.fixture(scope="module")
def small():
    """Forty people who ask one to eight of a few things."""
    chance = np.random.default_rng(5)
    pairs = [
        (f"p{n}", WORDS[i]) for n in range(40) for i in chance.integers(len(WORDS), size=1 + n % 8).tolist()
    ]
    hours = pl.Series(np.arange(len(pairs)) * 3_600_000_000).cast(pl.Datetime("us", "UTC"))
    return made(*pairs, time=hours, category=pl.lit("Other"))


def protect(log, method="microagg-semantic", **settings):
    return with_ids(log, method, **({"seed": 3, "k": 3} | settings))


def histories(release):
    """Give each label's rows, all columns, as a multiset."""
    frame = release.log.frame.drop("row")
    rest = [name for name in frame.columns if name != "user"]
    found = {}
    for row in frame.iter_rows(named=True):
        found.setdefault(row["user"], Counter())[tuple(row[name] for name in rest)] += 1
    return found


def groups(release):
    """Count the labels of each history."""
    return Counter(frozenset(history.items()) for history in histories(release).values())


@pytest.fixture
def spied(monkeypatch):
    """Note what every group was made of, and what stands for it."""
    seen = []
    for kind in (MicroaggSemantic, MicroaggTopic, MicroaggSyntactic, MicroaggPlain):

        def spy(self, records, members, old=kind._representative):
            one, texts = old(self, records, members), records.texts
            own = [texts.query.decode(records.query[records.user == m]).to_list() for m in members]
            shown = texts.query.decode(one.query).to_list()
            seen.append((own, shown, texts.category.decode(one.category).to_list()))
            return one

        monkeypatch.setattr(kind, "_representative", spy)
    return seen


# The thesis's own examples


def names(tree, *queries):
    concepts = concept_lexicon(tree)
    return [[concepts.tree.names[c] for c in own] for own in meant(pl.Series(queries), concepts)]


def test_examples_1_and_2_phrases_and_their_categories(tree):
    """Each noun phrase counts by itself, and T(c) is a category with all above it."""
    found = names(tree, "diving in the Mediterranean", "windsurfing in the Mediterranean")
    assert found == [["Swimming and Diving", "Mediterranean"], ["Windsurfing", "Mediterranean"]]
    known = concept_lexicon(tree).tree
    above = {
        known.names[c]: {known.names[g] for g in naive_mdav.generalisations(known.parent.tolist(), c)}
        for c in range(1, known.size)
    }
    assert above["Swimming and Diving"] == {"Sports", "Water Sports", "Swimming and Diving"}
    assert above["Mediterranean"] == {"Regional", "Europe", "Regions", "Mediterranean"}
    assert above["Windsurfing"] == {"Sports", "Water Sports", "Windsurfing"}


def test_more_words_than_a_category_has_are_dropped_from_the_left(tree):
    assert names(tree, "exciting water sports", "this water sport") == [["Water Sports"], ["Water Sports"]]


def test_example_3_the_middle_and_what_is_half_away(tree):
    concepts = concept_lexicon(tree)
    (node,) = meant(pl.Series(["diving, diving, windsurfing"]), concepts)
    settings = MicroaggSemantic.Settings(k=2, taxonomy=str(tree))
    method = MicroaggSemantic(settings, b"k" * 32, Dictionaries())
    assert method.distance_to_centroid(np.array(node)).tolist() == [0.0, 0.0, 0.5]


def test_example_4_the_distance_of_two_people(tree, monkeypatch):
    seen = []
    real = tree_distance.People.matrix

    def spy(self, *rest, **more):
        seen.append(real(self, *rest, **more) / tree_distance.UNIT)
        return real(self, *rest, **more)

    monkeypatch.setattr(tree_distance.People, "matrix", spy)
    log = made(
        ("a", "diving in the Mediterranean"),
        ("b", "windsurfing in the Mediterranean"),
        ("b", "mediterranean"),
    )
    protect(log, k=2, taxonomy=tree)
    assert seen[0][0, 1] == seen[0][1, 0] == pytest.approx(0.2, abs=1e-8)


# Quotas, the middle, and the categories that stand for a group


@given(counts=st.lists(st.integers(1, 60), min_size=1, max_size=12))
def test_quotas_are_largest_remainders_of_the_mean(counts):
    size = len(counts)
    found = member_quotas(counts, range(size))
    assert sum(found) == int(Fraction(sum(counts), size) + Fraction(1, 2))
    assert all(0 <= q - n // size <= 1 for q, n in zip(found, counts, strict=True))
    rest = [n % size for n in counts]
    up = [r for r, q, n in zip(rest, found, counts, strict=True) if q > n // size]
    down = [r for r, q, n in zip(rest, found, counts, strict=True) if q == n // size]
    assert not up or not down or min(up) >= max(down)
    assert sum(found) >= 1


@pytest.mark.parametrize("k", [2, 3, 7])
def test_categories_of_a_history_are_those_of_the_naive_twin(tree, small, spied, k):
    release = protect(small, k=k, taxonomy=tree)
    concepts = concept_lexicon(tree)
    parent, paths = concepts.tree.parent.tolist(), concepts.tree.paths
    for own, _, categories in spied:
        people = [[c for q in meant(pl.Series(queries), concepts) for c in q] for queries in own]
        assert Counter(categories) == Counter(paths[c] for c in naive_groups.history(parent, people))
    assert len(spied) == len([own for own, _, _ in spied if len(own) >= k]) > 1
    assert sum(len(own) * len(shown) for own, shown, _ in spied) == len(release.log)


@given(people=st.lists(st.lists(st.sampled_from(WORDS[:-1]), min_size=1, max_size=6), min_size=4, max_size=9))
def test_any_small_log_gives_the_naive_twin_s_histories(tree, people):
    log = made(*((f"p{n}", query) for n, own in enumerate(people) for query in own))
    concepts, seen = concept_lexicon(tree), []
    parent, paths = concepts.tree.parent.tolist(), concepts.tree.paths
    with pytest.MonkeyPatch.context() as patch:
        old = MicroaggSemantic._representative

        def spy(self, records, members):
            one, texts = old(self, records, members), records.texts
            own = [texts.query.decode(records.query[records.user == m]) for m in members]
            seen.append((own, texts.category.decode(one.category).to_list()))
            return one

        patch.setattr(MicroaggSemantic, "_representative", spy)
        protect(log, k=2, taxonomy=tree)
    assert sum(len(own) for own, _ in seen) == len(people)
    for own, categories in seen:
        theirs = [[c for q in meant(queries, concepts) for c in q] for queries in own]
        assert Counter(categories) == Counter(paths[c] for c in naive_groups.history(parent, theirs))


# Picked queries


@pytest.mark.parametrize("asked_by", [1, 2, 12, 1000])
def test_a_picked_query_is_of_the_category_and_of_enough_people(tree, small, asked_by):
    concepts = concept_lexicon(tree)
    paths, called = concepts.tree.paths, concepts.tree.names
    release = protect(small, taxonomy=tree, asked_by=asked_by)
    askers = dict(small.frame.group_by("query").agg(pl.col("user").n_unique()).iter_rows())
    by_name = 0
    for query, category in release.log.frame.select("query", "category").iter_rows():
        node = paths.index(category)
        fits = [q for q, n in askers.items() if n >= asked_by and node in meant(pl.Series([q]), concepts)[0]]
        if fits:
            assert query in fits
        else:
            assert query == called[node].lower()
            by_name += 1
    assert by_name == 0 if asked_by == 1 else by_name == len(release.log) if asked_by == 1000 else True


def test_picks_differ_with_the_key_and_are_not_always_the_person_s_own(tree, small):
    first, second = (protect(small, taxonomy=tree, seed=seed).log.frame["query"].to_list() for seed in (1, 2))
    assert sorted(first) != sorted(second)
    picked = set(first)
    assert {"diving", "swimming"} <= picked or {"chicken pox", "varicella"} <= picked


def test_every_suitable_query_is_picked_about_as_often():
    """Two queries of one category; 400 groups of two. Chance of a false alarm below 1e-9 (6 sigma)."""
    log = made(*((f"u{n}", ("dog", "dogs")[n % 2]) for n in range(800)))
    release = protect(log, k=2)
    count = Counter(query for history in groups(release).elements() for (query, *_), _ in history)
    share = protect(log, k=2).log.frame.group_by("query").len()
    assert set(share["query"]) == {"dog", "dogs"}
    assert abs(count["dog"] / 800 - 0.5) < 6 * 0.5 / 400**0.5


# Plain


@pytest.mark.parametrize("method", ["microagg-plain", "microagg-syntactic"])
def test_histories_of_texts_keep_how_often_each_person_asked_what(small, spied, method):
    protect(small, method, k=4)
    assert len(spied) > 2
    for own, shown, _ in spied:
        total = int(Fraction(sum(map(len, own)), len(own)) + Fraction(1, 2))
        assert len(shown) == total
        share = Counter()
        for queries in own:
            for query, count in Counter(queries).items():
                share[query] += Fraction(total * count, sum(map(len, own)))
        assert set(shown) <= set(share)
        askers = {query: sum(query in queries for queries in own) for query in share}
        assert all(abs(shown.count(query) - share[query]) < 2 * askers[query] for query in share)


def test_plain_groups_people_who_asked_the_same():
    log = made(*((f"a{n}", q) for n in range(3) for q in ("x", "y")), *((f"b{n}", "z") for n in range(3)))
    release = protect(log, "microagg-plain")
    found = {label: {row[0] for row in history} for label, history in histories(release).items()}
    assert all(found[f"a{n}"] <= {"x", "y"} and found[f"b{n}"] == {"z"} for n in range(3))


# What is promised


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("settings", [{}, {"labels": "fresh"}, {"time": "drop"}], ids=str)
@pytest.mark.parametrize("k", [2, 5, 20])
def test_all_columns_are_equal_for_all_of_a_group(log, method, settings, k):
    release = protect(log, method, k=k, **settings)
    sizes = groups(release).values()
    assert all(k <= size for size in sizes)
    assert sum(sizes) == 60 or method in BY_MEANING
    assert part(release)["audit"] == "kept"
    frame = release.log.frame
    emptied = method != "microagg-syntactic"
    assert [frame[name].null_count() == len(frame) for name in ("url", "rank")] == [emptied, emptied]
    if settings.get("time") == "drop":
        assert frame["time"].null_count() == len(frame)
    else:
        assert (frame["time"] == frame["time"].dt.truncate("1h")).all()
    assert frame["category"].null_count() == (0 if method in BY_MEANING else len(frame))
    same = set(frame["user"]) & set(log.frame["user"])
    assert bool(same) == (settings.get("labels") != "fresh")


@pytest.mark.parametrize("people", [6, 7, 11, 12, 14, 17])
def test_groups_have_k_to_2k_minus_1_people(spied, people):
    """Of k = 3; what stands for groups may be the same, so the groups themselves are looked at."""
    log = made(*((f"u{n}", f"{('dog', 'love', 'golf')[n % 3]}") for n in range(people)))
    for method in METHODS:
        spied.clear()
        protect(log, method)
        sizes = [len(own) for own, _, _ in spied]
        assert sum(sizes) == people
        assert all(3 <= size <= 5 for size in sizes)
        assert len(sizes) == people // 3


def test_topics_are_many_and_near_if_asked_for(tree, small):
    free = protect(small, taxonomy=tree)
    assert min(topics(history) for history in histories(free).values()) == 1
    kept = protect(small, taxonomy=tree, diversity=3)
    assert min(topics(history) for history in histories(kept).values()) >= 3
    assert [check["verdict"] for check in part(kept)["checks"]] == ["kept"] * 3
    assert len(groups(kept)) > 1
    near = protect(small, taxonomy=tree, closeness=0.2)
    rows = [(u, c.partition("/")[0]) for u, c in near.log.frame.select("user", "category").iter_rows()]
    assert not naive_groups.far(rows, Fraction(1, 5) + Fraction(1, 10**9))
    before = [(u, c.partition("/")[0]) for u, c in free.log.frame.select("user", "category").iter_rows()]
    assert naive_groups.far(before, Fraction(1, 5))
    assert [check["verdict"] for check in part(near)["checks"]] == ["kept"] * 3


def topics(history):
    """The first names of categories; the category is the last cell."""
    return len({row[-1].partition("/")[0] for row in history})


def test_more_topics_than_the_log_has_are_refused(tree):
    """A promise that cannot be kept is not made; one that nobody could see kept is not made either."""
    log = made(*((f"u{n}", "golf") for n in range(9)), category=pl.lit("Other"))
    with pytest.raises(QueryCloakError, match="needs the column `category`"):
        protect(made(*((f"u{n}", "golf") for n in range(9))), taxonomy=tree, diversity=2)
    with pytest.raises(
        ParameterError, match="`diversity` is 2, but even one history of all people has fewer"
    ):
        protect(log, taxonomy=tree, diversity=2)


# Odd logs


@pytest.mark.parametrize("method", METHODS)
def test_fewer_than_k_people_are_refused(method):
    with pytest.raises(ParameterError, match="`k` is 3, but the log has only 2 users") as caught:
        protect(made(("a", "dog"), ("b", "dog")), method)
    assert "the largest possible k is 2" in str(caught.value)


@pytest.mark.parametrize("method", METHODS)
def test_people_with_one_query(method):
    release = protect(made(*((f"u{n}", "dog") for n in range(7))), method)
    assert Counter(release.log.frame["user"]) == Counter(f"u{n}" for n in range(7))
    assert release.report.reasons[method] == {REPLACED: 7}


def test_people_with_nothing_mappable_are_dropped_and_counted():
    log = made(*((f"u{n}", "dog") for n in range(4)), ("v", "qzxv"), ("v", "wqkj"), ("u0", "qzxv"))
    release = protect(log)
    assert set(release.log.frame["user"]) == {f"u{n}" for n in range(4)}
    assert release.report.reasons["microagg-semantic"] == {UNMAPPED: 3, REPLACED: 4}
    assert set(protect(log, "microagg-plain").log.frame["user"]) == {*(f"u{n}" for n in range(4)), "v"}


@pytest.mark.parametrize(
    ("method", "unknown"), [("microagg-semantic", UNMAPPED), ("microagg-topic", NO_TOPIC)]
)
def test_too_few_people_with_something_mappable_show_nothing(method, unknown):
    log = made(("a", "dog"), ("b", "dog"), *((f"v{n}", "qzxv") for n in range(4)))
    release = protect(log, method)
    assert len(release.log) == 0
    reasons = {unknown: 4, "too few people have anything to go by": 2}
    assert release.report.reasons[method] == reasons


@pytest.mark.parametrize("method", METHODS)
def test_no_rows_no_time_and_empty_cells(method):
    assert len(qc.protect(made(), method, k=2, seed=3, allow_bad=True).log) == 0
    people = [(f"u{n}", "dog") for n in range(4)]
    for more in ([], [("u1", "")], [("u1", None)], [("u1", "🐕 \u202e")]):
        release = protect(made(*people, *more), method)
        assert release.log.frame.columns == ["row", "user", "query"]
        assert set(release.log.frame["user"]) == {f"u{n}" for n in range(4)}


@pytest.mark.parametrize("settings", [{"k": 1}, {"k": 2.5}, {"time": "keep"}, {"labels": "none"}], ids=str)
@pytest.mark.parametrize("kind", [MicroaggSemantic, MicroaggTopic, MicroaggSyntactic, MicroaggPlain])
def test_settings_that_cannot_be_are_refused(kind, settings):
    with pytest.raises(ParameterError):
        kind.Settings(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"diversity": 0},
        {"diversity": 17},
        {"closeness": -0.1},
        {"closeness": 1.1},
        {"asked_by": 0},
        {"mapper": "x"},
    ],
    ids=str,
)
def test_settings_of_topics_have_bounds(settings):
    with pytest.raises(ParameterError):
        MicroaggSemantic.Settings(**settings)


@pytest.mark.parametrize("method", BY_MEANING)
def test_a_missing_taxonomy_is_said_so(method):
    with pytest.raises(DataError, match="taxonomy file cannot be opened"):
        protect(made(*((f"u{n}", "dog") for n in range(4))), method, taxonomy="/nowhere/tree.csv")


@pytest.mark.nlp
@pytest.mark.parametrize("method", BY_MEANING)
def test_phrases_of_a_parser(log, method):
    release = protect(log.with_frame(log.frame.head(400)), method, mapper="linguistic")
    assert len(release.log) > 0
    assert part(release)["audit"] == "kept"


# The same release, however the log comes


@pytest.mark.parametrize("settings", [{}, {"diversity": 4, "closeness": 0.3, "asked_by": 2}], ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_neither_pieces_nor_the_order_of_the_file_change_a_release(log, method, settings):
    if method != "microagg-semantic":
        settings = {name: value for name, value in settings.items() if name != "asked_by"}
    whole = protect(log, method, **settings)
    assert whole.log.frame.equals(protect(log, method, piece_rows=97, **settings).log.frame)
    mixed = log.frame.sample(fraction=1, shuffle=True, seed=9)
    dense_ids = mixed.drop("row").with_row_index("row").cast({"row": pl.Int64})
    for frame in (mixed, dense_ids):
        again = protect(log.with_frame(frame), method, **settings)
        assert groups(again) == groups(whole)
        assert histories(again) == histories(whole)


def test_rules_may_come_first_and_what_hides_people_may_not(log):
    for method in METHODS:
        release = qc.protect(log, "rules", method, seed=1)
        assert [stage["method"] for stage in release.certificate["methods"]] == ["rules", method]
        assert release.certificate["audit"] == "kept"
        assert not release.log.frame["query"].str.contains(r"\d").any()
        for other in ("cohort", "swap", "frequent-only"):
            with pytest.raises(Refused):
                qc.protect(log, other, method, seed=1)


# What other methods withheld, and what the file's order may not decide


@pytest.mark.parametrize("method", METHODS)
def test_what_came_in_blank_does_not_leave(method):
    """`z-anonymity` empties rank and url where it shows a category in place of a rare query."""
    rows = [(f"u{n}", f"secret{n}" if n % 2 else "dog") for n in range(12)]
    log = made(
        *rows,
        time=pl.Series(range(12)).cast(pl.Datetime("us", "UTC")),
        rank=pl.Series([n if n % 2 else 50 for n in range(12)]),
        url=pl.Series([f"http://www.host{n}.example" if n % 2 else None for n in range(12)]),
        category=pl.lit("Health/Flu"),
    )
    release = qc.protect(log, "z-anonymity", method, seed=1, **{"z-anonymity.z": 2, f"{method}.k": 2})
    hosts = [url for url in release.log.frame["url"].to_list() if url]
    assert not [url for url in hosts if "host" in url]
    assert set(release.log.frame["rank"].drop_nulls()) <= {50}


@pytest.mark.parametrize("method", [name for name in METHODS if name != "microagg-semantic"])
def test_topics_that_are_equally_common_are_not_taken_by_the_order_of_the_file(method):
    topics = ("Arts", "Health", "Games", "News")
    rows = [(f"u{n}", f"dog {n} {i}") for n in range(8) for i in range(3)]
    category = pl.Series(
        [topics[(n * 3 + i) // 2 % 4] if i == 2 else "Arts" for n in range(8) for i in range(3)]
    )
    times = pl.Series(np.arange(24) * 60_000_000).cast(pl.Datetime("us", "UTC"))
    log = made(*rows, time=times, category=category)
    found = [
        groups(
            protect(
                log.with_frame(log.frame.sample(fraction=1, shuffle=True, seed=seed)), method, diversity=2
            )
        )
        for seed in range(4)
    ]
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("method", METHODS)
def test_a_column_to_keep_is_refused(method, small):
    with pytest.raises(Refused, match="come from no row of the log"):
        qc.protect(small, method, seed=1, keep=["session"])


# What attackers find


@pytest.fixture(scope="module")
def larger():
    return made_up(300, seed=7)


@pytest.mark.parametrize(
    ("method", "on"),
    [
        ("microagg-semantic", "queries"),
        ("microagg-semantic", "categories"),
        ("microagg-topic", "queries"),
        ("microagg-topic", "categories"),
        ("microagg-syntactic", "queries"),
        ("microagg-plain", "queries"),
    ],
)
def test_who_knows_whole_histories_is_right_one_time_in_k_at_most(method, on):
    """Acceptance 3. No luck is in it: labels of a group are equally good, and t of them count 1/t."""
    known = made_up(300, seed=7, categories=on == "categories")
    release = protect(known, method, k=5)
    (found,) = qc.attack(release, known, "link-overlap", seed=1, on=on)
    assert found.n == 300
    assert 0 < found.low <= found.success <= 1 / 5


@pytest.mark.parametrize("method", METHODS)
def test_attribution_has_nothing_to_find(larger, method):
    release = protect(larger, method, k=5)
    for name in ("link-random", "link-frequent", "link-profile"):
        (found,) = qc.attack(release, larger, name, seed=1)
        assert found.game == "attribution"
        assert found.not_applicable
        assert found.success is None


def test_errors_name_no_query_and_no_person(tree):
    log = made(*(("zanzibar", "walrus") for _ in range(3)))
    for method in METHODS:
        with pytest.raises(QueryCloakError) as caught:
            protect(log, method)
        assert not {"zanzibar", "walrus"} & set(str(caught.value).replace("`", " ").split())


@pytest.mark.parametrize("kind", [MicroaggSemantic, MicroaggTopic])
def test_a_missing_parser_is_refused_before_the_log_is_read(kind, monkeypatch):
    monkeypatch.setattr(noun_phrases, "MODEL", "no_such_model")
    method = kind(kind.Settings(mapper="linguistic"), b"k" * 32, Dictionaries())
    with pytest.raises(MissingExtra):
        method.check_ready()
    kind(kind.Settings(), b"k" * 32, Dictionaries()).check_ready()
