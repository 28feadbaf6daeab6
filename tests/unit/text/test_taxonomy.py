"""The shipped tree and graph: their shape, their words, and the walks on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.errors import DataError, UnknownName
from querycloak.text import load
from querycloak.text import taxonomy_files as storage
from querycloak.text.taxonomy import Taxonomy, build
from querycloak.text.taxonomy_files import SLASH

from .small_taxonomy import lexicon_of

TOPICS = ["Adult", "Arts", "Business", "Computers", "Games", "Health", "Home", "Kids", "News", "Recreation"]
TOPICS += ["Reference", "Regional", "Science", "Shopping", "Society", "Sports"]
nodes = st.integers(0, 82_000)


def toy() -> Taxonomy:
    """root{A{A1{A1x},A2},B{B1}}"""
    return build([-1, 0, 1, 2, 1, 0, 5], ["", "A", "A1", "A1x", "A2", "B", "B1"], lexicon_of([]))


def climb(tree: Taxonomy, node: int) -> list[int]:
    """Walk up one parent at a time, from the node to the root."""
    way = [node]
    while tree.parent[way[-1]] >= 0:
        way.append(int(tree.parent[way[-1]]))
    return way


def test_the_toy_tree() -> None:
    tree = toy()
    assert tree.paths == ["", "A", "A/A1", "A/A1/A1x", "A/A2", "B", "B/B1"]
    assert tree.depth.tolist() == [0, 1, 2, 3, 2, 1, 2]
    assert tree.common_ancestors(np.array([3, 3, 2, 3]), np.array([4, 6, 3, 3])).tolist() == [1, 0, 2, 3]
    assert tree.at_level([3, 4, 5, 0], 1).tolist() == [1, 1, 5, 0]
    assert tree.node("A/A1") == 2
    assert "A/A1" in tree
    assert "A/A3" not in tree


@pytest.mark.parametrize("parent", [[], [0], [-1, -1], [-1, 2, 0], [-1, 1]])
def test_a_tree_has_one_root_and_parents_come_first(parent: list[int]) -> None:
    with pytest.raises(DataError):
        build(parent, ["x"] * len(parent), lexicon_of([]))


def test_an_unknown_path_is_told_without_repeating_it() -> None:
    with pytest.raises(UnknownName) as caught:
        load().node("Sports/my secret")
    assert "secret" not in str(caught.value)


def test_the_sixteen_topics_are_level_one() -> None:
    tree = load()
    assert [tree.path(node) for node in np.flatnonzero(tree.depth == 1)] == TOPICS
    assert {tree.path(node).count("/") for node in np.flatnonzero(tree.depth == 2)} == {1}


def test_the_shipped_tree_is_a_tree_of_at_most_thirteen_levels() -> None:
    tree = load()
    assert tree.size > 82_115
    assert int(tree.depth.max()) == 13
    assert (tree.parent[1:] < np.arange(1, tree.size)).all()
    assert len(set(tree.paths)) == tree.size
    assert all(name and "/" not in name and "_" not in name for name in tree.names[1:])


def test_a_slash_inside_a_name_is_written_differently() -> None:
    with_slash = [name for name in load().names if SLASH in name]
    lemmas = {lemma for lemma in storage.unpack(storage.shipped()["lemma"]) if "/" in lemma}
    lemmas = {lemma.replace("_", " ") for lemma in lemmas}
    assert {name.replace(SLASH, "/").lower() for name in with_slash} <= lemmas
    assert with_slash


@given(nodes, nodes)
def test_common_ancestors_equal_climbing(a: int, b: int) -> None:
    tree = load()
    above = set(climb(tree, b))
    found = int(tree.common_ancestors(np.array([a]), np.array([b]))[0])
    assert found == next(node for node in climb(tree, a) if node in above)


@given(st.lists(nodes, max_size=20), st.integers(0, 15))
def test_cutting_at_a_level_equals_cutting_the_path(chosen: list[int], level: int) -> None:
    tree = load()
    cut = [tree.path(int(node)) for node in tree.at_level(np.array(chosen, np.int32), level)]
    assert cut == ["/".join(tree.path(node).split("/")[:level]) for node in chosen]


@pytest.mark.parametrize(
    ("phrase", "topic"),
    [
        ("poodle", "Recreation/Pets"),
        ("shortstop", "Sports/Baseball"),
        ("asthma", "Health/Conditions"),
        ("saxophone", "Arts/Music"),
        ("senator", "News/Politics"),
        ("lake michigan", "Regional/United States"),
        ("paris", "Regional/Europe"),
        ("sedan", "Recreation/Autos"),
        ("comet", "Science/Astronomy"),
        ("necklace", "Shopping/Jewelry"),
    ],
)
def test_everyday_words_mean_first_what_people_mean(phrase: str, topic: str) -> None:
    tree = load()
    best = tree.lexicon.categories(phrase)[0][0]
    assert tree.path(best).startswith(topic)


def test_terms_are_normalised_and_ranked() -> None:
    terms = load().lexicon
    assert len(terms) == len(set(terms.texts)) > 117_000
    assert terms.texts == sorted(terms.texts)
    assert (terms.weight > 0).all()
    assert (np.diff(terms.start) > 0).all()
    same = np.diff(terms.phrase) == 0
    assert (np.diff(terms.weight)[same] <= 0).all()


def test_the_shipped_file_is_small_and_has_its_licence_beside_it() -> None:
    assert storage.SHIPPED.stat().st_size <= 5_000_000
    notice = (storage.SHIPPED.parent / "LICENSE-wordnet.txt").read_text()
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in notice


def test_files_are_written_byte_for_byte_the_same_and_read_back(tmp_path: Path) -> None:
    arrays = {"a": np.arange(5, dtype=np.int32), "b": storage.pack(["x", "é", ""])}
    for name in ("one", "two"):
        storage.write(tmp_path / name, arrays)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    back = storage.read(tmp_path / "one")
    assert back["a"].tolist() == [0, 1, 2, 3, 4]
    assert storage.unpack(back["b"]) == ["x", "é", ""]


def test_a_damaged_file_is_a_data_error(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.write_bytes(storage.SHIPPED.read_bytes()[:5000])
    with pytest.raises(DataError):
        storage.read(damaged)


def test_a_file_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(storage, "VERSION", 99)
        storage.write(tmp_path / "later", {})
    with pytest.raises(DataError, match="version"):
        storage.read(tmp_path / "later")


def test_of_equal_pairs_the_strongest_counts_whatever_the_order() -> None:
    pairs = [("Dog", 1, 0.5), ("dog", 1, 1.0), ("dog", 1, 0.25), ("dog", 2, 2.0), ("-", 3, 1.0)]
    assert lexicon_of(pairs).categories("dog") == [(2, 2.0), (1, 1.0)]
    assert lexicon_of(pairs[::-1]).categories("dog") == [(2, 2.0), (1, 1.0)]
