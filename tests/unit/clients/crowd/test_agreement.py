"""Simulator and peers agree: the same small network and the same vectors give the same submitters."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2_contingency

from querycloak.clients.crowd import kernel, network, simulator
from tests.support.in_memory_crowd import InMemoryNetwork

PAIRS = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (5, 3), (2, 5), (6, 2), (6, 3), (7, 6)]
SEED, QUERIES = 11, 16_000


def simulated(**behaviour):
    one, other = (np.array(side, np.int32) for side in zip(*PAIRS, strict=True))
    net = network.friendships(8, one, other)
    author = simulator.authors(8, QUERIES, SEED)
    trace = simulator.simulate(net, author, simulator.Behaviour(**behaviour), SEED)
    table = np.zeros((8, 8), int)
    np.add.at(table, (trace.author, trace.outcomes["submitter"]), 1)
    return table, trace.hops


def vector(member):
    """Give the draws of a member's vector as the simulator draws them."""
    purposes = (kernel._COPIES, kernel._SHARE, kernel._BEGIN)
    return [float(kernel._fixed(np.uint64(SEED), purpose, member, 0)) for purpose in purposes]


def by_members(**settings):
    crowd = InMemoryNetwork(
        PAIRS, seed=3, vectors={member: vector(member) for member in range(8)}, **settings
    )
    for number in range(QUERIES):
        crowd.search(number % 8, f"{number % 8} {number}")
        crowd.settle()
    table = np.zeros((8, 8), int)
    for submitter, text in crowd.submitted:
        table[int(text.split()[0]), submitter] += 1
    hops = sum(member.counts["queries_accepted"] for member in crowd.members.values()) / QUERIES
    return table, hops


def differ(one, other):
    """Give how likely tables this different are, if they are alike: of the author who differs most."""
    chances = []
    for a, b in zip(one, other, strict=True):
        seen = a + b > 0
        chances.append(chi2_contingency(np.array([a[seen], b[seen]])).pvalue)
    return min(chances)


def test_members_submit_for_each_other_as_in_the_simulator():
    """Without penalties queries are independent: eight chi-square tests at 1e-6, false alarms below 1e-5."""
    (one, hops), (other, more_hops) = simulated(penalty=0.0), by_members(penalty=0.0)
    assert differ(one, other) > 1e-6
    assert abs(hops - more_hops) < 0.3  # the deviation of a mean of 16,000 is about 0.03


def test_they_also_agree_with_trust_and_refusals():
    """Queries hang together a little here, so no exact test: shares of 2,000 queries within 0.08.

    The simulator follows the thesis after a refusal: so must members here (`redraw`), though it is not how
    they are by default. That is 5 sigma of two independent shares (0.016 at most); eight authors
    with eight submitters each.
    """
    (one, _), (other, _) = simulated(), by_members(redraw="vector")
    shares = [table / table.sum(axis=1, keepdims=True) for table in (one, other)]
    assert np.abs(shares[0] - shares[1]).max() < 0.08


def test_the_comparison_notices_another_protocol():
    (one, _), (other, _) = simulated(penalty=0.0), by_members(penalty=0.0, back=False)
    assert differ(one, other) < 1e-6
