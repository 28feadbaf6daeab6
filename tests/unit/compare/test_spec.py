"""What a comparison is asked: methods with values, attacks with settings, presets by name."""

from __future__ import annotations

import pytest

from querycloak.compare import plan as presets
from querycloak.compare.spec import AttackSpec, parse_attacks, parse_candidates
from querycloak.errors import ParameterError, UnknownName, UsageError
from querycloak.registry import METHODS


def test_several_values_give_all_combinations():
    found = parse_candidates(["cohort:time=keep,drop:k=5,10"])
    assert [one.name for one in found] == [
        "cohort time=keep k=5",
        "cohort time=keep k=10",
        "cohort time=drop k=5",
        "cohort time=drop k=10",
    ]
    assert [one.series for one in found] == ["cohort time=keep"] * 2 + ["cohort time=drop"] * 2
    assert [one.varied_value() for one in found] == [5, 10, 5, 10]


def test_methods_compose_and_settings_find_their_method():
    (found,) = parse_candidates(["rules+cohort:cohort.k=7"])
    assert found.methods == ("rules", "cohort")
    assert found.full_settings()["cohort"]["k"] == 7
    assert (found.varied_setting, found.varied_value(), found.series) == ("cohort.k", 7, "rules + cohort")


def test_the_same_is_asked_once_however_it_is_spelled():
    assert len(parse_candidates(["cohort", "cohort:k=10", "cohort:k=10:shards=8"])) == 1


def test_one_value_of_the_usual_setting_still_makes_a_line():
    (found,) = parse_candidates(["km:m=2:k=5"])
    assert (found.series, found.varied_setting) == ("km m=2", "k")
    assert parse_candidates(["rules"])[0].varied_setting is None


def test_the_varied_setting_is_the_one_that_the_last_method_names():
    (found,) = parse_candidates(["z-anonymity+cohort:z=2:k=4"])
    assert found.varied_setting == "k"
    (found,) = parse_candidates(["z-anonymity+cohort:z=2"])
    assert found.varied_setting == "z"
    (found,) = parse_candidates(["threshold-dp:output=log:K=20:d=5"])
    assert found.varied_setting == "d"


@pytest.mark.parametrize("text", ["cohort:k", "cohort:k=", "cohort:=5", "cohort:k=5,,7", "cohort:"])
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(UsageError, match="cannot be read"):
        parse_candidates([text])


@pytest.mark.parametrize(
    ("text", "error"), [("chort", UnknownName), ("cohort:q=5", UnknownName), ("cohort:k=1", ParameterError)]
)
def test_wrong_names_and_values_are_refused_before_anything_runs(text, error):
    with pytest.raises(error):
        parse_candidates([text])


def test_a_candidate_may_be_given_a_name():
    (found,) = parse_candidates(["as it is::rules:digits=no"])
    assert (found.name, found.series, found.methods) == ("as it is", "as it is", ("rules",))
    with pytest.raises(UsageError, match="one name"):
        parse_candidates(["two::cohort:k=5,10"])


def test_too_many_candidates_are_a_slip():
    many = ",".join(str(number) for number in range(2, 60))
    with pytest.raises(UsageError, match="more than 2,000"):
        parse_candidates([f"cohort:k={many}:first={many}"])


def test_attacks_may_come_with_several_settings():
    found = parse_attacks(["link-overlap", "link-overlap:on=categories"])
    assert [one.label for one in found] == ["link-overlap", "link-overlap on=categories"]
    with pytest.raises(UsageError, match="named twice"):
        parse_attacks(["link-overlap", "link-overlap"])
    with pytest.raises(UsageError, match="cannot be read"):
        AttackSpec.parse("link-overlap:on")
    with pytest.raises(ParameterError):
        AttackSpec.parse("link-overlap:on=nothing")


@pytest.mark.parametrize("name", presets.presets())
def test_every_preset_is_a_plan(name):
    plan = presets.preset_plan(name)
    assert plan.candidates
    assert len(plan.jobs()) == len(plan.candidates) * plan.repeats
    assert len({one.name for one in plan.candidates}) == len(plan.candidates)


@pytest.mark.parametrize("name", ["quick", "full"])
def test_a_look_at_everything_has_every_method(name):
    used = {method for one in presets.preset_plan(name).candidates for method in one.methods}
    assert used >= set(METHODS.names())


def test_an_unknown_preset_is_told_with_those_there_are():
    with pytest.raises(UnknownName, match="quick, full"):
        presets.preset_plan("slow")


def test_a_preset_takes_more_methods_and_other_choices():
    plan = presets.make_plan(["cohort:k=7"], "paper-000", attacks=["guess"], sample=0, seed=5, repeats=2)
    assert plan.candidates[-1].name == "cohort k=7"
    assert ([one.label for one in plan.attacks], plan.sample, plan.seed) == (["guess"], 0, 5)
    assert len({job.seed for job in plan.jobs()}) == 2
    with pytest.raises(UsageError, match="nothing to compare"):
        presets.make_plan()


def test_a_result_is_kept_under_everything_that_may_change_it():
    plan = presets.make_plan(["cohort:k=7"])
    keys = {
        plan.jobs()[0].key("one log"),
        plan.jobs()[0].key("another log"),
        plan.with_(seed=2).jobs()[0].key("one log"),
        plan.with_(attacks=parse_attacks(["guess"])).jobs()[0].key("one log"),
        plan.with_(measures=("release_rate",)).jobs()[0].key("one log"),
        presets.make_plan(["cohort:k=8"]).jobs()[0].key("one log"),
    }
    assert len(keys) == 6
