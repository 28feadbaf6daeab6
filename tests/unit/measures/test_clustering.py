"""Ward's hierarchy, its index and k-means from distances alone, against coordinates, loops and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.p003.mining import k_means_by

from querycloak.measures import partition_distance
from querycloak.measures.partitions import distances_of, k_means, starts_of, ward
from tests.reference import naive_measures as naive
from tests.reference.plain_measures import user_distances

seeds = st.integers(0, 10**6)


def points(seed, many, axes=3):
    return np.random.default_rng(seed).normal(size=(many, axes))


def apart(places):
    return np.sqrt(((places[:, None] - places) ** 2).sum(axis=2))


def any_distances(seed, many):
    """Symmetric, but not even a metric."""
    table = np.random.default_rng(seed).random((many, many))
    return np.triu(table, 1) + np.triu(table, 1).T


def as_sets(labels):
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


@given(seed=seeds, many=st.integers(1, 12), clusters=st.integers(1, 12))
def test_ward_merges_what_adds_the_least_spread(seed, many, clusters):
    distances = any_distances(seed, many)
    expected = {frozenset(group) for group in naive.ward(distances.tolist(), min(clusters, many))}
    assert as_sets(ward(distances).labels(clusters)) == expected


@given(seed=seeds, many=st.integers(4, 12))
def test_the_index_is_that_of_the_cut_groups(seed, many):
    distances = any_distances(seed, many)
    tree = ward(distances)
    for clusters, index in enumerate(tree.calinski_harabasz(), start=2):
        groups = [sorted(group) for group in as_sets(tree.labels(clusters))]
        assert index == pytest.approx(naive.calinski_harabasz(groups, distances.tolist()))


@given(seed=seeds)
def test_ward_agrees_with_scipy(seed):
    from scipy.cluster.hierarchy import fcluster, linkage

    places = points(seed, 60)
    tree, theirs = ward(apart(places)), linkage(places, "ward")
    assert np.allclose(tree.added, theirs[:, 2] ** 2 / 2)
    for clusters in (2, 5, 20):
        cut = fcluster(theirs, clusters, "maxclust").tolist()
        assert partition_distance(tree.labels(clusters).tolist(), cut) == 0


@pytest.mark.parametrize("groups", [3, 8])
def test_the_index_finds_groups_that_are_there(groups):
    draws = np.random.default_rng(5)
    true = np.arange(30 * groups) % groups
    centres = 50 * np.eye(groups)
    tree = ward(apart(centres[true] + draws.normal(size=(true.size, groups))))
    assert tree.best_number() == groups
    assert partition_distance(tree.labels(groups).tolist(), true.tolist()) == 0


def test_copies_are_never_cut_apart():
    places = np.repeat(points(1, 4), 5, axis=0)
    labels = ward(apart(places)).labels(10)
    assert as_sets(labels) == {frozenset(range(5 * i, 5 * i + 5)) for i in range(4)}
    assert starts_of(apart(places), 10).size == 4


@pytest.mark.parametrize("many", [1, 2, 3])
def test_few_users(many):
    tree = ward(apart(points(1, many)))
    assert tree.best_number() == min(2, many)
    assert set(tree.labels(tree.best_number()).tolist()) == set(range(min(2, many)))


@given(seed=seeds, many=st.integers(2, 30), groups=st.integers(1, 6))
def test_k_means_by_distances_is_k_means_by_coordinates(seed, many, groups):
    places = points(seed, many)
    starts = starts_of(apart(places), groups, seed)
    assert len(set(starts.tolist())) == starts.size == min(groups, many)
    expected = naive.k_means(places.tolist(), starts.tolist())
    assert k_means(apart(places), starts).tolist() == expected
    own = k_means_by(
        list(places),
        starts,
        lambda items, centres: np.array([[np.linalg.norm(i - c) for i in items] for c in centres]),
        lambda group: np.mean(group, axis=0),
        rounds=100,
    )
    assert own.tolist() == expected


PATHS = ["", "A", "A/B", "A/B/C", "A/B/D", "A/E", "F", "F/G/H", "F/G", "I/J/K/L"]
histories = st.lists(
    st.dictionaries(st.sampled_from(PATHS), st.integers(0, 4), max_size=6), min_size=1, max_size=8
)


@given(people=histories)
def test_all_distances_at_once_are_those_of_each_pair(people):
    found = user_distances(people)
    assert np.allclose(found, naive.distances(people), atol=1e-12)
    assert np.array_equal(found, found.T)


def test_example_4_of_the_thesis():
    swimmer = {"Sports/Water Sports/Swimming and Diving": 1, "Regional/Europe/Regions/Mediterranean": 1}
    surfer = {"Sports/Water Sports/Windsurfing": 1, "Regional/Europe/Regions/Mediterranean": 2}
    assert user_distances([swimmer, surfer])[0, 1] == pytest.approx(0.2)


def test_the_size_of_pieces_makes_no_difference(monkeypatch):
    counts = np.random.default_rng(3).integers(0, 3, (9, len(PATHS) - 1)).astype(float)
    whole = distances_of(counts, PATHS[1:])
    monkeypatch.setattr("querycloak.measures.partitions.ROOM", 20)
    assert np.allclose(distances_of(counts, PATHS[1:]), whole, atol=1e-12)
