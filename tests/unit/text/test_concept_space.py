"""The space of concepts against the paper: eq. 5 by sets, and integer weights against eq. 3, 7 and 8."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import naive_dp
from tests.reference.small_concepts import (
    CRITERIA,
    DOMAINS,
    TOY,
    TOY_NAMES,
    Small,
    chances,
    ragged,
    rounding,
    tree_of,
    weight_table,
)

from querycloak.errors import ParameterError, UsageError
from querycloak.methods.dp_semantic.draws import LARGEST_EPSILON, draw_weights, spent
from querycloak.text import similarity
from querycloak.text._ancestry import ancestors
from querycloak.text.concept_space import TopicPartition, concept_space
from querycloak.text.senses import ConceptLexicon
from querycloak.text.wordnet import RaggedArray

TOY_SMALL = Small(TOY, tuple(range(7)), (0, 0, 0, 0, 0, 1, 1))
ACCEPTED = [("A", "A1", 0.58496), ("A1", "A2", 0.41504), ("A1x", "B1", 0.12553)]
SEEDS = st.integers(0, 10**6)
EPSILONS = st.sampled_from([0.001, 0.05, 0.7, 1.0, 3.3, 10.0, 25.0, LARGEST_EPSILON])


@pytest.mark.parametrize(("one", "other", "wanted"), ACCEPTED)
def test_equation_5_on_the_toy_tree(one, other, wanted):
    a, b = TOY_NAMES.index(one), TOY_NAMES.index(other)
    above = [naive_dp.subsumers(TOY, concept) for concept in (a, b)]
    assert similarity(*above) == pytest.approx(wanted, abs=5e-6)
    assert naive_dp.sim(*above) == pytest.approx(wanted, abs=5e-6)
    found = TOY_SMALL.space("sqc1").similarities(np.array([a]), np.array([b]))
    assert found[0] == pytest.approx(wanted, abs=5e-6)
    flat, start = ancestors(TOY_SMALL.concepts.parents.flat, TOY_SMALL.concepts.parents.start)
    sets = [set(flat[start[c] : start[c + 1]].tolist()) for c in (a, b)]
    assert similarity(*sets) == pytest.approx(wanted, abs=5e-6)


def test_equation_6_gives_nothing_to_another_topic_and_12_only_to_itself():
    a1, a2, b1 = (TOY_NAMES.index(name) for name in ("A1", "A2", "B1"))
    first, second = np.array([a1, a1, a1]), np.array([a1, a2, b1])
    assert TOY_SMALL.space("sqc2").similarities(first, second) == pytest.approx([1, 0.41504, 0], abs=5e-6)
    assert TOY_SMALL.space("none").similarities(first, second).tolist() == [1, 0, 0]


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=SEEDS, size=st.integers(1, 14), epsilon=EPSILONS)
def test_integers_are_equations_3_7_and_8(criterion, domain, seed, size, epsilon):
    small = Small.at_random(seed, size)
    space, naive = small.space(criterion, domain), small.naive(criterion, domain)
    for concept in small.labelled:
        found = chances(space, concept, epsilon)
        wanted = naive.probabilities(concept, epsilon)
        _, weights = weight_table(space, concept, epsilon)
        assert found.keys() == wanted.keys()
        for other, chance in wanted.items():
            assert float(found[other]) == pytest.approx(chance, rel=rounding(weights))


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=SEEDS, size=st.integers(1, 14))
def test_likeness_is_that_of_the_naive_criterion(criterion, domain, seed, size):
    small = Small.at_random(seed, size)
    space, naive = small.space(criterion, domain), small.naive(criterion, domain)
    for one in small.labelled:
        others = np.array(naive.domain(one))
        found = space.similarities(np.full(others.size, one), others)
        assert found == pytest.approx([naive.quality(one, other) for other in others.tolist()], abs=1e-12)
        span = 1 - space.min_similarity[space.candidates.domain[one]]
        assert span == pytest.approx(naive.sensitivity(one), abs=1e-12)


def _at_most(ratio: Fraction, epsilon: float) -> bool:
    """Say whether a ratio is at most e^ε, without a rounding error that could hide a fault."""
    with localcontext() as exact:
        exact.prec = 60
        return Decimal(ratio.numerator) <= Decimal(ratio.denominator) * Decimal(epsilon).exp()


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=SEEDS, size=st.integers(1, 20), epsilon=st.one_of(EPSILONS, st.floats(1e-7, LARGEST_EPSILON)))
def test_no_weight_is_more_than_the_half_power_above_another(criterion, domain, seed, size, epsilon):
    small = Small.at_random(seed, size)
    space = small.space(criterion, domain)
    tables = [(d, epsilon) for d in range(space.domains)]
    weights = draw_weights(space, tables)
    for table, floor, said in zip(weights.weight, weights.floor, spent(weights), strict=True):
        ratio = Fraction(int(table.max()), int(floor))
        assert int(table.min()) == int(floor) > 0
        assert _at_most(ratio, epsilon / 2)
        assert _at_most(ratio * ratio, said), "what is said to be spent is no less than what is"
        assert said <= epsilon
        if (table > floor).any() and epsilon > 1e-3:
            assert said >= epsilon * (1 - 1e-6), "and hardly less than was asked for"


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=SEEDS, size=st.integers(1, 12), epsilon=EPSILONS)
def test_no_output_tells_two_inputs_apart_by_more_than_is_said(criterion, domain, seed, size, epsilon):
    small = Small.at_random(seed, size)
    space = small.space(criterion, domain)
    said = spent(draw_weights(space, [(d, epsilon) for d in range(space.domains)]))
    by_concept = {concept: chances(space, concept, epsilon) for concept in small.labelled}
    for one, chance in by_concept.items():
        home = int(space.candidates.domain[one])
        for other in space.members(home).tolist():
            worst = max(chance[out] / by_concept[other][out] for out in chance)
            assert _at_most(worst, said[home])
            assert _at_most(worst, epsilon)


@given(seed=SEEDS, size=st.integers(2, 14))
def test_sums_of_weights_never_overflow(seed, size):
    small = Small.at_random(seed, size)
    for criterion in CRITERIA:
        space = small.space(criterion)
        weights = draw_weights(space, [(0, 1e-6), (0, LARGEST_EPSILON)])
        assert all(int(table.max()) * len(small.labelled) <= 2**62 for table in weights.weight)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, LARGEST_EPSILON * 1.01])
def test_a_draw_that_would_show_its_input_is_refused(epsilon):
    with pytest.raises(ParameterError, match="a single draw would spend"):
        draw_weights(TOY_SMALL.space("sqc1"), [(0, epsilon)])


@pytest.mark.parametrize("criterion", CRITERIA)
def test_what_cannot_be_said_is_no_candidate(criterion):
    space = Small(TOY, (2, 3, 6), (0,) * 7).space(criterion)
    assert space.members(0).tolist() == [2, 3, 6]
    assert space.candidates.domain.tolist() == [-1, -1, 0, 0, -1, -1, 0]


def test_a_root_narrows_the_domain_and_what_counts_as_subsumer():
    space = concept_space(TOY_SMALL.concepts, TOY_SMALL.topics, "sqc1", root=1)
    naive = naive_dp.Mechanism(TOY, (1, 2, 3, 4), dict(enumerate(TOY_SMALL.topic)), "sqc1")
    assert space.members(0).tolist() == [1, 2, 3, 4]
    assert naive_dp.minimum_taxonomy(TOY, (1, 2, 3, 4)) == {1, 2, 3, 4}
    found = space.similarities(np.array([2, 3, 2]), np.array([4, 4, 3]))
    assert found == pytest.approx([naive.quality(a, b) for a, b in ((2, 4), (3, 4), (2, 3))])


def test_nothing_to_say_and_several_roots_are_refused():
    with pytest.raises(UsageError, match="no concept of the taxonomy can be said"):
        Small(TOY, (), (0,) * 7).space("sqc1")
    two = ConceptLexicon(ragged({0: [], 1: []}), [("red thing", 0), ("blue thing", 1)], *tree_of(["a", "b"]))
    topics = Small({0: [], 1: []}, (0, 1), (0, 0)).topics
    with pytest.raises(UsageError, match="several roots"):
        concept_space(two, topics, "sqc1")
    assert concept_space(two, topics, "none").members(0).tolist() == [0, 1]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_many_concepts_of_many_topics_are_kept_apart(criterion):
    """256 topics and 66,000 concepts: numbers of features must not run over."""
    topics, size = 256, 66_000
    place = np.arange(size - 1 - topics)
    parent = np.concatenate([np.zeros(topics, np.int32), 1 + place % topics]).astype(np.int32)
    start = np.concatenate([[0, 0], np.arange(1, size)]).astype(np.int32)
    topic = np.concatenate([[0], np.arange(topics), place % topics]).astype(np.int32)
    made = ConceptLexicon(
        RaggedArray(parent, start), [(f"word{c}", c) for c in range(size)], *tree_of([""] * size)
    )
    of = TopicPartition(tuple(map(str, range(topics))), topic)
    space = concept_space(made, of, criterion, of)
    leaf = np.arange(300, 400)
    far = leaf[leaf + 65_536 < size] + 65_536
    near = far - 65_536
    assert far.size > 50
    found = space.similarities(near, far)
    same_topic = naive_dp.sim({0, 1}, {0, 2})  # a topic's own concept and one of two leaves below it
    assert found == pytest.approx(np.full(far.size, 0.0 if criterion == "none" else same_topic))
