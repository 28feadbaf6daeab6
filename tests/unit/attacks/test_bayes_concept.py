"""`bayes-concept`: guesses are the likeliest by Bayes, and no better than the ceiling lets them be."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import querycloak as qc
from querycloak.attacks.finding import linkage
from querycloak.knowledge import Knowledge
from querycloak.methods.dp_semantic.channel import Prior, best_guesses, totals
from tests.reference.small_concepts import CRITERIA, DOMAINS, Small, chances, weight_table
from tests.support.logs import made_up
from tests.support.releases import release as shared_release


def laid_out(criterion, domain, seed=3, size=24):
    """A small space, and a prior over its concepts, the commonest first."""
    small = Small.at_random(seed, size)
    space = small.space(criterion, domain)
    concept = np.array(small.labelled, np.int64)
    chance = np.random.default_rng(seed).dirichlet(np.ones(concept.size))
    order = np.argsort(-chance)
    return space, Prior(concept[order], np.log(chance[order]))


@pytest.mark.parametrize("epsilon", [0.1, 3.0, 12.0])
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_guesses_are_the_likeliest_originals(criterion, domain, epsilon):
    """Sums are estimated by 64 classes of likeness, so a guess may miss the best by a little."""
    space, prior = laid_out(criterion, domain)
    exact = {c: chances(space, c, epsilon) for c in prior.concept.tolist()}
    shown = np.array(sorted(exact), np.int64)
    level, half = np.zeros(shown.size, np.int64), np.array([epsilon / 2])
    found = best_guesses(shown, level, half, prior, space.candidates, space.scaled_similarity())
    for output, place in zip(shown.tolist(), found.tolist(), strict=True):
        joint = [
            math.exp(log) * float(exact[c].get(output, 0))
            for c, log in zip(prior.concept.tolist(), prior.log.tolist(), strict=True)
        ]
        assert joint[place] >= 0.9 * max(joint)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_sums_of_weights_are_estimated_well(criterion):
    space, prior = laid_out(criterion, "all", seed=5, size=40)
    for epsilon in (0.5, 6.0):
        found = np.exp(
            totals(prior.concept, np.array([epsilon / 2]), space.candidates, space.scaled_similarity())
        )[0]
        for concept, told in zip(prior.concept.tolist(), found.tolist(), strict=True):
            weight, table = weight_table(space, concept, epsilon)
            assert told == pytest.approx(sum(weight.values()) / int(table.floor[0]), rel=0.02)


def test_a_concept_of_no_domain_of_the_prior_gets_no_guess():
    space, prior = laid_out("sqc1", "topic")
    home = space.candidates.domain
    other = prior.concept[home[prior.concept] != home[prior.concept[0]]][:1]
    few = Prior(prior.concept[:1], prior.log[:1])
    zero = np.zeros(1, np.int64)
    assert (
        best_guesses(other, zero, np.array([1.0]), few, space.candidates, space.scaled_similarity())[0] == -1
    )


@pytest.fixture(scope="module")
def log():
    return made_up(200, seed=8)


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 5},
        {"epsilon": 2, "per": "query", "criterion": "sqc1"},
        {"epsilon": 5, "domain": "topic"},
        {"epsilon": 8, "max_queries": 20},
        {"epsilon": 9, "prior": "microagg-semantic"},
    ],
    ids=str,
)
def test_the_ceiling_holds_and_the_prior_is_where_it_starts(log, settings):
    release = shared_release(log, "dp-semantic", seed=2, **settings)
    (found,) = qc.attack(release, log, "bayes-concept")
    assert (found.unit, found.game) == ("concept", "inference")
    assert linkage([found], Knowledge.EVERYTHING) is None  # a concept is no person
    assert found.holds
    assert found.details["prior_of_guesses"] <= found.bound == pytest.approx(found.details["ceiling"])
    assert found.n + found.details["left_out"] == found.details["phrases"]
    assert found.success > 0


def test_the_ceiling_is_the_formula():
    log = qc.Log(pl.DataFrame({"row": range(4), "user": list("abcd"), "query": ["cat", "cat", "cat", "dog"]}))
    release = shared_release(log, "dp-semantic", epsilon=2.0, seed=2)
    (found,) = qc.attack(release, log, "bayes-concept")
    pi = 0.75  # every guess is the cat: nothing that was drawn speaks e² against it
    assert found.bound == pytest.approx(pi * math.exp(2) / (pi * math.exp(2) + 1 - pi))
    assert found.success == 0.75
    assert found.details["epsilon_per_draw_largest"] == 2.0


def test_a_large_epsilon_gives_the_original_away(log):
    """The attack is no straw man: where little is hidden, it finds most."""
    release = shared_release(log, "dp-semantic", epsilon=40, per="query", seed=2)
    for prior in ("log", "uniform"):
        (found,) = qc.attack(release, log, "bayes-concept", prior=prior)
        assert found.success > 0.7


def test_other_releases_are_not_its_business(log):
    release = shared_release(log, "rules", seed=2)
    (found,) = qc.attack(release, log, "bayes-concept")
    assert found.not_applicable == "no method of the release publishes how it replaces concepts"
