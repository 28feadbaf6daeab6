"""Draws over all of WordNet against its integers, and these against eq. 3, 7 and 8, concept by concept.

Seeded; each test of draws would raise a false alarm for one key in a million.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

from querycloak.kernels.exponential_mechanism import draw, shared
from querycloak.methods.dp_semantic.draws import draw_weights
from querycloak.text.concept_space import concept_space, partition_by_topic
from querycloak.text.senses import concept_lexicon
from querycloak.text.wordnet import wordnet
from tests.reference import naive_dp

ALARM = 1e-6
DRAWS = 200_000
KEY = bytes(range(1, 33))
SENSES = ("influenza.n.01", "tennis.n.01", "dog.n.01")


@cache
def above():
    """Give S(c) of every concept as a set, by walking up."""
    graph = wordnet()
    found = {}

    def walk(concept):
        if concept not in found:
            found[concept] = frozenset({concept}).union(*(walk(p) for p in graph.parents[concept].tolist()))
        return found[concept]

    return [walk(concept) for concept in range(len(graph.parents))]


@cache
def naive_shared(domain, topics):
    """Give the candidates of a domain, by their topic, and what counts as a subsumer there."""
    concepts, of = concept_lexicon(), partition_by_topic(concept_lexicon(), topics).of
    members = [c for c in concepts.labelled.tolist() if domain is None or of[c] == domain]
    common = frozenset.intersection(*(above()[c] for c in members))
    top = min(common, key=lambda c: (-len(above()[c]), c))
    return members, {c for c, higher in enumerate(above()) if top in higher}


def likeness(concept, criterion, domain, topics):
    """Give the candidates for a concept, and the quality of each, by sets."""
    of = partition_by_topic(concept_lexicon(), topics).of
    members, inside = naive_shared(int(of[concept]) if domain == "topic" else None, topics)
    mine = above()[concept] & inside
    found = []
    for other in members:
        theirs = above()[other] & inside
        if criterion == "none":
            found.append(float(other == concept))
        elif criterion == "sqc2" and of[other] != of[concept]:
            found.append(0.0)
        else:
            found.append(naive_dp.sim(mine, theirs))
    return np.array(members), np.array(found)


@cache
def space(criterion, domain, topics):
    found = partition_by_topic(concept_lexicon(), topics)
    return concept_space(concept_lexicon(), found, criterion, found if domain == "topic" else None)


def integers(concept, criterion, domain, topics, epsilon):
    """Give candidates, the weight that the equations give to each, and the table of integer weights."""
    made = space(criterion, domain, topics)
    home = int(made.candidates.domain[concept])
    weights = draw_weights(made, [(home, epsilon)])
    members, quality = likeness(concept, criterion, domain, topics)
    rate = epsilon / 2 / (1 - made.min_similarity[home])
    exact = np.exp(rate * (quality - made.min_similarity[home]))
    return members, exact, weights


CASES = [
    (criterion, domain, topics)
    for criterion in ("sqc1", "sqc2", "none")
    for domain, topics in (("all", "paper-4"), ("topic", "categories"), ("topic", "paper-4"))
]


@pytest.mark.parametrize(("criterion", "domain", "topics"), CASES)
def test_the_integers_are_the_equations(criterion, domain, topics):
    made = space(criterion, domain, topics)
    for sense in SENSES:
        concept = wordnet().find(sense)
        members, exact, weights = integers(concept, criterion, domain, topics, 5.0)
        assert made.members(int(made.candidates.domain[concept])).tolist() == members.tolist()
        common, union = shared(np.full(members.size, concept), members, made.candidates)
        weight = weights.weight[0, union, common] / float(weights.floor[0])
        assert weight == pytest.approx(exact, rel=1e-9)
        assert weight / weight.sum() == pytest.approx(exact / exact.sum(), rel=1e-9)


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.parametrize(("criterion", "domain", "topics"), CASES)
def test_draws_follow_the_integers(criterion, domain, topics, epsilon):
    """Candidates are taken together by equal likeness, and by one of seven parts of each such class."""
    made = space(criterion, domain, topics)
    for sense in SENSES[:2]:
        concept = wordnet().find(sense)
        members, exact, weights = integers(concept, criterion, domain, topics, epsilon)
        classes, cell = np.unique(np.round(exact, 9), return_inverse=True)
        cell = cell * 7 + np.arange(members.size) % 7
        record = np.arange(DRAWS)
        like = np.zeros_like(record)
        found = draw(like + concept, like, record, like, KEY, made.candidates, weights)[0]
        place = np.searchsorted(members, found)
        assert (members[place] == found).all()
        seen = np.bincount(cell[place], minlength=7 * classes.size)
        wanted = np.bincount(cell, exact, minlength=7 * classes.size) / exact.sum() * DRAWS
        few = wanted < 10
        seen, wanted = np.append(seen[~few], seen[few].sum()), np.append(wanted[~few], wanted[few].sum())
        seen, wanted = seen[wanted > 0], wanted[wanted > 0]
        assert stats.chi2.sf(((seen - wanted) ** 2 / wanted).sum(), max(wanted.size - 1, 1)) > ALARM / 2


def test_the_least_likeness_of_small_topics_is_that_of_all_pairs():
    made, of = space("sqc1", "topic", "paper-4"), partition_by_topic(concept_lexicon(), "paper-4").of
    for topic in range(4):
        members, inside = naive_shared(topic, "paper-4")
        sets = {above()[c] & inside for c in members}
        least = min(naive_dp.sim(one, other) for one in sets for other in sets)
        home = int(made.candidates.domain[members[0]])
        assert set(of[members].tolist()) == {topic}
        assert made.min_similarity[home] == pytest.approx(least, abs=1e-12)


def test_the_least_likeness_of_all_is_met_and_never_undercut():
    made = space("sqc1", "all", "paper-4")
    sets = sorted((above()[c] for c in concept_lexicon().labelled.tolist()), key=len, reverse=True)
    rng = np.random.default_rng(5)
    pairs = rng.integers(0, len(sets), (100_000, 2)).tolist()
    assert min(naive_dp.sim(sets[a], sets[b]) for a, b in pairs) >= made.min_similarity[0]
    some = sets[:700]
    assert min(naive_dp.sim(one, other) for one in some for other in some) == pytest.approx(
        made.min_similarity[0]
    )
