"""Text for dummy queries: files of plain text, RSS or Atom, which need not be trusted, or synthetic news."""

from __future__ import annotations

import html
import io
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

from querycloak import text
from querycloak.clients.obfuscation.random_stream import KeyedStream
from querycloak.errors import DataError, UsageError, import_extra

#: Limits: files, bytes of one file and of all, articles, characters of a title and of a text.
MAX_FILES, FILE_LIMIT, BAG_LIMIT = 500, 8 << 20, 64 << 20
MAX_ARTICLES, TITLE_LIMIT, TEXT_LIMIT = 50_000, 300, 5_000
#: Largest depth of the elements of a feed.
MAX_DEPTH: Final = 64
_TAG: Final = re.compile(r"<[^<>]*>")
_NO_TEXT: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


@dataclass(frozen=True)
class Article:
    """Title, text and address of an article; text and address can be empty."""

    title: str
    text: str = ""
    url: str = ""


def read(path: str | Path) -> list[Article]:
    """Read the articles of a file, or of the visible files below a folder in the order of their names."""
    place = Path(path)
    if not place.exists():
        raise UsageError("the bag of text does not exist", hint="name a file, or a folder of feeds")
    files = [place]
    if place.is_dir():
        below = (file.relative_to(place) for file in place.rglob("*") if file.is_file())
        visible = (file for file in below if not any(part.startswith(".") for part in file.parts))
        files = sorted(place / file for file in visible)
    if len(files) > MAX_FILES:
        raise UsageError(f"the bag of text has {len(files):,} files; at most {MAX_FILES} are read")
    articles: list[Article] = []
    room = BAG_LIMIT
    for file in files:
        content = _content(file, min(FILE_LIMIT, room))
        room -= len(content)
        articles += _articles(content, file)
        if len(articles) > MAX_ARTICLES:
            raise DataError(f"the bag of text has more than {MAX_ARTICLES:,} articles")
    if not any(any(c.isalpha() for c in article.title + article.text) for article in articles):
        raise DataError("the bag of text contains no words", hint="use text, RSS or Atom files")
    return articles


def _content(file: Path, limit: int) -> bytes:
    try:
        with open(file, "rb") as stream:
            content = stream.read(limit + 1)
    except OSError as error:
        raise UsageError(f"a file of the bag of text cannot be read: {error.strerror}") from None
    if len(content) > limit:
        raise DataError(f"the bag of text is too large: {file.name} exceeds the limit")
    return content


def _articles(content: bytes, file: Path) -> list[Article]:
    if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return parse_feed(content, file.name)
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise DataError(f"{file.name} of the bag of text is not UTF-8") from None
    return [Article(tidy(line, TEXT_LIMIT)) for line in lines if line.strip()]


def tidy(value: str, limit: int) -> str:
    """Return a text without mark-up, control characters and repeated blanks, cut to a length."""
    plain = _TAG.sub(" ", html.unescape(value[: 4 * limit]))
    return _NO_TEXT.sub(" ", plain).strip()[:limit]


def parse_feed(content: bytes, name: str) -> list[Article]:
    """Parse RSS or Atom; refuse XML that is malformed, too deep or declares entities."""
    feedparser = import_extra("feedparser", "obfuscate", "a bag of feeds")
    try:
        _check_xml(content)
        found = feedparser.parse(io.BytesIO(content), resolve_relative_uris=False, sanitize_html=False)
    except (expat.ExpatError, LookupError, ValueError):
        raise DataError(
            f"{name} of the bag of text is not a feed that can be read",
            hint="use RSS or Atom, without declared entities",
        ) from None
    articles = [_article(entry) for entry in found.entries[: MAX_ARTICLES + 1]]
    return [article for article in articles if article.title or article.text]


def _check_xml(content: bytes) -> None:
    """Raise ValueError for declared entities, which can expand without limit, and for deep elements."""
    parser, depth = expat.ParserCreate(), 0

    def start(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError

    def end(*_: object) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise ValueError

    parser.StartElementHandler, parser.EndElementHandler, parser.EntityDeclHandler = start, end, refuse
    parser.Parse(content, True)


def _article(entry: Any) -> Article:
    texts = [entry.get("summary", ""), *(part.get("value", "") for part in entry.get("content", ()))]
    title, link = tidy(entry.get("title", ""), TITLE_LIMIT), str(entry.get("link", "")).strip()
    good = link.startswith(("http://", "https://")) and len(link) <= 2_000 and not _NO_TEXT.search(link)
    return Article(title, tidy(" ".join(dict.fromkeys(texts)), TEXT_LIMIT), link if good else "")


# synthetic news: headlines with words of our lexicon, on sites that do not exist

ARTICLES: Final = 4_000
#: Number of common words of a category that are used, and categories that are left out.
_COMMON, _LEFT_OUT = 12, ("Adult",)
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
def builtin_articles() -> tuple[Article, ...]:
    """Return synthetic articles, the same in every process."""
    stream = KeyedStream(b"made-up newspaper")
    topics = [
        words[:_COMMON]
        for path, words in text.vocabulary().items()
        if not path.startswith(_LEFT_OUT) and len(words) > 1
    ]
    return tuple(_draw_article(topics[stream.pick(len(topics))], stream) for _ in range(ARTICLES))


def _draw_article(words: list[str], stream: KeyedStream) -> Article:
    chosen = {slot: words[stream.pick(len(words))] for slot in "abcd"}
    title, body = _TITLES[stream.pick(len(_TITLES))], _TEXTS[stream.pick(len(_TEXTS))]
    name = "".join(_SYLLABLES[stream.pick(len(_SYLLABLES))] for _ in range(2))
    site = name + _ENDS[stream.pick(len(_ENDS))]
    heading = title.format(**chosen)
    return Article(heading[0].upper() + heading[1:], body.format(**chosen), f"http://www.{site}.com")
