"""Draws of concepts: exactly by their integer weights, and the same wherever and whenever they are made.

Statistical tests have fixed keys. Each would raise a false alarm for one key in a million (`ALARM`).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from querycloak.kernels import exponential_mechanism as concept_draws
from querycloak.kernels.exponential_mechanism import Weights, draw, shared
from querycloak.methods.dp_semantic.draws import draw_weights, spent
from tests.reference import naive_dp
from tests.reference.small_concepts import CRITERIA, DOMAINS, Small, chances, weight_table

ALARM = 1e-6
KEY = bytes(range(32))
SEEDS = st.integers(0, 10**6)


def drawn(space, concept, epsilon, count, key=KEY, first=0, turn=0):
    """Draw replacements of one concept for many records."""
    weights = draw_weights(space, [(int(space.candidates.domain[concept]), epsilon)])
    record = np.arange(first, first + count)
    like = np.zeros_like(record)
    return draw(like + concept, like, record, like + turn, key, space.candidates, weights)[0]


def unlikely(observed, expected):
    """Give Pearson's statistic and its degrees of freedom; cells that expect few are taken together."""
    few = expected < 10
    cells = [observed[~few], [observed[few].sum()]], [expected[~few], [expected[few].sum()]]
    seen, wanted = (np.concatenate(part) for part in cells)
    seen, wanted = seen[wanted > 0], wanted[wanted > 0]
    return ((seen - wanted) ** 2 / wanted).sum(), wanted.size - 1


def chance_of(space, epsilon, concepts, drawn_by, count):
    """Give the chance that draws by `drawn_by` lie so far from the integers of `epsilon`."""
    statistic = freedom = 0
    for place, concept in enumerate(concepts):
        exact = chances(space, concept, epsilon)
        found = np.bincount(drawn_by(concept, place * count), minlength=max(exact) + 1)
        assert found.sum() == found[list(exact)].sum(), "nothing outside the domain is ever drawn"
        expected = np.array([float(exact[c]) for c in exact]) * count
        more = unlikely(found[list(exact)].astype(float), expected)
        statistic, freedom = statistic + more[0], freedom + more[1]
    return stats.chi2.sf(statistic, freedom) if freedom else 1.0


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 20.0])
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_draws_follow_the_integers(criterion, domain, epsilon):
    for seed in (3, 14, 15):
        small = Small.at_random(seed, 16)
        space = small.space(criterion, domain)
        by = lambda c, first: drawn(space, c, epsilon, 20_000, first=first)  # noqa: B023, E731
        assert chance_of(space, epsilon, small.labelled, by, 20_000) > ALARM / 3


def test_what_a_draw_spends_follows_from_its_largest_and_least_weight():
    """A weight and the sum of all weights each differ by at most that ratio between two inputs."""
    weights = Weights(np.array([[[6, 2], [4, 2]], [[9, 3], [3, 3]]], np.uint64), np.array([2, 3], np.uint64))
    assert spent(weights) == pytest.approx([2 * np.log(3), 2 * np.log(3)])
    assert min(spent(weights)) >= 2 * np.log(3)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_test_rejects_a_wrong_epsilon_and_a_wrong_criterion(criterion):
    small = Small.at_random(3, 16)
    space = small.space(criterion)
    by = lambda c, first: drawn(space, c, 4.3, 20_000, first=first)  # noqa: E731
    assert chance_of(space, 4.0, small.labelled, by, 20_000) < ALARM
    other = small.space({"sqc1": "sqc2", "sqc2": "none", "none": "sqc1"}[criterion])
    assert chance_of(other, 4.3, small.labelled, by, 20_000) < ALARM


def test_the_test_rejects_a_source_that_is_not_random():
    small = Small.at_random(3, 16)
    space = small.space("sqc1")
    by = lambda c, first: np.repeat(drawn(space, c, 4.0, 1_000, first=first), 20)  # noqa: E731
    assert chance_of(space, 4.0, small.labelled, by, 20_000) < ALARM


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=SEEDS, size=st.integers(1, 20), epsilon=st.floats(0.001, 40))
def test_proposals_are_never_less_likely_than_what_they_stand_for(criterion, domain, seed, size, epsilon):
    """A draw is exact if `q >= weight` for all; a statistical test would not see a small fault."""
    small = Small.at_random(seed, size, topics=2)
    space = small.space(criterion, domain)
    features, start = space.candidates.features, space.candidates.features_start
    own = [features[start[c] : start[c + 1]].tolist() for c in range(size)]
    for concept in small.labelled:
        weight, weights = weight_table(space, concept, epsilon)
        steps = np.zeros(space.max_features, np.uint64)
        floor, mine = weights.floor[0], len(own[concept])
        concept_draws._steps.py_func(weights.weight, floor, 0, mine, steps)
        step = dict(zip(own[concept], steps.tolist(), strict=False))
        for other, w in weight.items():
            bound = int(floor) + sum(step.get(feature, 0) for feature in own[other])
            assert bound >= w
        holders = np.diff(space.candidates.holders_start)
        total = int(floor) * len(weight) + sum(step[f] * int(holders[f]) for f in own[concept])
        assert total < 2**64, "and their sum fits into a word"


