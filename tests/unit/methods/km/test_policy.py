"""`km` against naive versions, the paper's examples, and what its settings promise."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import querycloak as qc
from querycloak.errors import DataError, ParameterError, Refused, UsageError
from querycloak.log import Log
from querycloak.methods.km import deletion, is_km_anonymous, supports
from querycloak.methods.km import kernel as combos
from querycloak.methods.km.deletion import DeletionRule, HistoryTerms
from tests.reference import naive_km
from tests.support.logs import made_up

HISTORIES = st.lists(st.sets(st.sampled_from("abcdefgh"), max_size=6), max_size=12)


def entries_of(histories, terms, owner=None):
    pairs = [(h, terms.index(term)) for h, history in enumerate(histories) for term in sorted(history)]
    history, term = (np.array([pair[i] for pair in pairs], np.int64) for i in range(2))
    rng = np.random.default_rng(5)
    tie = np.arange(len(terms)).astype(np.uint64)
    draw = rng.integers(0, 1 << 62, len(pairs)).astype(np.uint64)
    owner = history if owner is None else np.array(owner, np.int64)[history]
    return HistoryTerms(history, owner, term, np.ones(len(pairs), np.int64), tie, draw)


def left(histories, terms, outcome, entries):
    kept = [set() for _ in histories]
    for h, t in zip(entries.history[outcome.kept], entries.term[outcome.kept], strict=True):
        kept[h].add(terms[t])
    return kept


def deleted(histories, k, m, utility, **more):
    terms = sorted(utility)
    entries = entries_of(histories, terms)
    priority = np.array([float(utility[term]) for term in terms])
    outcome = DeletionRule(k, m, lambda now, seen: [priority], **more).run(entries)
    return left(histories, terms, outcome, entries)


@given(histories=HISTORIES, k=st.integers(2, 4), m=st.integers(1, 4), seed=st.integers(0, 99))
def test_the_sweep_is_the_naive_one(histories, k, m, seed):
    order = random.Random(seed).sample("abcdefgh", 8)
    rank = {term: place for place, term in enumerate(order)}
    kept = deleted(histories, k, m, {term: -place for term, place in rank.items()})
    assert kept == naive_km.swept(histories, k, m, rank)


@given(
    histories=HISTORIES, k=st.integers(2, 4), m=st.integers(1, 4), target=st.sampled_from(deletion.TARGETS)
)
def test_every_target_leaves_a_km_anonymous_log(histories, k, m, target):
    terms = sorted("abcdefgh")
    entries = entries_of(histories, terms)
    values = np.arange(8.0)
    kept = left(histories, terms, deletion.greedy(target, k, m, entries, values), entries)
    assert all(new <= old for new, old in zip(kept, histories, strict=True))
    assert is_km_anonymous(kept, k, m)


@given(
    histories=HISTORIES,
    owners=st.lists(st.integers(0, 4), min_size=12, max_size=12),
    k=st.integers(2, 4),
    m=st.integers(1, 3),
    target=st.sampled_from(["random", "logsize", "fis", "users"]),
)
def test_a_person_with_several_histories_counts_once(histories, owners, k, m, target):
    terms, owner = sorted("abcdefgh"), sorted(owners)
    entries = entries_of(histories, terms, owner)
    kept = left(histories, terms, deletion.greedy(target, k, m, entries, None), entries)
    for combination in {c for history in kept for c in supports([history], m)}:
        holders = {owner[h] for h, history in enumerate(kept) if set(combination) <= history}
        assert len(holders) >= k


def test_a_pair_that_one_person_has_in_several_histories_is_of_one_person():
    histories, owner = [{"a", "b"}, {"a", "b"}, {"a"}, {"b"}], [0, 0, 1, 1]
    entries = entries_of(histories, ["a", "b"], owner)
    kept = left(histories, ["a", "b"], deletion.greedy("logsize", 2, 2, entries, None), entries)
    assert {"a", "b"} not in kept


@given(histories=HISTORIES, k=st.integers(2, 4), m=st.integers(1, 3))
def test_what_is_anonymous_already_stays_as_it_is(histories, k, m):
    once = deleted(histories, k, m, dict.fromkeys("abcdefgh", 1))
    assert deleted(once, k, m, dict.fromkeys("abcdefgh", 1)) == once


@given(histories=HISTORIES, k=st.integers(2, 4), m=st.integers(1, 3), seed=st.integers(0, 9))
def test_the_order_of_histories_makes_no_difference(histories, k, m, seed):
    utility = {term: place for place, term in enumerate("abcdefgh")}
    place = random.Random(seed).sample(range(len(histories)), len(histories))
    kept = deleted(histories, k, m, utility)
    assert deleted([histories[i] for i in place], k, m, utility) == [kept[i] for i in place]


def test_ours_keeps_no_less_than_algorithm_1_on_average():
    # 60 made-up logs with a fixed seed: 0.6 % more than Algorithm 1 with the same utilities
    rng = random.Random(4)
    ours = theirs = 0.0
    for _ in range(60):
        histories = [set(rng.sample("abcdefgh", rng.randrange(1, 6))) for _ in range(12)]
        utility = {term: rng.random() for term in "abcdefgh"}
        ours += sum(utility[t] for h in deleted(histories, 2, 2, utility) for t in h)
        theirs += sum(utility[t] for h in naive_km.algorithm1(histories, 2, 2, utility) for t in h)
    assert ours >= theirs


@given(histories=HISTORIES, k=st.integers(2, 3))
def test_a_look_counts_frequent_combinations_by_term(histories, k):
    terms = sorted("abcdefgh")
    entries = entries_of(histories, terms)
    seen = combos.delete_rare_combinations(
        entries.starts(), entries.term, entries.person, 8, k, 3, np.ones(8, np.uint8), count_only=True
    )
    assert seen.kept.all()
    counts = supports(histories, 3)
    for size in (2, 3):
        expected = [sum(len(c) == size and n >= k and term in c for c, n in counts.items()) for term in terms]
        assert seen.frequent[size].tolist() == expected


@given(histories=HISTORIES, k=st.integers(2, 4), m=st.integers(1, 4))
def test_who_cares_for_users_loses_nobody_with_a_term_that_stays(histories, k, m):
    terms = sorted("abcdefgh")
    entries = entries_of(histories, terms)
    outcome = deletion.greedy("users", k, m, entries, None)
    kept = left(histories, terms, outcome, entries)
    stays = set().union(*kept)
    assert all(new or not old & stays for new, old in zip(kept, histories, strict=True))


def test_supports_are_those_of_table_1():
    people = (
        [["georgia"]] * 4
        + [["arnold", "georgia"]] * 2
        + [["lilburn", "georgia"], ["arnold", "lilburn", "georgia"]]
    )
    found = supports(people, 3)
    assert found["georgia",] == 8
    assert found["arnold", "georgia"] == 3
    assert found["arnold", "lilburn"] == found["arnold", "georgia", "lilburn"] == 1
    assert is_km_anonymous(people, 2, 1)
    assert not is_km_anonymous(people, 2, 2)


SEVEN = [set("abc"), set("abd"), set("bcd")]
EIGHT = [*SEVEN, set("ace")]
UTILITY = {"a": 1.0, "b": 1.1, "c": 1.2, "d": 1.3, "e": 1.4}


def test_example_7_both_variants_are_anonymous_and_bids_decide():
    assert is_km_anonymous([set("ab"), set("ab"), set("b")], 2, 2)
    assert is_km_anonymous([set("bc"), set("b"), set("bc")], 2, 2)
    assert deleted(SEVEN, 2, 2, {"a": 9, "b": 5, "c": 1, "d": 1}) == [set("ab"), set("ab"), set("b")]
    assert deleted(SEVEN, 2, 2, {"a": 1, "b": 5, "c": 9, "d": 1}) == [set("bc"), set("b"), set("bc")]


def test_example_8_both_variants_are_anonymous():
    first, second = [set("c"), set("bd"), set("bd"), set("c")], [set("abc"), set("ab"), set("bc"), set("ac")]
    for variant, priority in ((first, 7.2), (second, 9.9)):
        assert is_km_anonymous(variant, 2, 2)
        assert sum(UTILITY[term] for history in variant for term in history) == pytest.approx(priority)


def test_example_9_the_frequent_sets():
    frequent = {c for c, n in supports(SEVEN, 2).items() if n >= 2}
    assert {("a", "b"), ("b", "c"), ("b", "d")} == {c for c in frequent if len(c) == 2}


TABLE_4 = {
    3: {"eugene": 4, "chicago": 2, "smith": 2},
    2: {"eugene": 9, "chicago": 4, "smith": 4},
    1: {"eugene": 9, "chicago": 6, "smith": 4},
}


def test_example_10_and_table_4_the_rarest_in_frequent_sets_goes():
    names = ["eugene", "chicago", "smith"]
    assert naive_km.fis_victim(names, TABLE_4) == ["smith"]
    frequent = np.zeros((5, 3), np.int64)
    for size in (2, 3):
        frequent[size] = [TABLE_4[size][name] for name in names]
    history = np.concatenate([np.arange(TABLE_4[1][name]) for name in names])
    term = np.repeat(np.arange(3), [TABLE_4[1][name] for name in names])
    order = np.lexsort((term, history))
    nothing = {"tie": np.zeros(3, np.uint64), "draw": np.zeros(19, np.uint64)}
    now = HistoryTerms(history[order], history[order], term[order], np.ones(19, np.int64), **nothing)
    seen = combos.SweepResult(np.ones(19, np.bool_), np.zeros(5, np.int64), frequent)
    priority = deletion.rule_for("fis", 2, 3, now, None).priority(now, seen)
    order = np.lexsort(tuple(-part for part in reversed(priority)))
    assert [names[i] for i in order] == ["eugene", "chicago", "smith"]


def log_of(*records):
    """Make a log of (user, query) or (user, query, minute) or (user, query, minute, url)."""
    rows = [(*record, *(0, None)[len(record) - 2 :]) for record in records]
    time = pl.Series([minute * 60_000_000 for _, _, minute, _ in rows], dtype=pl.Datetime("us", "UTC"))
    columns = {name: [row[i] for row in rows] for name, i in (("user", 0), ("query", 1), ("url", 3))}
    frame = pl.DataFrame(columns, schema_overrides={"url": pl.String}).with_columns(time=time)
    return Log(frame.with_row_index("row").cast({"row": pl.Int64}))


def shown(release, *names):
    return sorted(release.log.frame.select(*names).rows(), key=str)


def test_released_queries_keep_their_order_and_lose_what_is_rare():
    log = log_of(("a", "Cheap flights, Lilburn"), ("b", "flights cheap"), ("c", "cheap cheap flights"))
    release = qc.protect(log, "km", k=2, seed=1, labels="keep", source="test")
    assert shown(release, "user", "query") == [
        ("a", "cheap flights"),
        ("b", "flights cheap"),
        ("c", "cheap cheap flights"),
    ]


def test_an_emptied_query_is_dropped_and_counted():
    log = log_of(("a", "one two"), ("b", "one two"), ("b", "three"), ("a", "!!"))
    release = qc.protect(log, "km", k=2, seed=1)
    assert release.log.frame.height == 2
    assert release.report.reasons == {"km": {"no term is left": 2}}


def test_terms_are_split_at_everything_but_letters_and_digits_of_any_script():
    latin = [("a", "Ad-Placement Größe 2½"), ("b", "ad placement größe_2½")]
    log = log_of(*latin, ("c", "слово/слово"), ("d", "СЛОВО"))
    kept = {query for (query,) in shown(qc.protect(log, "km", k=2, seed=1), "query")}
    assert kept == {"ad placement größe 2½", "слово слово", "слово"}


def test_other_columns_are_emptied_and_times_are_coarse():
    log = log_of(("a", "x y", 61, "http://p.com"), ("b", "x y", 62, "http://q.com"))
    frame = qc.protect(
        Log(log.frame.with_columns(rank=1, category=pl.lit("Arts"))), "km", k=2, seed=1
    ).log.frame
    assert frame["time"].dt.minute().to_list() == [0, 0]
    assert {name: frame[name].null_count() for name in ("rank", "url", "category")} == dict.fromkeys(
        ("rank", "url", "category"), 2
    )


def test_words_of_pages_count_as_terms_and_a_page_stays_whole_or_not_at_all():
    log = log_of(
        ("a", "x", 0, "http://p.com/q"),
        ("b", "x", 0, "http://p.com/q"),
        ("b", "x", 0, "http://p.com/rare"),
        ("c", "x"),
    )
    release = qc.protect(log, "km", k=2, seed=1, urls="terms", labels="keep", source="test")
    urls = shown(release, "user", "url")
    assert urls.count(("a", "http://p.com/q")) == urls.count(("b", "http://p.com/q")) == 1
    assert ("b", "http://p.com/rare") not in urls
    assert len(urls) == 4


SPLIT = [("u", "a b", 0), ("u", "c d", 3000)] + [
    (f"{pair}{n}", " ".join(pair), 10 * n) for pair in ("ab", "cd") for n in range(3)
]


def test_section_5_6_a_split_history_keeps_what_a_whole_one_cannot():
    whole = qc.protect(log_of(*SPLIT), "km", k=2, seed=1)
    assert sum(len(query.split()) for (query,) in shown(whole, "query")) == 14  # of 16: ab or cd of u goes
    for history in ("session", "day", 1):
        parts = qc.protect(log_of(*SPLIT), "km", k=2, seed=1, history=history)
        assert sum(len(query.split()) for (query,) in shown(parts, "query")) == 16
        assert parts.log.frame["user"].n_unique() == 8


def test_parts_carry_labels_that_link_to_nobody():
    release = qc.protect(log_of(*SPLIT), "km", k=2, seed=1, history="session")
    labels = release.log.frame["user"].to_list()
    assert not set(labels) & {user for user, _, _ in SPLIT}
    assert set(labels) != set(
        qc.protect(log_of(*SPLIT), "km", k=2, seed=2, history="session").log.frame["user"]
    )


def test_a_window_needs_its_own_k():
    day = 24 * 60
    log = log_of(
        ("a", "x", 0), ("b", "x", 1), ("c", "x", day), ("d", "y", day), ("e", "y", day), ("f", "x", 9 * day)
    )
    assert shown(qc.protect(log, "km", k=2, seed=1), "query") == [("x",)] * 4 + [("y",)] * 2
    assert shown(qc.protect(log, "km", k=2, seed=1, window="day"), "query") == [
        ("x",),
        ("x",),
        ("y",),
        ("y",),
    ]
    assert shown(qc.protect(log, "km", k=2, seed=1, window="week"), "query") == [("x",)] * 3 + [("y",)] * 2


def test_people_who_search_faster_than_people_do_are_left_out():
    log = log_of(*[("bot", "x", minute) for minute in range(5)], ("a", "x", 0), ("b", "x", 0))
    release = qc.protect(log, "km", k=2, seed=1, bots=4, labels="keep", source="test")
    assert shown(release, "user") == [("a",), ("b",)]
    assert release.report.reasons == {"km": {"a session with too many searches": 5}}
    assert qc.protect(log, "km", k=2, seed=1, bots=0).log.frame.height == 7


@pytest.fixture
def ads(tmp_path):
    path = tmp_path / "ads.csv"
    path.write_text(
        "term,bid,impressions,clicks,utility\na,9,1,1,1\nb,1,9,1,1\nc,1,1,9,1\nd,1,1,1,99\n", "utf-8"
    )
    return path


ONE_EACH = [(f"{x}{y}{n}", f"{x} {y}") for x, y in combinations("abcd", 2) for n in range(1)] + [
    (f"{x}{n}", x) for x in "abcd" for n in range(3)
]


@pytest.mark.parametrize(
    ("target", "best"), [("bid", "a"), ("impressions", "b"), ("clicks", "c"), ("file", "d")]
)
def test_a_target_keeps_what_it_is_after(ads, target, best):
    chosen = {"target": str(ads)} if target == "file" else {"target": target, "marketing": str(ads)}
    release = qc.protect(log_of(*ONE_EACH), "km", k=2, seed=1, **chosen)
    counts = release.log.frame["query"].value_counts()
    kept = dict(counts.rows())
    assert kept[best] == 6 == max(kept.values())
    assert "ads.csv" in str(release.certificate["methods"][0]["settings"])
    assert str(ads.parent) not in str(release.certificate)


def test_a_marketing_target_without_marketing_says_what_to_give():
    with pytest.raises(ParameterError) as told:
        qc.protect(log_of(("a", "x")), "km", target="clicks")
    assert "--marketing" in str(told.value.hint)
    with pytest.raises(ParameterError):
        qc.protect(log_of(("a", "x")), "km", target="clickz")


@pytest.mark.parametrize(
    ("content", "fault"), [("term,bid\n", "lacks impressions"), (None, "cannot be read")]
)
def test_a_bad_marketing_file_is_told(tmp_path, content, fault):
    path = tmp_path / "ads.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=fault):
        qc.protect(log_of(("a", "x"), ("b", "x")), "km", k=2, target="impressions", marketing=str(path))


def test_a_k_that_nobody_can_meet_says_what_could_be_met():
    log = log_of(("a", "x y"), ("b", "x"), ("c", "x z"), ("d", "z"))
    with pytest.raises(ParameterError) as told:
        qc.protect(log, "km", k=9)
    assert "only 4 users" in told.value.message
    assert "the largest k at which a term stays is 3" in told.value.hint


def test_parts_by_time_need_times():
    log = Log(log_of(("a", "x")).frame.drop("time"))
    with pytest.raises(DataError, match="time"):
        qc.protect(log, "km", history="session")


def test_an_explanation_names_no_term():
    log = log_of(("a", "x v"), ("b", "x y"), ("c", "y z"), ("d", "x z"))
    told = qc.protect(log, "km", k=2, seed=1).report.explanation["km"]
    assert set(told["deleted_by_size_of_combination"]) == {"1", "2"}
    assert told["target"] == "logsize"
    assert told.keys() == {"deleted_by_size_of_combination", "target", "rounds"}


def test_a_warm_start_goes_on_from_what_is_left():
    log = made_up(users=300, seed=4)
    pairs = qc.protect(log, "km", k=3, m=2, seed=1)
    triples = qc.protect(pairs.log, "km", k=3, m=3, seed=1)
    higher = qc.protect(pairs.log, "km", k=4, m=2, seed=1)
    assert 0 < triples.log.frame.height <= pairs.log.frame.height
    assert 0 < higher.log.frame.height <= pairs.log.frame.height


def test_parts_of_two_windows_share_no_label():
    day = 24 * 60
    rows = [(user, "x", minute) for user in "ab" for minute in (0, 1, day, day + 1)]
    for history in ("all", "session", 1):
        frame = qc.protect(log_of(*rows), "km", k=2, seed=1, window="day", history=history).log.frame
        days = frame.group_by("user").agg(pl.col("time").dt.date().n_unique().alias("days"))
        assert days["days"].to_list() == [1] * days.height
        assert days.height == (8 if history == 1 else 4)


@pytest.mark.parametrize("other", ["cohort", "swap", "frequent-only"])
def test_methods_that_hide_whose_records_are_do_not_go_with_it(other):
    log = made_up(users=30, seed=1, categories=True)
    with pytest.raises(Refused, match="must know whose"):
        qc.protect(log, other, "km", **{f"{other}.k": 2, "km.k": 2})


@pytest.mark.parametrize("chosen", [{"time": "drop"}, {}, {"window": "day"}])
def test_the_order_of_rows_tells_nothing_about_whose_parts_they_are(chosen):
    # equal times, sorted by author: by chance 3 of 119 neighbours share an author; 20 or more: 1e-9
    rows = [(f"u{n:02}", "x", 0) for n in range(30) for _ in range(4)]
    frame = log_of(*[(u, f"x{i % 4}", 0) for i, (u, _, _) in enumerate(rows)]).frame
    release = qc.protect(Log(frame), "km", k=2, seed=1, history=1, **chosen)
    authors = release.truth["original_user"].to_list()
    assert sum(a == b for a, b in pairwise(authors)) < 20


def test_clicks_of_one_search_stay_together_and_count_once():
    rows = [(user, "x", 0, f"http://p.com/{page}") for user in "abc" for page in "qrs"]
    release = qc.protect(log_of(*rows), "km", k=2, seed=1, history=2, urls="terms", bots=2)
    assert release.log.frame.height == 9
    assert release.log.frame["user"].n_unique() == 3


def test_marks_belong_to_their_letters():
    log = log_of(*[(user, "हिन्दी e\u0301te\u0301 İstanbul") for user in "ab"])
    kept = {query for (query,) in shown(qc.protect(log, "km", k=2, seed=1), "query")}
    assert kept == {"हिन्दी e\u0301te\u0301 i\u0307stanbul"}
