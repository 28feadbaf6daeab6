"""What the page on paper 002 rests on: the divergence, the draws, and the noise that is drawn at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from papers.p002.exact import staying
from papers.p002.mechanisms import _noisy, blank, divergences, drawn, histogram, losses
from papers.p002.results import CRITERIA
from papers.p002.run import EXACT, plans
from papers.p002.workload import LOGS, Histories, World

from querycloak.measures import jensen_shannon

#: Standard errors by which a mean may be off: each comparison raises a false alarm once in 30,000 seeds.
OFF = 4.15


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def histories(world: World) -> Histories:
    return Histories.of(world, 40, 7)


def test_divergences_are_those_of_the_library():
    chance = np.random.default_rng(1)
    first, second = chance.integers(0, 4, (2, 300, 6))
    first[:, 0] += 1
    second[:, 5] += 1
    wanted = [jensen_shannon(p.tolist(), q.tolist()) for p, q in zip(first, second, strict=True)]
    assert divergences(first, second) == pytest.approx(wanted, abs=1e-12)


def test_equal_profiles_have_a_divergence_of_exactly_zero():
    counts = np.random.default_rng(2).integers(0, 50, (1000, 20)) + 1
    assert (divergences(counts, counts) == 0.0).all()


def test_a_profile_that_is_gone_counts_and_one_that_never_was_does_not():
    found = losses([[3, 1, 2], [0, 0, 5], [2, 2, 0]], [[[0, 0, 6], [1, 1, 3], [2, 2, 0]]])
    assert found["listed"] == (1.0 + 0.0) / 2
    assert found["emptied"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("setting", EXACT)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("per", ["history", "query"])
def test_nothing_is_lost_within_the_topics_of_the_profile(world, histories, setting, criterion, per):
    for epsilon in (0.1, 10.0):
        found = drawn(world, histories, setting, criterion, per, epsilon, 2, "zero")
        assert found["loss"] == found["listed"] == 0.0
        assert found["stay"] == 1.0


@pytest.mark.parametrize("setting", ["A", "C"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_queries_stay_in_their_topic_as_often_as_the_weights_say(world, histories, setting, criterion):
    asked, number = np.unique(histories.concept, return_inverse=True)
    space, topics = world.space(setting, criterion), world.settings[setting].profile
    chance = staying(space, topics, asked, (10.0,))[10.0][number]
    found = drawn(world, histories, setting, criterion, "query", 10.0, 3, "stay")
    error = math.sqrt((chance * (1 - chance)).sum() / 3) / chance.size
    assert abs(found["stay"] - chance.mean()) < OFF * error


def test_noise_drawn_at_once_is_like_noise_drawn_count_by_count():
    users, rate = 20_000, 0.8
    topic, sizes = np.array([0] * 5 + [1] * 40, np.int32), np.array([5, 40])
    user, concept = np.repeat(np.arange(users), 3), np.tile([1, 1, 9], users)
    at_once = _noisy(user, concept, topic, sizes, np.full(users, rate), np.random.default_rng(3))
    chance = np.random.default_rng(4)
    counts = np.zeros((users, 45), np.int64)
    counts[:, 1], counts[:, 9] = 2, 1
    counts += chance.geometric(1 - rate, counts.shape) - chance.geometric(1 - rate, counts.shape)
    one_by_one = np.stack([np.maximum(counts[:, topic == t], 0).sum(axis=1) for t in (0, 1)], axis=1)
    for power in (1, 2):  # means, and second moments
        a, b = at_once.astype(float) ** power, one_by_one.astype(float) ** power
        error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / users)
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < OFF * error).all()


def test_a_histogram_with_little_budget_tells_nothing(world, histories):
    for setting in ("A", "B", "C"):
        noisy = histogram(world, histories, setting, "hbdp", "history", 0.1, 3, "noise")["loss"]
        if setting != "A":  # there, the others are told the topics
            assert noisy == pytest.approx(blank(world, histories, setting)["loss"], abs=0.005)


def test_a_group_may_spend_what_its_queries_may_together(world, histories):
    plain = drawn(world, histories, "A", "sqc2", "history", 10.0, 3, "plain")
    grouped = drawn(world, histories, "A", "sqc2", "group 5", 10.0, 3, "grouped")
    assert 4 * plain["per_draw"] < grouped["per_draw"] <= 7 * plain["per_draw"]


@pytest.mark.parametrize("way", ["group 3", "middles 3"])
def test_groups_do_not_change_the_topics_that_show_anyway(world, histories, way):
    assert drawn(world, histories, "D(q)=P 4", "sqc1", way, 10.0, 2, "topics")["loss"] == 0.0


def test_made_up_histories_are_the_same_every_time(world):
    for log, (_, rest) in LOGS.items():
        first, second = (Histories.of(world, 30, 3, log) for _ in range(2))
        assert (first.concept == second.concept).all()
        assert np.isin(first.concept, world.inside).all()
        assert rest or (world.nineteen.of[first.concept] < 19).all()


def test_no_plan_is_there_twice():
    names = [plan.name for plan in plans(quick=False)]
    assert len(set(names)) == len(names)
