"""The audit of every cell, rule by rule: each finds its fault, in one cell of the column that it is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import polars as pl
import pytest

import querycloak as qc
from querycloak.audits.cells import CATEGORY_OR_ABOVE, CellAudit, CellRules
from querycloak.audits.evidence import Evidence
from querycloak.engines.audit import cell_rules
from querycloak.protector import Labels, Traits

START = datetime(2006, 3, 1, 12, 30, 15, tzinfo=UTC)
HOUR, DAY = 3_600_000_000, 86_400_000_000
#: Rows of the original in the order of release; the last released row has none.
ORDER = [2, 0, 1, 3]
ORIGINAL = pl.DataFrame(
    {
        "row": range(4),
        "user": ["u1", "u2", "u1", "u3"],
        "query": ["kettle", "teapot", "cup", "saucer"],
        "time": [START + timedelta(hours=5 * row) for row in range(4)],
        "rank": [1, None, 3, 4],
        "url": ["a.example", None, "c.example", "d.example"],
        "category": ["Home", "Home", None, "Arts"],
    }
)
LABELS = {"u1": "p1", "u2": "p2", "u3": "p3"}
NEW_LABELS = CellRules(pseudonyms=True)


def released(**columns):
    """Return the release of all rows, with other columns in place of its own."""
    rows = ORIGINAL[ORDER].drop("row").with_row_index("released_row").cast({"released_row": pl.Int64})
    return rows.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def truth(**columns):
    users = ORIGINAL[ORDER]["user"]
    known = {"original_row": ORDER, "original_user": users}
    rows = pl.DataFrame(known | columns).with_row_index("released_row")
    return rows.cast({"released_row": pl.Int64, "original_row": pl.Int64})


def broken(rules, release, known=None, pieces=(4,)):
    """Return the columns with a fault, each with the fault."""
    audit = CellAudit(rules, ORIGINAL.lazy(), (truth() if known is None else known).lazy())
    start = 0
    for size in pieces:
        audit.add(release[start : start + size])
        start += size
    wrong = (found for found in audit.findings() if found.verdict == "broken")
    return [(found.check.split("`")[1], found.detail) for found in wrong]


def of_labels(release, known):
    """Return the fault of the labels."""
    audit = CellAudit(NEW_LABELS, ORIGINAL.lazy(), known.lazy())
    audit.add(release)
    (found,) = (one for one in audit.findings() if "pseudonym" in one.check)
    return found.detail


def changed(name, place=1):
    """Return a column of the release with another value in one cell."""
    values = released()[name].to_list()
    values[place] = {"time": START + timedelta(hours=1), "rank": 9}.get(name, "other")
    return {name: pl.Series(values, dtype=released().schema[name])}


def test_an_honest_release_has_no_fault():
    assert broken(CellRules(), released()) == []
    assert broken(CellRules(), released(), pieces=(1, 3)) == []


@pytest.mark.parametrize("pieces", [(4,), (2, 2), (1, 3)])
@pytest.mark.parametrize("name", ["user", "time", "rank", "url", "category"])
def test_one_other_cell_is_found_in_any_piece(name, pieces):
    ((column, fault),) = broken(CellRules(), released(**changed(name)), pieces=pieces)
    assert column == name
    assert fault.startswith("1 row")


@pytest.mark.parametrize("name", ["user", "time", "rank", "url", "category"])
def test_a_value_in_a_column_that_must_be_empty_is_found(name):
    rules = CellRules(empty=frozenset({name}))
    nothing = pl.Series([None] * 4, dtype=released().schema[name])
    assert broken(rules, released(**{name: nothing})) == []
    one = released().select(pl.when(pl.int_range(4) == 3).then(name))[name]
    assert [found[0] for found in broken(rules, released(**{name: one}))] == [name]


@pytest.mark.parametrize("name", ["rank", "url", "category"])
def test_a_cell_may_be_empty_only_where_the_rule_permits_it_and_holds_nothing_else(name):
    emptied = {name: pl.Series([None] * 4, dtype=released().schema[name])}
    permitted = CellRules(may_empty=frozenset({name}))
    assert broken(permitted, released(**emptied)) == []
    assert [found[0] for found in broken(CellRules(), released(**emptied))] == [name]
    assert [found[0] for found in broken(permitted, released(**changed(name)))] == [name]


@pytest.mark.parametrize("unit", [HOUR, DAY])
def test_a_coarse_time_is_that_of_its_row_truncated_and_no_other(unit):
    rules = CellRules(time_unit=unit)
    coarse = released()["time"].dt.truncate("1h" if unit == HOUR else "1d")
    assert broken(rules, released(time=coarse)) == []
    for other in (coarse + timedelta(hours=24), coarse + timedelta(seconds=1), released()["time"]):
        assert [found[0] for found in broken(rules, released(time=other))] == ["time"]


def test_the_time_of_a_created_row_is_coarse_too():
    known = truth(original_row=[2, 0, 1, None], original_user=["u1", "u1", "u2", None])
    times = released()["time"].dt.truncate("1h").to_list()
    assert broken(CellRules(time_unit=HOUR), released(time=times), known) == []
    times[3] = START
    assert [found[0] for found in broken(CellRules(time_unit=HOUR), released(time=times), known)] == ["time"]


def labelled(labels):
    """Return a release under these labels, and a ground truth that states the same ones."""
    users = truth()["original_user"].to_list()
    own = [labels[user] for user in users]
    return released(user=own), truth(original_label=own, label_user=users)


def test_a_label_that_is_a_user_id_is_found_even_if_the_ground_truth_states_it_too():
    assert of_labels(*labelled(LABELS)) == ""
    assert of_labels(*labelled(LABELS | {"u3": "u2"})) == "1 labels are user ids of the log"


def test_labels_that_stand_for_others_than_the_ground_truth_states_are_found():
    release, known = labelled(LABELS)
    exchanged = release.with_columns(pl.col("user").replace({"p1": "p2", "p2": "p1"}))
    assert "other users" in of_labels(exchanged, known)


def rules_of(**traits):
    return cell_rules([SimpleNamespace(method=name, traits=one) for name, one in traits.items()])


def test_rules_follow_from_the_traits_of_all_methods():
    kinds = {
        "a": Traits(rewrites=frozenset({"time"}), time_unit=HOUR, may_empty=frozenset({"url"})),
        "b": Traits(rewrites=frozenset({"time", "rank"}), time_unit=DAY, empties=frozenset({"rank"})),
        "c": Traits(rewrites=frozenset({"user"}), labels=Labels.GROUP),
    }
    rules = rules_of(**kinds)
    assert (rules.empty, rules.may_empty, rules.time_unit) == ({"rank"}, {"url"}, DAY)
    assert rules.written == {"user": "c"}
    fresh = Traits(rewrites=frozenset({"user"}), labels=Labels.GROUP, fresh_labels=True)
    assert rules_of(c=fresh) == CellRules(pseudonyms=True)
    assert rules_of(d=Traits(rewrites=frozenset({"time"}))).written == {"time": "d"}
    own = Traits(rewrites=frozenset({"user"}), labels=Labels.OWN)
    assert rules_of(e=own).written == {}, "users keep their own labels, so the original decides"


def test_rows_of_a_search_with_several_categories_have_that_of_its_first_row():
    """The second user clicked twice; a classifier of addresses gave the second click another category."""
    log = pl.DataFrame(
        {
            "user": ["u1", "u2", "u2"],
            "query": ["cup"] * 3,
            "time": [START, *[START + timedelta(seconds=1)] * 2],
            "url": [None, "a.example", "b.example"],
            "category": ["Home/Kitchen", "Home/Kitchen", "Sports"],
        }
    )
    release = qc.protect(log, "z-anonymity", z=2, window=60, seed=1)
    assert release.log.frame["category"].to_list() == ["Home/Kitchen"] * 2


@pytest.mark.parametrize("shown", ["Arts", "Home/Kitchen", "Hom"])
def test_a_category_that_is_not_above_that_of_the_search_is_found(shown):
    other = released(category=pl.Series(["Home", "Home", None, shown]))
    original = ORIGINAL.with_columns(category=pl.lit("Home"))
    assert CATEGORY_OR_ABOVE.run(Evidence(released().lazy(), ORIGINAL.lazy(), truth().lazy())) == ""
    assert CATEGORY_OR_ABOVE.run(Evidence(other.lazy(), original.lazy(), truth().lazy())) != ""
