"""`link-overlap` on Spark gives the numbers of the local attack, on releases of several methods."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import querycloak as qc
from querycloak.attacks.run import attack
from querycloak.errors import DataError, ParameterError
from querycloak.log import Log
from tests.spark.test_km import a_folder_for_tables, loaded, made_up

__all__ = ["a_folder_for_tables"]

pytestmark = pytest.mark.spark

#: Methods by whose releases labels stand for people in different ways: their own, fresh, parts, exchanged.
RELEASES: dict[str, tuple[str, dict[str, Any]]] = {
    "queries": ("cohort", {"k": 3, "labels": "fresh", "shards": 1}),
    "terms": ("km", {"k": 2, "history": "day"}),
    "categories": ("swap", {"k": 2, "level": 1}),
}


def released(log: pl.DataFrame, method: str, **settings: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    found = qc.protect(Log(log), method, seed=3, **settings)
    return found.log.frame.rename({"row": "released_row"}), found.truth


def found_in_both_ways(
    spark: Any, release: pl.DataFrame, log: pl.DataFrame, truth: pl.DataFrame, on: str
) -> list[dict[str, Any]]:
    from querycloak.engines.spark.link_overlap import attack_overlap

    tables = [loaded(spark, frame) for frame in (release, log, truth)]
    here = attack_overlap(*tables, on=on, cuts=(2, 5, 1 << 62))
    (local,) = attack(release, {}, log, truth, ["link-overlap"], {"on": on, "targets": "0"})
    return [finding.as_dict() | {"seconds": 0.0} for finding in (here, local)]


@pytest.mark.parametrize("on", RELEASES)
def test_the_numbers_are_those_of_one_machine(spark, on):
    method, settings = RELEASES[on]
    log = made_up(seed=4, people=30, records=240, words=300)
    release, truth = released(log, method, **settings)
    here, local = found_in_both_ways(spark, release, log, truth, on)
    assert 0.0 < local["success"] < 1.0
    details = here.pop("details"), local.pop("details")
    assert details[0].pop("candidates") == pytest.approx(details[1].pop("candidates"))
    assert details[0] == pytest.approx(details[1])
    assert here == pytest.approx(local, abs=1e-12)


def test_what_cannot_be_attacked_says_why(spark):
    log = made_up(seed=1, records=30)
    release, truth = released(log, "km", k=2)
    for changed, on in ((release.drop("category"), "categories"), (release.clear(), "queries")):
        here, local = found_in_both_ways(spark, changed, log, truth, on)
        assert here == local
        assert here["not_applicable"]


def test_a_truth_of_another_log_is_refused(spark):
    from querycloak.engines.spark.link_overlap import attack_overlap

    log = made_up(seed=1, records=30)
    release, truth = released(log, "km", k=2)
    tables = [loaded(spark, frame) for frame in (release, made_up(seed=2, records=30), truth)]
    with pytest.raises(DataError, match="does not belong to this original"):
        attack_overlap(*tables)
    tables = [loaded(spark, frame) for frame in (release, log, truth[1:])]
    with pytest.raises(DataError, match="does not belong to this release"):
        attack_overlap(*tables)
    with pytest.raises(ParameterError, match="on"):
        attack_overlap(*tables, on="names")


def test_some_people_are_drawn(spark):
    from querycloak.engines.spark.link_overlap import attack_overlap

    log = made_up(seed=4, records=60)
    release, truth = released(log, "cohort", k=2)
    found = attack_overlap(*(loaded(spark, frame) for frame in (release, log, truth)), targets=5)
    assert found.n == 5
    assert found.details["targets"] == 5
