"""The click graph falls apart, step by step, as section 3.2 of paper 003 says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from querycloak.methods.graph_suppress import click_graph as graph
from tests.reference import naive_microagg as naive

URLS = 6
clicks = st.lists(st.tuples(st.integers(0, 8), st.integers(-1, URLS - 1)), max_size=25)
kept = st.sets(st.integers(0, 8))
ranks = st.permutations(range(9))


def made(pairs):
    query, url = np.array(pairs, np.int64).reshape(-1, 2).T
    clicked = {q: {u for p, u in pairs if p == q and u >= 0} for q in range(9)}
    return graph.click_graph(query, url, 9, URLS), clicked


def mask(keep):
    return np.isin(np.arange(9), list(keep))


@given(clicks, kept)
def test_neighbours_are_the_queries_with_a_common_url(pairs, keep):
    fast, clicked = made(pairs)
    edges = naive.edges(clicked, keep)
    assert graph.degrees(fast, mask(keep)).tolist() == [sum(q in edge for edge in edges) for q in range(9)]


@given(clicks, kept, ranks)
def test_the_query_with_most_neighbours_goes_until_none_has_any(pairs, keep, rank):
    fast, clicked = made(pairs)
    stays = graph.disconnected(fast, mask(keep), np.array(rank, np.uint64))
    assert set(np.flatnonzero(stays).tolist()) == naive.disconnect(clicked, keep, rank)
    assert not graph.degrees(fast, stays).any()


@given(st.integers(0, 2**32))
def test_larger_graphs_fall_apart_in_the_same_order(seed):
    chance = np.random.default_rng(seed)
    query, url, rank = chance.integers(0, 20, 45), chance.integers(0, 15, 45), chance.permutation(20)
    clicked = {q: set(url[query == q].tolist()) for q in range(20)}
    fast = graph.click_graph(query, url, 20, 15)
    stays = graph.disconnected(fast, np.ones(20, bool), rank.astype(np.uint64))
    assert set(np.flatnonzero(stays).tolist()) == naive.disconnect(clicked, set(range(20)), rank.tolist())


@given(clicks, kept)
def test_all_that_contribute_can_go_at_once(pairs, keep):
    fast, clicked = made(pairs)
    connected = set().union(*naive.edges(clicked, keep))
    stays = graph.without_neighbours(fast, mask(keep))
    assert set(np.flatnonzero(stays).tolist()) == keep - connected


@given(clicks, st.integers(0, 4))
def test_documents_and_sites_are_counted_once(pairs, least):
    fast, clicked = made(pairs)
    documents = graph.clicked_documents(fast)
    assert documents.tolist() == [len(clicked[q]) for q in range(9)]
    site = np.arange(URLS) // 2
    few = graph.few_sites(fast, site, least)
    assert few.tolist() == [len({u // 2 for u in clicked[q]}) < least for q in range(9)]


def test_one_search_that_names_its_target_is_enough():
    query, names_it = np.array([0, 0, 1, 2]), np.array([False, True, False, False])
    assert graph.well_targeted(query, names_it, 4).tolist() == [True, False, False, False]
