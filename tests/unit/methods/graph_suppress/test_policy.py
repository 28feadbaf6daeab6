"""`graph-suppress` removes what the steps of section 3.2 remove, whole queries only, and counts them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import querycloak as qc
from querycloak.dictionary import fingerprint
from querycloak.errors import DataError, ParameterError, Refused
from querycloak.keys import derive
from querycloak.log import Log
from querycloak.methods.graph_suppress import FEW_DOCUMENTS, FEW_SITES, SHARED, TARGETED, GraphSuppress
from querycloak.testing.conformance import KEY, Harness
from querycloak.testing.strategies import frame_of
from tests.reference import naive_graph_suppress as naive
from tests.support.logs import made_up

QUERIES = ("rain", "blue shoes", "shop shoes", "www.shop.example", "mail", "http://mail.example/in", "maps")
URLS = (
    None,
    "http://www.shop.example",
    "http://shop.example/blue",
    "http://mail.example/in",
    "http://www.mail.example/out",
    "http://en.maps.example/a",
)
NOON = datetime(2006, 3, 1, 12, tzinfo=UTC)
ROWS = st.lists(st.tuples(st.sampled_from(QUERIES), st.sampled_from(URLS)), max_size=25)
OFF = {"k": 0, "targeted": "off", "sites": 0}


def frame(rows, users="abc"):
    """Make a log of (query, url) rows, a minute apart."""
    return frame_of(
        [
            {"user": users[n % len(users)], "query": q, "time": NOON + timedelta(minutes=n), "url": url}
            for n, (q, url) in enumerate(rows)
        ]
    )


def protect(rows, *methods, **settings):
    return qc.protect(Log(frame(rows)), *(methods or ("graph-suppress",)), seed=1, **settings)


def left(release):
    return set(release.log.frame["query"])


def assert_as_naive(rows, settings):
    chosen = GraphSuppress.Settings(**settings)
    prints = fingerprint(QUERIES, derive(KEY, "ties of queries")).tolist()
    expected = naive.remaining(rows, **settings, rank=dict(zip(QUERIES, prints, strict=True)))
    shown = Harness(GraphSuppress, chosen, frame(rows)).run()
    assert sorted(shown.row.tolist()) == [n for n, (query, _) in enumerate(rows) if query in expected]


@given(
    rows=ROWS,
    k=st.integers(0, 3),
    targeted=st.sampled_from(["off", "host", "name"]),
    sites=st.integers(0, 2),
    density=st.sampled_from(["greedy", "all"]),
)
def test_it_leaves_what_sets_and_loops_leave(rows, k, targeted, sites, density):
    assert_as_naive(rows, {"k": k, "targeted": targeted, "sites": sites, "density": density})


@given(rows=ROWS, sites=st.integers(1, 3))
def test_it_leaves_the_same_with_density_off(rows, sites):
    assert_as_naive(rows, OFF | {"sites": sites, "density": "off"})


@given(rows=ROWS)
def test_of_equally_connected_queries_the_key_chooses(rows):
    assert_as_naive(rows, OFF | {"density": "greedy"})


def test_one_of_two_queries_with_a_common_page_can_stay():
    rows = [("rain", URLS[1]), ("maps", URLS[1]), ("mail", URLS[3]), ("rain", None)]
    assert len(left(protect(rows, **OFF))) == 2
    assert left(protect(rows, **OFF, density="all")) == {"mail"}
    assert left(protect(rows, **OFF | {"k": 1}, density="off")) == {"rain", "maps", "mail"}


def test_the_most_connected_query_goes_first():
    rows = [("rain", URLS[1]), ("rain", URLS[2]), ("maps", URLS[1]), ("mail", URLS[2])]
    assert left(protect(rows, **OFF)) == {"maps", "mail"}


def test_every_click_of_a_search_counts_not_only_the_first():
    """Three rows of one search: same person, query and time."""
    search = {"user": "a", "query": "rain", "time": NOON}
    other = {"user": "b", "query": "maps", "time": NOON, "url": URLS[3]}
    log = Log(frame_of([search | {"url": url} for url in (URLS[1], URLS[3], URLS[5])] + [other]))
    assert left(qc.protect(log, "graph-suppress", k=3, sites=3, density="off")) == {"rain"}
    assert not len(qc.protect(log, "graph-suppress", **OFF, density="all").log)


def test_each_step_counts_the_rows_that_it_withheld():
    rows = [
        ("mail", None),
        ("www.shop.example", URLS[1]), ("www.shop.example", URLS[3]),
        ("blue shoes", URLS[1]), ("blue shoes", URLS[2]), ("blue shoes", None),
        ("rain", URLS[3]), ("rain", URLS[5]),
        ("maps", URLS[5]), ("maps", URLS[2]), ("maps", URLS[1]), ("maps", URLS[1]),
    ]  # fmt: skip
    release = protect(rows, density="all")
    counts = {FEW_DOCUMENTS: 1, TARGETED: 2, FEW_SITES: 3, SHARED: 6}
    assert release.report.reasons == {"graph-suppress": counts}
    removed = {FEW_DOCUMENTS: 1, TARGETED: 1, FEW_SITES: 1, SHARED: 2}
    assert release.report.explanation == {
        "graph-suppress": {"different_queries": "5", "removed_of_these": removed}
    }


def test_nothing_is_emptied_or_changed():
    log = made_up(users=40, seed=3)
    release = qc.protect(log, "graph-suppress", k=1, sites=0, labels="keep", source="test")
    before = log.frame.filter(pl.col("query").is_in(release.log.frame["query"].unique().to_list()))
    names = ["user", "query", "time", "rank", "url"]
    order = {"by": names, "nulls_last": True}
    assert 0 < len(release.log) < len(log)
    assert release.log.frame.select(names).sort(**order).equals(before.select(names).sort(**order))


def test_fresh_labels_are_pseudonyms_that_keep_people_apart():
    log = made_up(users=40, seed=3)
    kept = qc.protect(log, "graph-suppress", k=1, sites=0, density="all", seed=1)
    fresh = qc.protect(log, "graph-suppress", k=1, sites=0, density="all", labels="fresh", seed=1)
    assert left(kept) == left(fresh)
    assert kept.log.frame["user"].n_unique() == fresh.log.frame["user"].n_unique()
    assert not set(fresh.log.frame["user"]) & set(log.frame["user"])


def test_the_order_of_the_file_decides_no_tie():
    log = made_up(users=60, seed=3)
    turned = log.with_frame(log.frame.reverse().with_columns(row=pl.int_range(len(log), dtype=pl.Int64)))
    one, other = (qc.protect(it, "graph-suppress", k=0, sites=0, seed=1) for it in (log, turned))
    assert left(one) == left(other)


def test_pieces_on_disk_give_the_same():
    log = made_up(users=60, seed=3)
    whole = qc.protect(log, "graph-suppress", seed=1)
    parts = qc.protect(log, "graph-suppress", seed=1, piece_rows=500)
    assert whole.log.frame.equals(parts.log.frame)


# Odd logs


def test_a_log_without_urls_is_refused():
    log = Log(frame([("rain", None)]).drop("url"))
    with pytest.raises(DataError, match="needs the column `url`"):
        qc.protect(log, "graph-suppress")


def test_searches_without_clicks_lead_to_too_few_pages():
    rows = [("rain", None), ("maps", None), ("rain", None)]
    release = protect(rows)
    assert not len(release.log)
    assert release.report.reasons == {"graph-suppress": {FEW_DOCUMENTS: 3}}
    assert left(protect(rows, **OFF)) == {"rain", "maps"}


def test_an_empty_log_gives_an_empty_release():
    release = protect([], allow_bad=True)
    assert not len(release.log)
    assert release.report.reasons == {"graph-suppress": {}}


def test_urls_that_an_earlier_method_emptied_do_not_count():
    """`z-anonymity` shows a category in place of a rare query, without its click."""
    clicks = [("rain", URLS[1]), ("maps", URLS[1]), ("mail", URLS[1]), ("mail", URLS[1])]
    topics = frame(clicks).with_columns(category=pl.lit("Home"))
    settings = {"z": 2, "window": 3600, **{f"graph-suppress.{name}": value for name, value in OFF.items()}}
    release = qc.protect(Log(topics), "z-anonymity", "graph-suppress", density="all", **settings)
    assert left(release) == {"Home", "mail"}
    assert release.log.frame.drop_nulls("url")["query"].to_list() == ["mail"]


def test_settings_with_every_step_off_are_refused():
    with pytest.raises(ParameterError, match="every step is off"):
        GraphSuppress.Settings(**OFF, density="off")


# Beside other methods


@pytest.mark.parametrize("other", ["swap", "cohort", "frequent-only"])
def test_methods_that_move_or_empty_labels_are_refused(other):
    with pytest.raises(Refused, match="`graph-suppress` must know whose each record is"):
        protect([("rain", URLS[1])], other, "graph-suppress")


def test_rules_first():
    release = protect([("rain 7", URLS[1]), ("maps", URLS[1])], "rules", "graph-suppress", k=1, sites=0)
    assert left(release) == {"maps"}
    checks = release.certificate["methods"][1]["checks"]
    assert sorted(check["verdict"] for check in checks) == ["kept", "kept", "kept", "not checkable"]


def test_a_later_method_that_empties_urls_leaves_nothing_to_check():
    log = made_up(users=40, seed=3)
    release = qc.protect(log, "graph-suppress", "microagg-plain", **{"graph-suppress.k": 1})
    checks = release.certificate["methods"][0]["checks"]
    assert {check["verdict"] for check in checks} == {"not checkable"}
    assert "may have emptied" in checks[0]["detail"]
