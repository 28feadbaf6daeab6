"""Words that people could type, by category: the raw material of made-up logs."""

from __future__ import annotations

from functools import cache

import numpy as np

from querycloak.text import storage
from querycloak.text.taxonomy import load


def vocabulary() -> dict[str, list[str]]:
    """Give `{category path: words and phrases}`, the common ones first.

    Each phrase stands once, in the category of its main meaning: our own lists first, then WordNet's
    nouns without insults, people who lived, and Latin names of genera and families.
    """
    return {path: list(words) for path, words in _by_category().items()}


@cache
def _by_category() -> dict[str, tuple[str, ...]]:
    arrays = storage.shipped()
    words, node = storage.unpack(arrays["word_text"]), arrays["word_node"].astype(np.int64)
    starts = np.flatnonzero(np.diff(node, prepend=-1)).tolist()
    paths = load().paths
    return {
        paths[int(node[a])]: tuple(words[a:b]) for a, b in zip(starts, [*starts[1:], len(words)], strict=True)
    }
