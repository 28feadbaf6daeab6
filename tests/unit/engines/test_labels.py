"""Labels are new in each release; the log's own ids are kept only for a named source."""

from __future__ import annotations

import polars as pl
import pytest

import querycloak as qc
from querycloak.engines.pipeline import parse_stages
from querycloak.engines.release import ReleaseJob, make_release
from querycloak.errors import Refused
from querycloak.registry import METHODS
from tests.support.logs import made_up

LABELLING = [name for name in METHODS.names() if hasattr(METHODS.get(name).Settings(), "labels")]


@pytest.fixture(scope="module")
def log():
    return made_up(users=60, seed=2, categories=True)


def policies(*methods, **chosen):
    return [stage.label_policy for stage in parse_stages(list(methods), chosen)]


@pytest.mark.parametrize("name", LABELLING)
def test_labels_are_fresh_by_default(name):
    assert METHODS.get(name).Settings().labels == "fresh"


def test_two_releases_without_a_source_share_no_label(log):
    labels = [set(qc.protect(log, "cohort", k=3, shards=1).log.frame["user"]) for _ in range(2)]
    assert all(labels)
    assert not labels[0] & labels[1]
    assert not set(log.frame["user"]) & (labels[0] | labels[1])


@pytest.mark.parametrize("name", ["rules", "cohort", "swap"])
def test_labels_are_not_kept_without_a_source(log, name):
    with pytest.raises(Refused, match=f"`{name}`: `labels=keep`.*no source is named") as caught:
        qc.protect(log, name, labels="keep")
    assert "--source NAME" in caught.value.hint
    assert "labels=fresh" in caught.value.hint
    release = qc.protect(log, name, labels="keep", source="web")
    assert set(release.log.frame["user"]) <= set(log.frame["user"])


def test_a_release_for_evaluation_keeps_labels_without_a_source(log):
    stages = parse_stages(["rules"], {"labels": "keep"})
    made = make_release(ReleaseJob(log, None, stages, seed=1, evaluation=True))
    assert set(made.log.frame["user"]) <= set(log.frame["user"])


def test_an_earlier_method_keeps_the_labels_that_a_later_one_replaces(log):
    assert policies("rules", "z-anonymity") == ["keep", "fresh"]
    assert policies("rules", "frequent-only") == ["keep", ""]
    assert policies("rules", "z-anonymity", **{"rules.labels": "fresh"}) == ["fresh", "fresh"]
    assert policies("rules", "z-anonymity", **{"z-anonymity.labels": "keep"}) == ["keep", "keep"]
    release = qc.protect(log, "rules", "cohort", **{"cohort.k": 3, "shards": 1, "rules.labels": "keep"})
    assert not set(release.log.frame["user"]) & set(log.frame["user"])


def test_a_budget_counts_by_user_behind_another_method(log):
    pytest.importorskip("opendp")
    chosen = {"budget": 8, "epsilon": 4, "max_queries": 2}
    release = qc.protect(log, "rules", "dp-semantic", source="web", settings=chosen)
    assert release.report.released


def test_the_service_keeps_the_pseudonyms_of_an_epoch():
    from querycloak.service.settings import setup

    assert [one.settings.labels for one in setup({}, ["cohort"], {}, environment={}).stages] == ["keep"]


def test_a_composed_release_keeps_ids_only_for_a_source(log):
    with pytest.raises(Refused, match="no source is named"):
        qc.protect(
            log, "rules", "z-anonymity", settings={"rules.labels": "keep", "z-anonymity.labels": "keep"}
        )


def test_labels_of_a_release_stand_for_the_users_of_its_truth(log):
    release = qc.protect(log, "rules")
    truth = release.truth
    assert truth["label_user"].equals(truth["original_user"], check_names=False)
    assert truth["original_label"].equals(release.log.frame["user"], check_names=False)
    assert pl.DataFrame({"a": truth["original_user"]}).n_unique() > 1
