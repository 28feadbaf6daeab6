"""Measures of logs again, as functions of plain Python values: slow, and with nothing in common but words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from querycloak.log import FloatArray
from querycloak.measures.counts import jensen_shannon, largest_tree_emd, tree_emd
from querycloak.measures.partitions import distances_of, loss_between, ward
from querycloak.measures.profiles import summary

_PLAIN = re.compile(r"[a-z0-9]+")
#: One person's profile: how often each category path occurs.
Profile = Mapping[str, float]
History = Mapping[str, float]


def terms(query: str) -> list[str]:
    """Split a query at everything but letters and digits; marks belong to the letter before them.

    >>> terms("Cheap flights: New-York")
    ['cheap', 'flights', 'new', 'york']
    """
    text = query.lower()
    if text.isascii():
        return _PLAIN.findall(text)
    kept = "".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text)
    words = (_without_leading_marks(word) for word in kept.split(" "))
    return [word for word in words if word]


def _without_leading_marks(word: str) -> str:
    while word and not word[0].isalnum():
        word = word[1:]
    return word


def terms_kept(original: Iterable[str], released: Iterable[str]) -> float:
    """Give the share of all words typed that the release still has, each as often as it was.

    >>> terms_kept(["red shoes", "red boots"], ["red shoes red"])
    0.75
    """
    return clicks_kept(*([word for text in side for word in terms(text)] for side in (original, released)))


def clicks_kept(original: Iterable[Hashable], released: Iterable[Hashable]) -> float:
    """Give the share of clicks, each a query and a page, that the release still has.

    >>> clicks_kept([("shoes", "x.org"), ("hats", "y.org")], [("shoes", "x.org"), ("shoes", "y.org")])
    0.5
    """
    before, after = Counter(original), Counter(released)
    return (before & after).total() / before.total() if before else float("nan")


def sessions_kept(
    original: Sequence[tuple[str, float]],
    released: Sequence[tuple[str, float] | None],
    minutes: float = 30,
) -> float:
    """Give the share of steps from one search to the person's next that the release still shows.

    Searches come in the order of their times, each as a person and minutes; `released` has label and minutes
    of the same searches, or None for one that is not there as it was typed.

    >>> sessions_kept([("a", 0), ("b", 1), ("a", 5), ("a", 90)], [("p", 0), None, ("p", 5), ("p", 90)])
    1.0
    >>> sessions_kept([("a", 0), ("a", 5), ("a", 9)], [("p", 0), ("p", 5), ("q", 9)])
    0.5
    """
    last: dict[str, int] = {}
    steps = []
    for place, (user, at) in enumerate(original):
        if user in last and at - original[last[user]][1] <= minutes:
            steps.append((last[user], place))
        last[user] = place
    kept = sum(_together(released[one], released[other], minutes) for one, other in steps)
    return kept / len(steps) if steps else float("nan")


def _together(one: tuple[str, float] | None, other: tuple[str, float] | None, minutes: float) -> bool:
    return one is not None and other is not None and one[0] == other[0] and abs(other[1] - one[1]) <= minutes


def unique_texts(asked: Iterable[tuple[str, str]], released: Sequence[str]) -> float:
    """Give the share of released queries that only one person of the original asked.

    >>> unique_texts([("a", "shoes"), ("b", "shoes"), ("a", "hats")], ["shoes", "hats"])
    0.5
    """
    people: dict[str, set[str]] = {}
    for user, query in asked:
        people.setdefault(query, set()).add(user)
    return (
        sum(len(people.get(query, ())) == 1 for query in released) / len(released)
        if released
        else float("nan")
    )


def topic_loss(original: Sequence[str], released: Sequence[str], topics: str = "categories") -> float:
    """Give how far one person's profile by topic moved: the divergence of two sequences of queries.

    Topics are those of `dp-semantic`: `categories`, `paper-4`, `paper-19`, or a list of concepts. Queries
    that mean nothing known do not count; `nan` if that leaves none.

    >>> topic_loss(["asthma", "tennis"], ["flu", "golf"], topics="paper-4")
    0.0
    """
    from querycloak.text.concept_space import partition_by_topic
    from querycloak.text.senses import concept_lexicon

    known = partition_by_topic(concept_lexicon(), topics)
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
    from querycloak.text.concept_space import concept_space, partition_by_topic
    from querycloak.text.senses import concept_lexicon

    if len(original) != len(released):
        raise ValueError(f"the sequences must be equally long; got {len(original)} and {len(released)}")
    pairs = [(_concepts([a]), _concepts([b])) for a, b in zip(original, released, strict=True)]
    same = [pair for pair in pairs if pair[0].size == pair[1].size and pair[0].size]
    if not same:
        return {"similarity": float("nan"), "unchanged": float("nan")}
    old, new = (np.concatenate(side) for side in zip(*same, strict=True))
    space = concept_space(concept_lexicon(), partition_by_topic(concept_lexicon()), "sqc1")
    alike = space.similarities(old, new)
    return {"similarity": float(alike.mean()), "unchanged": float((old == new).mean())}


def readability(original: Sequence[str], released: Sequence[str]) -> dict[str, float]:
    """Say how much released queries read like the original ones: known words, and words per query.

    >>> readability(["cheap flights", "lung cancer"], ["cancer", "shrew"])
    {'words_of_the_log': 0.5, 'words_per_query_before': 2.0, 'words_per_query_after': 1.0}
    """
    typed, shown = ([terms(query) for query in side] for side in (original, released))
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
    from querycloak.text.senses import ConceptMapper, concept_lexicon

    return ConceptMapper(concept_lexicon()).read(pl.Series(list(queries), dtype=pl.String)).concept


def profile_loss(
    original: Mapping[Any, Profile], released: Mapping[Any, Profile], largest: float | None = None
) -> dict[str, float]:
    """Say how far people's released profiles lie from their original ones.

    `loss` is the exact earth mover's distance on the tree of categories over the largest possible one,
    `topics` the Jensen-Shannon divergence (0 to 1) of the profiles cut to level 1; both are means over the
    people who have both profiles. `largest` is the tree's diameter, by default that of the paths given.

    >>> profile_loss({"u": {"Arts/Music": 2}}, {"u": {"Arts/Film": 1}, "v": {"Arts": 1}})["distance"]
    2.0
    """
    both = [person for person, profile in original.items() if profile and released.get(person)]
    if largest is None:
        largest = largest_tree_emd([p for side in (original, released) for own in side.values() for p in own])
    distances = [tree_emd(original[person], released[person]) for person in both]
    topics = [_topic_divergence(original[person], released[person]) for person in both]
    asked = [person for person, profile in original.items() if profile]
    return summary(np.array(distances), np.array(topics), largest, len(asked) - len(both))


def _topic_divergence(before: Profile, after: Profile) -> float:
    topics: dict[Hashable, list[float]] = {}
    for side, profile in enumerate((before, after)):
        for path, count in profile.items():
            topics.setdefault(path.partition("/")[0], [0.0, 0.0])[side] += count
    first, second = zip(*topics.values(), strict=True)
    return jensen_shannon(first, second)


def partition_loss(
    original: Sequence[History], released: Sequence[History], clusters: int | None = None
) -> float:
    """Give in percent how unlike the groups of alike users are before and after: IL of paper 003.

    The i-th released history belongs to the i-th original; a history is `{category path: count}`. Users
    are clustered by `querycloak.text.user_distance` with Ward's method, and the two partitions are compared
    by `partition_distance`. Without `clusters`, their number is the one with the largest Calinski–Harabasz
    index in the original, among those of at least ten users each on average.

    >>> music, games = {"Arts/Music": 2}, {"Games/Chess": 1}
    >>> partition_loss([music, music, games, games], [music, games, music, games], clusters=2)
    100.0
    """
    if len(original) != len(released):
        raise ValueError(f"the lists must be equally long; got {len(original)} and {len(released)}")
    if clusters is not None and clusters < 1:
        raise ValueError("clusters must be at least 1")
    if not original:
        return float("nan")
    before, after = (ward(user_distances(side)) for side in (original, released))
    return loss_between(before, after, clusters or before.best_number())


def user_distances(histories: Sequence[Mapping[str, float]]) -> FloatArray:
    """Give the matrix of the distances of histories, `{category path: count}`: paper 003's equation 5.13."""
    paths = sorted({path for history in histories for path, count in history.items() if count})
    place = {path: number for number, path in enumerate(paths)}
    counts = np.zeros((len(histories), len(paths)))
    for person, history in enumerate(histories):
        for path, count in history.items():
            if count:
                counts[person, place[path]] = count
    return distances_of(counts, paths)
