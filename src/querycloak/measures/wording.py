"""What queries keep of their meaning when they are replaced, as functions of plain values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl

from querycloak.measures.distributions import jensen_shannon

_WORD = re.compile(r"[^\W_]+")


def topic_loss(original: Sequence[str], released: Sequence[str], topics: str = "categories") -> float:
    """Give how far one person's profile by topic moved: the divergence of two sequences of queries.

    Topics are those of `dp-semantic`: `categories`, `paper-4`, `paper-19`, or a list of concepts. Queries
    that mean nothing known do not count; `nan` if that leaves none.

    >>> topic_loss(["asthma", "tennis"], ["flu", "golf"], topics="paper-4")
    0.0
    """
    from querycloak.topics.concepts import concepts_of, topics_of

    known = topics_of(concepts_of(), topics)
    sides = [Counter(known.of[_concepts(queries)].tolist()) for queries in (original, released)]
    if not all(sides):
        return float("nan")
    return jensen_shannon(*([side[t] for t in range(len(known.names))] for side in sides))


def meaning_kept(original: Sequence[str], released: Sequence[str]) -> dict[str, float]:
    """Compare queries with those that replaced them, phrase by phrase: mean likeness, share unchanged.

    Likeness is paper 002's equation 5 over WordNet. Pairs with unlike numbers of known phrases do not count.

    >>> {name: round(value, 3) for name, value in meaning_kept(["asthma", "cat"], ["flu", "cat"]).items()}
    {'similarity': 0.829, 'unchanged': 0.5}
    """
    from querycloak.topics.concepts import concepts_of, space_of, topics_of

    if len(original) != len(released):
        raise ValueError(f"the sequences must be equally long; got {len(original)} and {len(released)}")
    pairs = [(_concepts([a]), _concepts([b])) for a, b in zip(original, released, strict=True)]
    same = [pair for pair in pairs if pair[0].size == pair[1].size and pair[0].size]
    if not same:
        return {"similarity": float("nan"), "unchanged": float("nan")}
    old, new = (np.concatenate(side) for side in zip(*same, strict=True))
    space = space_of(concepts_of(), topics_of(concepts_of()), "sqc1")
    alike = space.similarities(old, new)
    return {"similarity": float(alike.mean()), "unchanged": float((old == new).mean())}


def readability(original: Sequence[str], released: Sequence[str]) -> dict[str, float]:
    """Say how much released queries read like the original ones: known words, and words per query.

    >>> readability(["cheap flights", "lung cancer"], ["cancer", "shrew"])
    {'words_of_the_log': 0.5, 'words_per_query_before': 2.0, 'words_per_query_after': 1.0}
    """
    typed, shown = ([_WORD.findall(query.lower()) for query in side] for side in (original, released))
    known = {word for words in typed for word in words}
    total = sum(map(len, shown))
    return {
        "words_of_the_log": sum(word in known for words in shown for word in words) / total
        if total
        else float("nan"),
        "words_per_query_before": sum(map(len, typed)) / len(typed) if typed else float("nan"),
        "words_per_query_after": total / len(shown) if shown else float("nan"),
    }


def _concepts(queries: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    from querycloak.topics.concepts import Mapper, concepts_of

    return Mapper(concepts_of()).read(pl.Series(list(queries), dtype=pl.String)).concept
