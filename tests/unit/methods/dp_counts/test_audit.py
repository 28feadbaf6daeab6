"""The audits of a table of counts find what does not belong there, and say it without showing it."""

from __future__ import annotations

import polars as pl
import pytest

from querycloak.audits.evidence import Evidence
from querycloak.audits.lineage import LINEAGE
from querycloak.audits.users import asked_by
from querycloak.guarantee import COUNTS_ONLY
from querycloak.methods.dp_counts.audit import query_counts

GOOD = {"query": ["rain", "snow"], "count": [7, 0]}


def evidence(columns: dict, original: list[str] | None = None) -> Evidence:
    table = pl.DataFrame(columns).with_row_index("released_row").cast({"released_row": pl.Int64})
    asked = truth = None
    if original is not None:
        rows = {"row": range(len(original)), "user": ["u"] * len(original), "query": original}
        asked = pl.DataFrame(rows, schema_overrides={"row": pl.Int64}).lazy()
        columns = ["released_row", "original_row", "original_user", "released_after"]
        truth = pl.DataFrame(schema=dict.fromkeys(columns, pl.Int64)).lazy()
    return Evidence(table.lazy(), asked, truth, table=True)


def broken(columns: dict, original: list[str] | None = None) -> dict[str, str]:
    findings = [audit(evidence(columns, original)) for audit in query_counts()]
    return {finding.check: finding.detail for finding in findings if finding.verdict == "broken"}


@pytest.mark.parametrize("counts", [[7, 0], ["7", "0"]], ids=["numbers", "texts"])
def test_a_good_table_passes(counts):
    assert broken(GOOD | {"count": counts}, ["rain", "snow", "rare"]) == {}


def test_an_empty_table_passes_whatever_columns_its_reader_made_up():
    assert broken({name: [] for name in ("user", "query", "time")}, ["rain"]) == {}


@pytest.mark.parametrize(
    ("columns", "check", "detail"),
    [
        (GOOD | {"user": ["ann", None]}, "each line has", "the table also has user"),
        (GOOD | {"secret": ["ann", "bob"]}, "each line has", "the table also has another column"),
        (GOOD | {"category": ["A/B", None]}, "each line has", "the table also has category"),
        ({"query": ["rain"]}, "each line has", "the table has no count"),
        (
            GOOD | {"query": ["rain", None]},
            "each line has",
            "1 row of the release, the first: 1 have an empty",
        ),
        (GOOD | {"query": ["rain", "rain"]}, "each query has one line", "2 rows of the release"),
        (GOOD | {"count": ["7", "-1"]}, "each count", "1 row of the release, the first: 1"),
        (GOOD | {"count": ["7.5", "1"]}, "each count", "the first: 0"),
        (GOOD | {"count": ["+7", "many"]}, "each count", "the first: 0, 1"),
    ],
)
def test_what_does_not_belong_there_is_found(columns, check, detail):
    found = [(name, told) for name, told in broken(columns).items() if name.startswith(check)]
    assert found
    assert detail in found[0][1]
    assert not any(text in found[0][1] for text in ("rain", "ann", "secret"))


def test_a_query_that_nobody_asked_is_found_with_the_original():
    assert broken(GOOD, ["rain"]) == {
        "each query of the table was asked": "1 row of the release, the first: 1 show a query that no user "
        "asked"
    }
    assert broken(GOOD) == {}


def test_no_audit_claims_to_have_seen_the_noise():
    verdicts = {found.check: found.verdict for found in (audit(evidence(GOOD)) for audit in query_counts())}
    assert verdicts["the noise has the stated distribution"] == "not checkable"


def test_what_is_about_records_does_not_apply():
    for audit in (*LINEAGE, *asked_by(2)):
        finding = audit(evidence(GOOD, ["rain"]))
        assert (finding.verdict, finding.detail) == ("not applicable", COUNTS_ONLY)