@given(st.lists(st.integers(10, 1000), min_size=1, max_size=12))
def test_steps_never_fall_and_reach_every_weight(grown):
    """Whatever the weights: any `i` steps then add up to at least the first `i`, which reach the weight."""
    mine, floor = len(grown), np.uint64(10)
    weight = np.full((1, mine + 1, mine + 1), floor)
    weight[0, mine, 1:] = np.maximum.accumulate(grown)
    steps = np.zeros(mine, np.uint64)
    concept_draws._steps.py_func(weight, floor, 0, mine, steps)
    assert (np.diff(steps.astype(np.int64)) >= 0).all()
    assert (10 + np.cumsum(steps) >= weight[0, mine, 1:]).all()


@given(seed=SEEDS, size=st.integers(1, 20), rng=st.randoms(use_true_random=False))
def test_shared_features_are_those_of_sets_in_any_order(seed, size, rng):
    small = Small.at_random(seed, size)
    space = small.space("sqc1")
    inside = naive_dp.minimum_taxonomy(small.taxonomy, small.labelled)
    above = {c: naive_dp.subsumers(small.taxonomy, c) & inside for c in small.labelled}
    pairs = [(rng.choice(small.labelled), rng.choice(small.labelled)) for _ in range(30)]
    common, union = shared(*np.array(pairs).T, space.candidates)
    assert common.tolist() == [len(above[a] & above[b]) for a, b in pairs]
    assert union.tolist() == [len(above[a] | above[b]) for a, b in pairs]


@given(SEEDS, st.integers(1, 16), st.floats(0.01, 30), st.randoms(use_true_random=False))
def test_a_draw_is_the_same_in_any_order_and_any_cut(seed, size, epsilon, rng):
    small = Small.at_random(seed, size)
    space = small.space("sqc1", "topic")
    weights = draw_weights(space, [(d, e) for d in range(space.domains) for e in (epsilon, epsilon / 3)])
    rows = np.array(
        [[rng.choice(small.labelled), rng.randrange(2), rng.randrange(2**62), turn] for turn in range(30)]
    )
    concept, half, record, turn = rows.T
    table = 2 * space.candidates.domain[concept] + half
    whole = draw(concept, table, record, turn, KEY, space.candidates, weights)[0]
    order = np.array(rng.sample(range(30), 30))
    cut = rng.randrange(31)
    for part in (order[:cut], order[cut:]):
        again = draw(concept[part], table[part], record[part], turn[part], KEY, space.candidates, weights)[0]
        assert again.tolist() == whole[part].tolist()


DEEP = Small.at_random(8, 16)
NAMES = [
    ("turns", {}, {"turn": 1}),
    ("records", {}, {"first": 1}),
    ("records beyond 32 bits", {}, {"first": 1 << 32}),
    ("keys that differ in a bit", {}, {"key": bytes([1, *range(1, 32)])}),
    ("keys that differ in the last bit", {}, {"key": bytes([*range(31), 31 ^ 128])}),
]


@pytest.mark.parametrize(("one", "other"), [name[1:] for name in NAMES], ids=[name[0] for name in NAMES])
def test_draws_by_other_names_are_independent(one, other):
    """Pearson's test of independence of the two draws for 50,000 records."""
    space, concept = DEEP.space("sqc1"), DEEP.labelled[0]
    first, second = (drawn(space, concept, 2.0, 50_000, **more) for more in (one, other))
    assert (first != second).any()
    exact = chances(space, concept, 2.0)
    place = {c: i for i, c in enumerate(exact)}
    chance = np.array([float(p) for p in exact.values()])
    cells = [place[c] for c in first.tolist()], [place[c] for c in second.tolist()]
    together = np.zeros((chance.size, chance.size))
    np.add.at(together, cells, 1)
    statistic, freedom = unlikely(together.ravel(), np.outer(chance, chance).ravel() * 50_000)
    assert stats.chi2.sf(statistic, freedom) > ALARM


def test_a_concept_alone_in_its_domain_stays_itself():
    small = Small({0: [], 1: [0], 2: [0]}, (1, 2), (0, 0, 1))
    for criterion in CRITERIA:
        space = small.space(criterion, "topic")
        assert set(drawn(space, 1, 5.0, 100).tolist()) == {1}
        assert set(drawn(space, 2, 5.0, 100).tolist()) == {2}


def test_no_draws_are_no_trouble():
    nothing = np.zeros(0, np.int64)
    space = DEEP.space("sqc1")
    weights = draw_weights(space, [(0, 1.0)])
    assert draw(nothing, nothing, nothing, nothing, KEY, space.candidates, weights)[0].size == 0
