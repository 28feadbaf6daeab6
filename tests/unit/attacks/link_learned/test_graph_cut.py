"""The cut of a pair graph: no single move improves it, and small graphs are cut as well as can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querycloak.attacks.link_learned import graph_cut
from tests.reference import naive_graph_clusters as naive


def symmetric(matrix: np.ndarray) -> np.ndarray:
    upper = np.triu(matrix, 1)
    return (upper + upper.T + np.eye(len(matrix))).astype(np.float32)


@st.composite
def graphs(draw, least=3, most=30):
    size = draw(st.integers(least, most))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = draw(st.sampled_from(["even", "few", "skew"]))
    if values == "few":
        return symmetric(chance.integers(0, 3, (size, size)) / 2)
    return symmetric(chance.random((size, size)) ** (1 if values == "even" else 8))


def planted(sizes, inside, outside, noise, seed) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    labels = chance.permutation(np.repeat(np.arange(len(sizes)), sizes))
    same = labels[:, None] == labels
    mean = np.where(same, inside, outside)
    return symmetric(np.clip(mean + noise * chance.standard_normal(mean.shape), 0, 1)), labels


def same_cut(a, b) -> bool:
    return bool(((a[:, None] == a) == (b[:, None] == b)).all())


@given(graphs(), st.integers(2, 5), st.integers(0, 9))
def test_the_objective_is_the_papers(links, parts, seed):
    labels = graph_cut.cluster(links, parts, seed)
    assert graph_cut.objective(links, labels) == pytest.approx(
        naive.objective(links.tolist(), labels.tolist()), rel=1e-5
    )


@given(graphs(), st.sampled_from([2, 3, 10]), st.integers(0, 9))
def test_no_single_move_makes_it_better(links, parts, seed):
    labels = graph_cut.cluster(links, parts, seed)
    reached = naive.objective(links.tolist(), labels.tolist())
    sizes = np.bincount(labels)
    for event in range(len(labels)):
        for part in range(sizes.size):
            if sizes[labels[event]] > 1:
                moved = [*labels[:event].tolist(), part, *labels[event + 1 :].tolist()]
                assert naive.objective(links.tolist(), moved) >= reached * (1 - 1e-6)


@given(graphs(), st.integers(2, 12), st.integers(0, 9))
def test_every_part_has_a_member_and_the_first_events_number_them(links, parts, seed):
    labels = graph_cut.cluster(links, parts, seed)
    assert set(labels.tolist()) == set(range(min(parts, len(links))))
    firsts = [labels.tolist().index(part) for part in range(labels.max() + 1)]
    assert firsts == sorted(firsts)


@given(graphs(), st.integers(2, 4), st.integers(0, 9))
def test_the_same_seed_gives_the_same_cut(links, parts, seed):
    np.testing.assert_array_equal(
        graph_cut.cluster(links, parts, seed), graph_cut.cluster(links.copy(), parts, seed)
    )


@given(st.integers(0, 2**32), st.sampled_from([(3, 3), (4, 2), (4, 4), (2, 3, 3)]))
@settings(max_examples=50)
def test_small_planted_graphs_are_cut_as_well_as_can_be(seed, sizes):
    links, labels = planted(sizes, 0.8, 0.2, 0.1, seed)
    found = graph_cut.cluster(links, len(sizes), seed)
    best = naive.least(links.tolist(), len(sizes))
    assert naive.objective(links.tolist(), found.tolist()) == pytest.approx(best, rel=1e-5)
    assert naive.objective(links.tolist(), labels.tolist()) >= best * (1 - 1e-9)


@given(graphs(least=4, most=8), st.integers(2, 3))
@settings(max_examples=60)
def test_small_graphs_of_any_kind_are_cut_nearly_as_well_as_can_be(links, parts):
    """Links without any structure have many valleys: a few percent above the deepest is what may happen."""
    found = graph_cut.cluster(links, parts)
    best = naive.least(links.tolist(), parts)
    assert best * (1 - 1e-6) <= naive.objective(links.tolist(), found.tolist()) <= best * 1.10


def test_faint_large_parts_are_found():
    links, labels = planted((60, 40), 0.55, 0.45, 0.1, 1)
    assert same_cut(graph_cut.cluster(links, 2), labels)


def test_fainter_parts_are_cut_at_least_as_well_as_they_were_planted():
    links, labels = planted((120, 80), 0.51, 0.49, 0.2, 1)
    found = graph_cut.cluster(links, 2)
    assert graph_cut.objective(links, found) <= graph_cut.objective(links, labels)


def test_ten_parts_of_different_sizes_are_found():
    links, labels = planted(tuple(range(8, 28, 2)), 0.7, 0.2, 0.2, 2)
    assert same_cut(graph_cut.cluster(links, 10), labels)


def test_equal_links_everywhere_still_give_all_parts():
    labels = graph_cut.cluster(np.ones((12, 12), np.float32), 3)
    assert set(labels.tolist()) == {0, 1, 2}


def test_links_of_nothing_give_a_cut_too():
    assert graph_cut.cluster(np.zeros((5, 5), np.float32), 2).max() == 1


@pytest.mark.parametrize("size", [0, 1, 2])
def test_no_more_events_than_parts_are_a_part_each(size):
    assert graph_cut.cluster(np.eye(size, dtype=np.float32), 2).tolist() == list(range(size))


def test_one_part_is_everything():
    assert graph_cut.cluster(np.eye(4, dtype=np.float32), 1).tolist() == [0, 0, 0, 0]
