"""What a comparison says in words: which setting to use within a limit, and what stands out."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from querycloak.compare.decide import eligible, judge_bound, worst_audit
from querycloak.compare.result import ATTACKERS
from querycloak.formatting import percent
from querycloak.measures.base import ALL_USES, KEEP, USES
from querycloak.report.comparison import answers, view
from querycloak.report.comparison.answers import choose, verdict_text
from tests.unit.report.comparisons import HOSTILE, comparison, made, usual


def line(*shares, **more):
    """Candidates that are linked and keep words like this."""
    return comparison(
        *(
            made(name, "cohort", knowing=share, terms=terms, repeats=1, **more)
            for name, share, terms in shares
        )
    )


def sentence(choice):
    return f"{choice.headline}: {choice.reason}"


# What is kept


def test_losses_are_turned_round_and_shares_stay_shares():
    one = made("a", "a", knowing=0.1, terms=0.5, topics=0.25, records=1.02, repeats=1)
    assert one.kept("topics") == (0.75, 0.75, 0.75)
    assert one.kept("terms") == (0.5, 0.5, 0.5)
    assert one.kept("records") == (1.0, 1.0, 1.0)
    assert one.kept("shared_texts")[0] == pytest.approx(0.4)


def test_the_interval_of_a_loss_is_turned_round_too():
    one = made("a", "a", knowing=0.1, terms=0.5, topics=0.25)
    value, low, high = one.kept("topics")
    assert low < value < high
    assert low == pytest.approx(1 - one.measures["jensen_shannon.topics"].high)


def test_what_was_not_measured_is_none_and_says_why():
    table = made("t", "t", labels="table", terms=0)
    assert table.kept("terms") is None
    assert table.why_not_kept("terms") == "counts only"
    assert made("f", "f", failed="too slow").kept("terms") is None
    assert "not measured" in table.why_not_kept("topics")


def test_every_use_that_may_be_asked_for_has_an_axis():
    assert set(KEEP) == {"topics", "terms", "sessions", "clicks"}
    assert set(KEEP) <= set(ALL_USES)
    assert [axis.name for axis in ALL_USES.values() if axis not in USES] == ["shared_texts"]
    assert set(answers.ATTACKER) == set(ATTACKERS)


# Which to use


def test_the_one_that_keeps_most_within_the_limit_is_chosen():
    found = line(("leaky", 0.5, 0.99), ("good", 0.05, 0.8), ("strict", 0.01, 0.3))
    assert choose(found, 0.10, "terms", "knowing").candidate.name == "good"
    assert choose(found, 0.04, "terms", "knowing").candidate.name == "strict"
    assert choose(found, 1.0, "terms", "any").candidate.name == "leaky"


def test_the_upper_end_counts_not_the_share():
    found = line(("near", 0.095, 0.9))  # its interval ends at 0.105
    assert choose(found, 0.10, "terms", "knowing").candidate is None
    assert choose(found, 0.105, "terms", "knowing").candidate.name == "near"


def test_of_equals_the_least_linked_is_chosen():
    found = line(("first", 0.06, 0.8), ("second", 0.03, 0.8))
    assert choose(found, 0.10, "terms", "knowing").candidate.name == "second"


def test_none_says_how_near_the_nearest_comes():
    chosen = choose(line(("a", 0.5, 0.9), ("b", 0.3, 0.9)), 0.10, "terms", "knowing")
    assert chosen.candidate is None
    assert sentence(chosen) == (
        "None of those tried: the lowest is b, where link-overlap on=<terms> links 30.0 % of people "
        "and up to 31.0 % by the interval."
    )
    assert "no attack" in choose(line(("a", 0.5, 0.9)), 0.10, "terms", "release").reason


def test_what_keeps_nothing_is_not_proposed():
    found = line(("empty", 0.02, 0.9), sessions=0.0)
    chosen = choose(found, 0.10, "sessions", "knowing")
    assert chosen.candidate is None
    assert "only empty" in chosen.reason


def test_what_keeps_next_to_nothing_says_so():
    assert "next to nothing" in choose(line(("a", 0.02, 0.03)), 0.10, "terms", "knowing").reason
    assert "next to nothing" not in choose(line(("a", 0.02, 0.5)), 0.10, "terms", "knowing").reason


@pytest.mark.parametrize(
    ("method", "more"),
    [("cohort", {"audit": "broken"}), ("threshold-dp", {"settings": {"output": "log"}})],
)
def test_what_must_not_be_published_is_never_proposed(method, more):
    found = comparison(made("a", method, knowing=0.02, terms=0.9, repeats=1, **more))
    assert eligible(found, 0.5, "knowing") == []
    assert choose(found, 0.5, "terms", "knowing").candidate is None
    assert any("never proposed" in sentence for sentence in answers.stands_out(found))


def test_failed_ones_and_tables_are_not_proposed_but_named_apart():
    found = usual()
    assert {one.name for one in eligible(found, 1.0, "any")} == {
        "swap k=5", "swap k=10", "cohort k=5", "cohort k=10", HOSTILE,
    }  # fmt: skip
    assert dict(answers.not_linked(found, "knowing")) == {
        "a table of counts has no records to link; its promise is what there is": ["dp-histogram"]
    }
    reasons = {name: reason for reason, names in answers.not_linked(found, "release") for name in names}
    assert "belong together" in reasons["<b>evil</b>"]


def test_a_broken_bound_is_told_with_the_proposal():
    chosen = choose(usual(), 0.60, "terms", "release")
    assert chosen.candidate.name == "swap k=5"
    assert chosen.reason.endswith("Mind that link-time broke the bound that is stated for it.")


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_steps_answer_like_choose_at_any_limit(attacker):
    found = usual()
    for use in KEEP:
        steps = answers.steps(found, use, attacker)
        for limit in (0.0, 0.01, 0.035, 0.1, 0.2, 0.31, 0.5, 0.9, 1.0):
            held = [choice for start, choice in steps if start <= limit][-1]
            assert sentence(held) == sentence(choose(found, limit, use, attacker))


# What stands out


def test_broken_and_held_bounds_are_told():
    told = answers.stands_out(usual())
    assert told[0].startswith(
        "A stated bound is broken: at most 10.0 % of records should be linked in swap k=10, but"
    )
    assert "4.5 times as many. The bound is broken for swap k=5 as well." in told[0]
    assert told[1].startswith("Stated bounds hold for cohort: all 2 attacks")
    assert answers.summary(usual())[-1] == told[0]


def test_the_verdict_of_a_game_is_holds_broken_not_stated_or_not_applicable():
    found = {one.name: one for one in usual().succeeded}
    assert judge_bound(found["swap k=5"], "attribution").verdict == "broken"
    assert judge_bound(found["cohort k=5"], "attribution").verdict == "holds"
    assert judge_bound(found["cohort k=5"], "linkage").verdict == "no bound stated"
    missing = judge_bound(found[HOSTILE], "linkage")
    assert (missing.verdict, missing.attack) == ("open by design", None)
    assert "belong together" in verdict_text(found[HOSTILE], missing)
    assert judge_bound(found["swap k=5"], "no such game").why == "no attack of this game was run"


def test_the_worst_audit_of_several_counts():
    one = made("a", "a", knowing=0.1, terms=0.5)
    promises = [replace(one.promises[0], audit=audit) for audit in ("kept", "not checkable", "broken")]
    assert worst_audit(replace(one, promises=promises)) == "broken"
    assert worst_audit(replace(one, promises=promises[:2])) == "not checkable"
    assert worst_audit(replace(one, promises=promises[:1])) == "kept"


def test_what_is_left_open_is_told_once_for_all_settings():
    assert view.not_protected(usual())["swap"] == ["k accounts of one attacker", "what a query says"]
    assert view.not_protected(usual())["cohort"] == ["several accounts of one person"]
    ends = [percent(one.kept("terms")[0]) for one in usual().succeeded if one.series == "swap"]
    assert f"words {ends[1]} to {ends[0]}" in view.keeps(usual(), "swap")
