"""What a comparison is asked: methods with values, attacks with settings, presets by name."""

from __future__ import annotations

import pytest

from querycloak.engines.compare import asking, presets
from querycloak.engines.compare.asked import parse
from querycloak.engines.compare.plan import Attacked, attacks_of
from querycloak.errors import ParameterError, UnknownName, UsageError
from querycloak.registry import METHODS


def test_several_values_give_all_combinations():
    found = parse(["cohort:time=keep,drop:k=5,10"])
    assert [one.name for one in found] == [
        "cohort time=keep k=5",
        "cohort time=keep k=10",
        "cohort time=drop k=5",
        "cohort time=drop k=10",
    ]
    assert [one.line for one in found] == ["cohort time=keep"] * 2 + ["cohort time=drop"] * 2
    assert [one.value() for one in found] == [5, 10, 5, 10]


def test_methods_compose_and_settings_find_their_method():
    (found,) = parse(["rules+cohort:cohort.k=7"])
    assert found.methods == ("rules", "cohort")
    assert found.full_settings()["cohort"]["k"] == 7
    assert (found.along, found.value(), found.line) == ("cohort.k", 7, "rules + cohort")


def test_the_same_is_asked_once_however_it_is_spelled():
    assert len(parse(["cohort", "cohort:k=10", "cohort:k=10:shards=8"])) == 1


def test_one_value_of_the_usual_setting_still_makes_a_line():
    (found,) = parse(["km:m=2:k=5"])
    assert (found.line, found.along) == ("km m=2", "k")
    assert parse(["rules"])[0].along is None


@pytest.mark.parametrize("text", ["cohort:k", "cohort:k=", "cohort:=5", "cohort:k=5,,7", "cohort:"])
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(UsageError, match="cannot be read"):
        parse([text])


@pytest.mark.parametrize(
    ("text", "error"), [("chort", UnknownName), ("cohort:q=5", UnknownName), ("cohort:k=1", ParameterError)]
)
def test_wrong_names_and_values_are_refused_before_anything_runs(text, error):
    with pytest.raises(error):
        parse([text])


def test_a_candidate_may_be_given_a_name():
    (found,) = parse(["as it is::rules:digits=no"])
    assert (found.name, found.line, found.methods) == ("as it is", "as it is", ("rules",))
    with pytest.raises(UsageError, match="one name"):
        parse(["two::cohort:k=5,10"])


def test_too_many_candidates_are_a_slip():
    many = ",".join(str(number) for number in range(2, 60))
    with pytest.raises(UsageError, match="more than 2,000"):
        parse([f"cohort:k={many}:first={many}"])


def test_attacks_may_come_with_several_settings():
    found = attacks_of(["link-overlap", "link-overlap:on=categories"])
    assert [one.label for one in found] == ["link-overlap", "link-overlap on=categories"]
    with pytest.raises(UsageError, match="named twice"):
        attacks_of(["link-overlap", "link-overlap"])
    with pytest.raises(UsageError, match="cannot be read"):
        Attacked.parse("link-overlap:on")
    with pytest.raises(ParameterError):
        Attacked.parse("link-overlap:on=nothing")


@pytest.mark.parametrize("name", presets.PRESETS)
def test_every_preset_is_a_plan(name):
    plan = presets.preset(name)
    assert plan.candidates
    assert len(plan.jobs()) == len(plan.candidates) * plan.repeats
    assert len({one.name for one in plan.candidates}) == len(plan.candidates)


@pytest.mark.parametrize("name", ["quick", "full"])
def test_a_look_at_everything_has_every_method(name):
    used = {method for one in presets.preset(name).candidates for method in one.methods}
    assert used >= set(METHODS.names())


def test_an_unknown_preset_is_told_with_those_there_are():
    with pytest.raises(UnknownName, match="quick, full"):
        presets.preset("slow")


def test_a_preset_takes_more_methods_and_other_choices():
    plan = asking.planned(["cohort:k=7"], "paper-000", attacks=["guess"], sample=0, seed=5, repeats=2)
    assert plan.candidates[-1].name == "cohort k=7"
    assert ([one.label for one in plan.attacks], plan.sample, plan.seed) == (["guess"], 0, 5)
    assert len({job.seed for job in plan.jobs()}) == 2
    with pytest.raises(UsageError, match="nothing to compare"):
        asking.planned()


def test_a_result_is_kept_under_everything_that_may_change_it():
    plan = asking.planned(["cohort:k=7"])
    keys = {
        plan.jobs()[0].key("one log"),
        plan.jobs()[0].key("another log"),
        plan.with_(seed=2).jobs()[0].key("one log"),
        plan.with_(attacks=attacks_of(["guess"])).jobs()[0].key("one log"),
        plan.with_(measures=("release_rate",)).jobs()[0].key("one log"),
        asking.planned(["cohort:k=8"]).jobs()[0].key("one log"),
        plan.with_(sample=10).halves()[0].key("one log"),
    }
    assert len(keys) == 7
