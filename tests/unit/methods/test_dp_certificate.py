"""What certificates of `dp-semantic` say, what they must not tell, and how releases are checked by them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import querycloak as qc
from querycloak.engines.pipeline import OTHER_RELEASES
from querycloak.engines.verify import CHECK
from tests.support.logs import made_up
from tests.unit.methods.made_dp import SETTINGS, TREE, made, part, protect


@pytest.fixture(scope="module")
def log():
    return made_up(60, seed=3, categories=True)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    file = tmp_path_factory.mktemp("tree") / "tree.csv"
    file.write_text("path\n" + "\n".join(TREE) + "\n")
    return file


PROMISES = [
    ({}, "5-differential privacy of a history's mapped concepts, among the concepts of the stated domain"),
    ({"domain": "topic"}, "among the concepts of the same topic"),
    ({"per": "query"}, "5-differential privacy of each mapped phrase"),
    ({"rebuild": "form"}, "5-differential privacy of a history"),
    ({"rebuild": "paper"}, "no guarantee of privacy: words that the mapping removed are put back"),
]


@pytest.mark.parametrize(("settings", "words"), PROMISES, ids=str)
def test_the_promise_fits_the_settings(settings, words):
    found = part(protect(made(("ann", "new dogs"), ("bob", "the cats")), **settings))
    assert words in found["promise"]
    outside = found["facts"]["outside"]
    assert [*outside, OTHER_RELEASES] == found["does_not_protect_against"], "no source is named"
    assert ("the topic of each phrase" in outside) == (settings.get("domain") == "topic")
    assert any("plurals, stop words" in line for line in outside) == (settings.get("rebuild") == "form")
    assert any("names among them" in line for line in outside) == (settings.get("rebuild") == "paper")
    assert found["facts"]["epsilon"] == (None if settings.get("rebuild") == "paper" else 5.0)
    assert ("spent_by_anyone_at_most" in found["facts"]) == (settings.get("rebuild") != "paper")


@pytest.mark.dp
def test_the_promise_by_zcdp_names_delta():
    found = part(protect(made(("ann", "dogs, cats")), composition="zcdp", delta=1e-5))
    assert found["promise"].startswith("(5, 1e-05)-differential privacy")
    assert found["facts"]["delta"] == 1e-5


@pytest.mark.parametrize("settings", [*SETTINGS, {"epsilon": 0.001}, {"epsilon": 40.0}], ids=str)
def test_facts_tell_nothing_about_the_log(log, settings):
    """Also the last digits of ε do not: they would tell how short the shortest history is."""
    phrases = 400 if "prior" in settings else 10_000
    long = made(("somebody", ", ".join(["hammer", "poodle"] * (phrases // 2))))
    one, other = (part(protect(each, **settings)) for each in (log, long))
    assert one["facts"] == other["facts"]
    assert one["promise"] == other["promise"]
    assert one["settings"] == other["settings"]


def test_a_certificate_holds_no_user_and_no_query():
    log = made(("zanzibarann", "walrus poodle hammers"), ("zanzibarbob", "walrus saw"))
    for settings in ({}, {"rebuild": "paper"}, {"max_queries": 2}, {"prior": "microagg-semantic"}):
        text = json.dumps(protect(log, **settings).certificate)
        assert not any(word in text for word in ("zanzibar", "walrus", "poodle", "hammer"))


def test_facts_state_the_scope(tree):
    facts = part(protect(made(("ann", "dog, hammer")), taxonomy=tree, criterion="sqc1", epsilon=2.0))["facts"]
    assert facts["unit"] == "history"
    assert facts["domain"] == "tree.csv"
    assert (facts["domains"], facts["concepts"]) == (1, len(TREE))
    assert (facts["epsilon"], facts["delta"], facts["per"]) == (2.0, 0.0, "history")
    assert (facts["spent_by_anyone_at_most"], facts["budget"]) == (None, None), "no ledger counts releases"
    facts = part(protect(made(("ann", "dog")), taxonomy=tree, domain="topic"))["facts"]
    assert facts["domains"] == 2


@pytest.mark.parametrize(
    ("settings", "most"),
    [({"per": "query", "max_queries": 7}, 35.0), ({"per": "query"}, None), ({"max_queries": 7}, 5.0)],
    ids=str,
)
def test_what_anyone_may_have_spent(tmp_path, tree, settings, most):
    log, place = made(("ann", "dog, hammer")), {"source": "web", "state": tmp_path}
    facts = part(protect(log, taxonomy=tree, **settings, **place))["facts"]
    assert facts["spent_by_anyone_at_most"] == most


def test_a_taxonomy_file_works_from_end_to_end(tmp_path, tree, monkeypatch):
    words = [path.rpartition("/")[2] for path in TREE]
    log = made(*((f"u{n % 9}", f"new {words[n % 7]}s, the {words[(3 * n) % 7]}") for n in range(90)))
    out = tmp_path / "out.parquet"
    release = protect(log, taxonomy=tree, epsilon=3.0, output=out, truth=tmp_path / "t.parquet")
    assert len(release.log) == 90
    assert {word for text in release.log.frame["query"] for word in text.split(", ")} == set(words)
    assert part(release)["settings"]["taxonomy"] == "tree.csv"
    monkeypatch.chdir(tree.parent)
    found = qc.verify(out)
    assert found.holds
    assert "every released query consists of words of the domain" in {c["check"] for c in found.checked}


def test_a_certificate_that_travelled_without_its_taxonomy_is_not_checkable(tmp_path, monkeypatch):
    """Another name than any taxonomy of this process: what was loaded once is kept by its name."""
    file = tmp_path / "left-at-home.csv"
    file.write_text("path\n" + "\n".join(TREE) + "\n")
    protect(made(("ann", "dog")), taxonomy=file, output=tmp_path / "out.parquet")
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    found = qc.verify(tmp_path / "out.parquet")
    assert found.holds
    reasons = {line["check"]: line["detail"] for line in found.not_checkable}
    assert "taxonomy is not here" in reasons["every released query consists of words of the domain"]


def test_the_secret_gives_the_same_release(tmp_path, log):
    qc.write(log, str(tmp_path / "log.parquet"))
    for number, settings in enumerate(
        [{}, {"max_queries": 5}, {"prior": "microagg-semantic", "labels": "fresh"}]
    ):
        out, secret = tmp_path / f"out{number}.parquet", tmp_path / "secret"
        qc.protect(tmp_path / "log.parquet", "dp-semantic", output=out, secret_file=secret, **settings)
        found = qc.verify(out, original=tmp_path / "log.parquet", secret_file=secret)
        assert not found.broken
        assert CHECK in {line["check"] for line in found.checked}


def test_a_secret_used_again_draws_anew(tmp_path, log):
    texts = [
        protect(log, seed=None, secret_file=tmp_path / "secret").log.frame["query"].to_list()
        for _ in range(2)
    ]
    assert texts[0] != texts[1]


@pytest.mark.parametrize("settings", [{"max_queries": 10_000}, {"per": "query"}, {}], ids=str)
@pytest.mark.parametrize("time", ["coarsen", "drop"])
def test_the_order_of_rows_tells_no_more_of_times_than_is_said(log, time, settings):
    """Rows that leave as they come stand in the order in which people asked, whatever their times show."""
    release = protect(log, time=time, **settings)
    asked = log.frame["time"].to_physical().to_numpy()[release.truth["original_row"].to_numpy()]
    in_order = bool((np.diff(asked) >= 0).all())
    assert not in_order or any("order" in line for line in part(release)["does_not_protect_against"])
