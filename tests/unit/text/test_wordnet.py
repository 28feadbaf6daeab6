"""WordNet's graph of nouns."""

from __future__ import annotations

import numpy as np
import pytest

from querycloak.errors import UnknownName
from querycloak.text.taxonomy import load
from querycloak.text.wordnet import wordnet


def test_the_graph_has_all_nouns_of_wordnet() -> None:
    graph = wordnet()
    assert len(graph.parents) == 82_115
    assert np.flatnonzero(np.diff(graph.parents.start) == 0).tolist() == [graph.find("entity.n.01")] == [0]
    assert np.unique(graph.node).size == len(graph.parents)


def test_a_dog_has_two_parents() -> None:
    graph = wordnet()
    dog = graph.find("dog.n.01")
    parents = {graph.find("canine.n.02"), graph.find("domestic_animal.n.01")}
    assert set(graph.parents[dog].tolist()) == parents
    assert load().path(int(graph.node[dog])) == "Recreation/Pets/dog"


@pytest.mark.parametrize("name", ["dog", "dog.n.99", "dog.n.00", "qqq.n.01", "dog.n.x"])
def test_unknown_senses_are_refused(name: str) -> None:
    with pytest.raises(UnknownName):
        wordnet().find(name)
