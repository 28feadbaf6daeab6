"""What a log can still be used for, as pure functions: its words, clicks and sessions; and its rare texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

_WORD = re.compile(r"[^\W_]+")


def terms_kept(original: Iterable[str], released: Iterable[str]) -> float:
    """Give the share of all words typed that the release still has, each as often as it was.

    >>> terms_kept(["red shoes", "red boots"], ["red shoes red"])
    0.75
    """
    return clicks_kept(*([word for text in side for word in _words(text)] for side in (original, released)))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


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
