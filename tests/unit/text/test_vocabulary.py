"""The words that made-up logs are built from."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from querycloak import text
from querycloak.text import load, vocabulary


def test_every_category_exists_and_has_words() -> None:
    tree = load()
    assert all(path in tree and words for path, words in vocabulary().items())


def test_every_topic_has_words() -> None:
    assert {path.partition("/")[0] for path in vocabulary()} == {
        load().path(node) for node in range(load().size) if load().depth[node] == 1
    }


def test_a_phrase_stands_once_and_can_be_typed() -> None:
    words = [word for words in vocabulary().values() for word in words]
    assert len(words) == len(set(words)) > 50_000
    assert all(word == word.lower().strip() and "  " not in word for word in words)


def at_or_below(tree, node, above) -> bool:
    path = tree.path(node)
    return path == tree.path(above) or path.startswith(f"{tree.path(above)}/")


def test_each_word_speaks_for_its_category() -> None:
    """The classifier can find what the generator planted: the word's own terms lie at or below."""
    tree = load()
    for path, words in vocabulary().items():
        node = tree.node(path)
        for word in words:
            assert any(at_or_below(tree, at, node) for at, _ in tree.lexicon.categories(word))


def test_common_words_come_first() -> None:
    assert vocabulary()["Home/Furniture/furniture/seat/chair"][0] == "chair"
    cities = vocabulary()["Regional/Europe"]
    assert cities.index("london") < cities.index("athens") < cities.index("zaragoza")


def test_callers_may_change_what_they_get() -> None:
    path = next(iter(vocabulary()))
    vocabulary()[path].clear()
    assert vocabulary()[path]


@pytest.mark.parametrize("word", ["einstein", "max planck", "rosaceae", "kaffir"])
def test_people_who_lived_latin_families_and_insults_are_left_out(word: str) -> None:
    assert all(word not in words for words in vocabulary().values())


def test_the_room_loads_nothing_until_asked() -> None:
    code = "import sys, querycloak.text; print('querycloak.text.taxonomy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_public_name_can_be_had() -> None:
    importlib.import_module("querycloak.text.taxonomy")
    assert all(getattr(text, name) is not None for name in dir(text))
    with pytest.raises(AttributeError):
        text.no_such_name  # noqa: B018
