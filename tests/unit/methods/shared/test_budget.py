"""What people have spent over releases of a source: beyond it refused or dropped, and nobody is named."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import querycloak as qc
from querycloak.dictionary import Dictionaries
from querycloak.errors import Refused, UsageError
from querycloak.methods.dp_semantic import ALL_USED
from querycloak.methods.shared.budget import OVERSPENT, PrivacyBudget, take_within_limit

TREE = "path\nanimal\nanimal/dog\nanimal/cat\ntool\ntool/hammer\ntool/saw\n"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    file = tmp_path_factory.mktemp("tree") / "tree.csv"
    file.write_text(TREE)
    return file


def log_of(*pairs):
    frame = pl.DataFrame(pairs, schema={"user": pl.String, "query": pl.String}, orient="row")
    minutes = (pl.int_range(pl.len()) * 60_000_000).cast(pl.Datetime("us", "UTC"))
    return qc.Log(frame.with_columns(time=minutes).with_row_index("row").cast({"row": pl.Int64}))


@pytest.fixture
def release(tmp_path, tree):
    """Release (user, query) pairs of one source."""

    def make(*pairs, **settings):
        named = {"source": "web", "state": tmp_path / "state", "seed": 1, "epsilon": 4.0, "budget": 10.0}
        return qc.protect(log_of(*pairs), "dp-semantic", taxonomy=tree, **(named | settings))

    return make


def book(tmp_path):
    (path,) = (tmp_path / "state").glob("*.budget.parquet")
    return dict(pl.read_parquet(path).select("user", "spent").rows())


ZAN, BAR = ("zanzibarann", "dog, cat"), ("zanzibarbob", "walrus hammer")


def test_a_release_past_the_budget_is_refused_and_says_what_is_left(release, tmp_path):
    for earlier in range(2):
        facts = release(ZAN, BAR).certificate["methods"][0]["facts"]
        assert facts["spent_by_anyone_at_most"] == 4.0 * (earlier + 1)
        assert facts["budget"] == 10.0
    before = book(tmp_path)
    with pytest.raises(Refused) as caught:
        release(ZAN, BAR)
    assert caught.value.exit_status == 2
    assert "as little as 2 left of their budget of 10" in caught.value.message
    assert "would spend more" in caught.value.message
    assert "zanzibar" not in str(caught.value)
    assert "walrus" not in str(caught.value)
    assert book(tmp_path) == before == {None: 8.0, "zanzibarann": 8.0, "zanzibarbob": 8.0}


def test_exactly_the_budget_can_be_spent(release, tmp_path):
    for _ in range(10):
        release(ZAN, epsilon=0.1, budget=1.0)
    assert book(tmp_path)["zanzibarann"] == pytest.approx(1.0)
    with pytest.raises(Refused, match=r"as little as (0|1\.\S*e-16) left"):
        release(ZAN, epsilon=0.1, budget=1.0)


def test_new_people_have_their_own_budget(release, tmp_path):
    for _ in range(2):
        release(ZAN)
    assert len(release(BAR).log) == 1
    assert book(tmp_path) == {None: 10.0, "zanzibarann": 8.0, "zanzibarbob": 4.0}, (
        "nobody spends past the budget"
    )
    with pytest.raises(Refused):
        release(ZAN, BAR)


def test_whoever_has_spent_all_can_be_left_out(release, tmp_path):
    for _ in range(2):
        release(ZAN)
    found = release(ZAN, ("zanzibarann", "hammer"), BAR, overspent="drop")
    assert found.truth["original_user"].to_list() == ["zanzibarbob"]
    assert found.report.reasons["dp-semantic"] == {OVERSPENT: 2}
    assert book(tmp_path)["zanzibarann"] == 8.0


def test_a_person_in_one_release_has_spent_once_however_many_records(release, tmp_path):
    release(*[ZAN] * 7)
    assert book(tmp_path) == {None: 4.0, "zanzibarann": 4.0}


def test_a_stream_spends_by_the_draw(release, tmp_path):
    release(ZAN, ("zanzibarann", "hammer"), BAR, max_queries=8)
    assert book(tmp_path) == {None: 4.0, "zanzibarann": 1.5, "zanzibarbob": 0.5}
    release(ZAN, per="query", epsilon=0.25, max_queries=4)
    assert book(tmp_path) == {None: 5.0, "zanzibarann": 2.0, "zanzibarbob": 0.5}


def test_a_stream_stops_where_the_budget_ends(release, tmp_path):
    many = [("zanzibarann", "dog")] * 9
    with pytest.raises(Refused, match="as little as 1 left of their budget of 1"):
        release(*many, max_queries=8, budget=1.0)
    found = release(*many, BAR, max_queries=8, budget=1.0, overspent="drop")
    assert found.report.reasons["dp-semantic"] == {OVERSPENT: 6, ALL_USED: 1}
    assert book(tmp_path) == {None: 1.0, "zanzibarann": 1.0, "zanzibarbob": 0.5}


def test_a_record_leaves_or_is_dropped_but_never_both(release):
    """Her first record fits into her draws but not into her budget; the second fits into both."""
    three = ("zanzibarann", "dog, cat, hammer")
    found = release(
        three, ("zanzibarann", "saw"), BAR, epsilon=3.0, max_queries=3, budget=2.0, overspent="drop"
    )
    assert sorted(found.truth["original_row"]) == [1, 2]
    assert found.report.reasons["dp-semantic"] == {OVERSPENT: 1}
    assert found.report.withheld == 1


def test_the_book_is_private(release, tmp_path):
    release(ZAN)
    state = tmp_path / "state"
    assert oct(state.stat().st_mode)[-3:] == "700"
    for file in state.glob("*.budget.*"):
        assert oct(file.stat().st_mode)[-3:] == "600"
    assert not any("zanzibar" in file.name or "web" in file.name for file in state.iterdir())


def test_a_book_that_is_missing_or_damaged_is_no_licence_to_spend(release, tmp_path):
    release(ZAN)
    with pytest.raises(Refused, match="is not here"):
        release(ZAN, state=None)
    with pytest.raises(Refused, match="is not here"):
        release(ZAN, state=tmp_path / "elsewhere")
    (path,) = (tmp_path / "state").glob("*.budget.parquet")
    path.write_bytes(b"no parquet")
    with pytest.raises(Refused, match="was put back or changed"):
        release(ZAN)
    path.unlink()
    with pytest.raises(Refused, match="is not here"):
        release(ZAN)
    assert len(release(ZAN, source="another").log) == 1


def test_releases_without_a_limit_are_booked_too(release, tmp_path):
    release(ZAN, budget=0.0)
    release(ZAN, budget=0.0)
    assert book(tmp_path) == {None: 8.0, "zanzibarann": 8.0}
    with pytest.raises(Refused, match="as little as 2 left"):
        release(ZAN)


def test_settings_may_change_between_releases(release, tmp_path):
    release(ZAN)
    release(ZAN, epsilon=1.0, criterion="sqc1", domain="topic", max_queries=3)
    assert book(tmp_path)["zanzibarann"] == pytest.approx(4 + 2 / 3)


def test_a_refused_or_dry_run_spends_nothing(release, tmp_path, tree):
    release(ZAN)
    with pytest.raises(Refused):
        release(ZAN, epsilon=7.0)
    with pytest.raises(UsageError):
        release(ZAN, topics="nothing known")
    assert book(tmp_path) == {None: 4.0, "zanzibarann": 4.0}


def test_a_budget_needs_a_source(tree):
    with pytest.raises(UsageError, match="no source is named"):
        qc.protect(log_of(ZAN), "dp-semantic", taxonomy=tree, budget=10.0)


def test_fresh_labels_do_not_hide_who_has_spent(release, tmp_path):
    release(ZAN, labels="fresh")
    release(ZAN, labels="fresh")
    assert book(tmp_path)["zanzibarann"] == 8.0
    with pytest.raises(Refused):
        release(ZAN, labels="fresh")


@pytest.mark.dp
def test_zcdp_spends_all_at_once(release, tmp_path):
    release(ZAN, BAR, composition="zcdp", max_queries=100)
    assert book(tmp_path) == {None: 4.0, "zanzibarann": 4.0, "zanzibarbob": 4.0}


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=25),
    st.lists(st.integers(0, 6), min_size=4, max_size=4),
    st.integers(0, 25),
)
def test_admission_is_first_come_first_served_in_any_cut(records, limits, cut):
    used, wanted = [0] * 4, []
    for user, need in records:
        affordable = used[user] + need <= limits[user]
        used[user] += need * affordable
        wanted.append(affordable)
    user, need = (np.array([r[i] for r in records], np.int64) for i in range(2))
    counts, found = np.zeros(4, np.int64), []
    for part in (slice(0, cut), slice(cut, None)):
        found += take_within_limit(user[part], need[part], counts, np.array(limits)).tolist()
    assert found == wanted
    assert counts.tolist() == used


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0.01, 3)), max_size=20), st.floats(0.5, 5))
def test_spending_adds_up_over_releases(costs, limit):
    """Loaded before each release, as it is from one night to the next."""
    exact, kept = {}, None
    for user, amount in costs:
        texts = Dictionaries()
        code = texts.user.encode(pl.Series([f"u{user}"]))
        spent = code, np.array([amount])
        budget = PrivacyBudget(limit, texts.user, lambda spent=spent: spent, worst=amount)
        if kept is not None:
            budget.load(kept)
        assert budget.spent_before(code)[0] == pytest.approx(exact.get(user, 0.0))
        if exact.get(user, 0.0) + amount <= limit * (1 - 1e-9):
            assert budget.affordable(*spent).all()
        if exact.get(user, 0.0) + amount > limit * (1 + 1e-8):
            assert not budget.affordable(*spent).any()
        kept = budget.save()
        exact[user] = exact.get(user, 0.0) + amount
    if kept is not None:
        found = dict(kept.select("user", "spent").rows())
        assert found.pop(None) == pytest.approx(min(sum(amount for _, amount in costs), limit))
        assert found == pytest.approx({f"u{user}": total for user, total in exact.items()})


def test_pseudonyms_given_before_do_not_hide_who_has_spent(tmp_path, tree):
    """Another name in each release would be another budget in each."""
    named = {"source": "web", "state": tmp_path / "state", "epsilon": 4.0, "budget": 6.0, "taxonomy": tree}

    def twice():
        for _ in range(2):
            qc.protect(log_of(ZAN), "rules", "dp-semantic", **named, **{"rules.labels": "fresh"})

    with pytest.raises(Refused):
        twice()


def test_a_second_book_does_not_make_up_for_the_first(release, tmp_path):
    """Without a limit nothing asks for the first book; but then the second is not the whole one either."""
    release(ZAN)
    other = tmp_path / "elsewhere"
    release(ZAN, state=other, budget=0.0)
    with pytest.raises(Refused):
        release(ZAN, state=other)


@pytest.mark.dp
def test_what_may_fail_adds_up_too(release):
    """Two releases of (2, 1e-6) are together (4, 2e-6), not (4, 1e-6)."""
    for _ in range(2):
        found = release(ZAN, composition="zcdp", epsilon=2.0, delta=1e-6)
    facts = found.certificate["methods"][0]["facts"]
    assert facts["spent_by_anyone_at_most"] == 4.0
    assert max(value for name, value in facts.items() if "delta" in name) >= 2e-6


def test_no_later_certificate_tells_how_long_the_longest_history_was(release, tmp_path):
    """`per=query` without `max_queries` spends by the longest history, which is nobody's business."""
    facts = []
    for number, phrases in enumerate((1, 5)):
        own = {"state": tmp_path / f"state{number}", "source": f"source {number}", "budget": 0.0}
        release(("zanzibarann", ", ".join(["dog"] * phrases)), per="query", **own)
        facts.append(release(ZAN, **own).certificate["methods"][0]["facts"])
    assert facts[0] == facts[1]
