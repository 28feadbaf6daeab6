"""The audits of `graph-suppress` find planted faults, and judge URLs as the method does, by other code."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from querycloak.audits.evidence import Evidence
from querycloak.methods.graph_suppress.audit import audits, names, site
from querycloak.text.urls import names_target, site_of

A, B, C = "http://a.example/1", "http://a.example/2", "http://www.b.example"
ODD = st.text(st.sampled_from("abWw./:?#@ßſ \n"), max_size=14)
PARTS = st.lists(
    st.sampled_from(["http://", "www.", "shop", ".example", "/", "a@", ":80", "?q=", "ftp://", "SHOP", "x."]),
    max_size=6,
).map("".join)
TEXTS = ODD | PARTS


def evidence(rows, original=None, **more):
    schema = {"user": pl.String, "query": pl.String, "url": pl.String}
    shown = pl.DataFrame([("u", *row) for row in rows], schema=schema, orient="row")
    asked = original if original is not None else rows
    before = pl.DataFrame([("u", query) for query, _ in asked], schema=["user", "query"], orient="row")
    truth = pl.LazyFrame(schema={"released_row": pl.Int64})
    release = shown.with_row_index("released_row").cast({"released_row": pl.Int64}).lazy()
    return Evidence(release, before.with_row_index("row").lazy(), truth, **more)


def found(given, k=0, targeted="off", sites=0, *, disconnected=False):
    """Give what the first audit, of the one step that is on, says."""
    return audits(k, targeted, sites, disconnected=disconnected)[0](given)


@given(TEXTS)
@example("http://user@www.Shop.example:80/a?b")
def test_sites_are_those_of_the_method(url):
    assert site(url) == site_of(url)


@given(st.lists(TEXTS, max_size=3).map(" ".join), TEXTS, st.sampled_from(["host", "name"]))
@example("HTTP://WWW.SHOP.EXAMPLE/", "http://shop.example", "host")
@example("shop", "http://my.shop.example/", "name")
@example("http:", "http://", "host")
def test_targets_are_those_of_the_method(query, url, targeted):
    assert names(query, url, targeted) == names_target(query, url, targeted)


@pytest.mark.parametrize(
    ("rows", "settings", "wrong"),
    [
        ([("x", A), ("y", B), ("x", A)], {"disconnected": True}, ""),
        ([("x", A), ("y", B), ("z", A)], {"disconnected": True}, "2 rows of the release, the first: 0, 2"),
        ([("x", None), ("y", None)], {"disconnected": True}, ""),
        ([("x", A), ("x", B), ("x", None)], {"k": 2}, ""),
        ([("x", A), ("x", A), ("y", A), ("y", B)], {"k": 2}, "2 rows of the release, the first: 0, 1"),
        ([("x", None)], {"k": 1}, "1 row of the release, the first: 0"),
        ([("x", A), ("x", C)], {"sites": 2}, ""),
        ([("x", A), ("x", B)], {"sites": 2}, "2 rows of the release, the first: 0, 1"),
        ([("b.example", A), ("x", C)], {"targeted": "host"}, ""),
        ([("x", A), ("go b.example", C)], {"targeted": "host"}, "1 row of the release, the first: 1"),
        ([("go b", C)], {"targeted": "host"}, ""),
        ([("go b", C)], {"targeted": "name"}, "1 row of the release, the first: 0"),
    ],
)
def test_each_step_is_checked_on_the_release(rows, settings, wrong):
    finding = found(evidence(rows), **settings)
    assert finding.verdict == ("broken" if wrong else "kept")
    assert finding.detail.startswith(wrong)
    assert not any(word in finding.detail for word in ("example", "go b"))


def test_a_release_without_urls_shows_nothing():
    given = Evidence(pl.LazyFrame({"released_row": [0], "user": ["u"], "query": ["x"]}))
    assert found(given, disconnected=True).verdict == "not checkable"
    emptied = evidence([("x", None)], later=("km",))
    assert found(emptied, disconnected=True).verdict == "not checkable"


def test_later_removals_excuse_what_is_missing_but_not_what_is_there():
    given = evidence([("x", A), ("y", A)], later=("rules",))
    assert found(given, k=2).verdict == "not checkable"
    assert found(given, disconnected=True).verdict == "broken"


@pytest.mark.parametrize(("shown", "verdict"), [(3, "kept"), (2, "broken"), (4, "broken")])
def test_a_query_is_shown_with_all_of_its_rows(shown, verdict):
    given = evidence([("x", A)] * shown, original=[("x", A)] * 3 + [("y", B)])
    assert audits(0, "off", 0, disconnected=True)[-1](given).verdict == verdict


def test_a_query_that_nobody_asked_is_found_too():
    given = evidence([("x", A), ("new", B)], original=[("x", A)])
    finding = audits(0, "off", 0, disconnected=True)[-1](given)
    assert finding.detail.startswith("1 row of the release, the first: 1")


def test_rows_of_a_query_may_be_missing_beside_other_methods():
    for beside in ({"earlier": ("rules",)}, {"later": ("rules",)}):
        given = evidence([("x", A)], original=[("x", A), ("x", B)], **beside)
        assert audits(0, "off", 0, disconnected=True)[-1](given).verdict == "not checkable"
