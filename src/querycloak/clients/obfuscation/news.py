"""A made-up newspaper: headlines about words of our lexicon, on sites that do not exist."""

from __future__ import annotations

from functools import cache
from typing import Final

from querycloak import text
from querycloak.clients.obfuscation.draws import Draws
from querycloak.clients.obfuscation.feeds import Article

ARTICLES: Final = 4_000
#: Common words of a category that may be in the news, and areas that our paper does not write about.
_COMMON, _NOT_PRINTED = 12, ("Adult",)
_TITLES: Final = (
    "{a} prices rise as demand for {b} grows",
    "Council to vote on new {a} rules",
    "Why {a} and {b} matter this year",
    "Study links {a} to better {b}",
    "Local {a} club opens its doors",
    "{a} fair draws record crowd",
    "Experts warn about {a} shortage",
    "Five things to know about {a}",
    "Minister defends plan for {a}",
    "{a} festival returns with {b}",
    "New museum shows history of {a}",
    "Schools try {a} instead of {b}",
    "Court hears case over {a}",
    "How {a} changed a small town",
    "Team wins {a} award after long wait",
    "Readers ask: is {a} worth it?",
)
_TEXTS: Final = (
    "{c}, {b} and {d} were on the agenda; {a} stays.",
    "{a} remains popular. {d} may follow, {c} will not.",
    "Visitors asked for {c}; few had heard of {d}.",
    "Behind it: {b}, {c}, cheap {d}. A decision on {a} is due in spring.",
)
_SYLLABLES: Final = ("vre", "dwo", "zla", "kvi", "mru", "tlo", "fja", "zbe", "ghri", "vyo")
_ENDS: Final = ("herald", "post", "courier", "dispatch", "gazette", "news", "times", "echo")


@cache
def newspaper() -> tuple[Article, ...]:
    """Print the newspaper: the same in every process."""
    draws = Draws(b"made-up newspaper")
    shelves = [
        words[:_COMMON]
        for path, words in text.vocabulary().items()
        if not path.startswith(_NOT_PRINTED) and len(words) > 1
    ]
    return tuple(_article(shelves[draws.pick(len(shelves))], draws) for _ in range(ARTICLES))


def _article(words: list[str], draws: Draws) -> Article:
    chosen = {slot: words[draws.pick(len(words))] for slot in "abcd"}
    title, text = _TITLES[draws.pick(len(_TITLES))], _TEXTS[draws.pick(len(_TEXTS))]
    site = "".join(_SYLLABLES[draws.pick(len(_SYLLABLES))] for _ in range(2)) + _ENDS[draws.pick(len(_ENDS))]
    heading = title.format(**chosen)
    return Article(heading[0].upper() + heading[1:], text.format(**chosen), f"http://www.{site}.com")
