"""Reads a bag of text: a file or a folder of plain text, RSS or Atom, that nobody has to be trusted with."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.parsers import expat

from querycloak.errors import DataError, UsageError

#: Limits of what is read: files, bytes of one and of all, articles, characters of a title and of a text.
MOST_FILES, FILE_LIMIT, BAG_LIMIT = 500, 8 << 20, 64 << 20
MOST_ARTICLES, TITLE_LIMIT, TEXT_LIMIT = 50_000, 300, 5_000
_DEEPEST: Final = 64
_ARTICLE: Final = ("item", "entry")
_TEXTS: Final = ("description", "summary", "content", "encoded")
_TAG: Final = re.compile(r"<[^<>]*>")
_NO_TEXT: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True)
class Article:
    """A headline, what follows it, and where it is to be found, if that is known."""

    title: str
    text: str = ""
    url: str = ""


def read(path: str | Path) -> list[Article]:
    """Read every article of a file or of the files in a folder, by their names' order."""
    place = Path(path)
    if not place.exists():
        raise UsageError("the bag of text does not exist", hint="name a file, or a folder of feeds")
    files = sorted(_files(place)) if place.is_dir() else [place]
    if len(files) > MOST_FILES:
        raise UsageError(f"the bag of text has {len(files):,} files; at most {MOST_FILES} are read")
    articles: list[Article] = []
    room = BAG_LIMIT
    for file in files:
        content = _content(file, min(FILE_LIMIT, room))
        room -= len(content)
        articles += _articles(content, file)
        if len(articles) > MOST_ARTICLES:
            raise DataError(f"the bag of text has more than {MOST_ARTICLES:,} articles")
    if not any(any(c.isalpha() for c in article.title + article.text) for article in articles):
        raise DataError("the bag of text has no words in it", hint="give text, RSS or Atom files")
    return articles


def _files(folder: Path) -> list[Path]:
    """List the files of a folder and of those in it, but nothing that is hidden."""
    found = (file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    return [folder / file for file in found if not any(part.startswith(".") for part in file.parts)]


def _content(file: Path, limit: int) -> bytes:
    try:
        with open(file, "rb") as stream:
            content = stream.read(limit + 1)
    except OSError as error:
        raise UsageError(f"a file of the bag of text cannot be read: {error.strerror}") from None
    if len(content) > limit:
        raise DataError(f"the bag of text is too large: {file.name} goes beyond what is read")
    return content


def _articles(content: bytes, file: Path) -> list[Article]:
    if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return parse_feed(content, file.name)
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise DataError(f"{file.name} of the bag of text is no UTF-8") from None
    return [Article(tidy(line, TEXT_LIMIT)) for line in lines if line.strip()]


def tidy(text: str, limit: int) -> str:
    """Take out mark-up, control characters and needless blanks, and cut what is too long."""
    plain = _TAG.sub(" ", html.unescape(text[: 4 * limit]))
    return _NO_TEXT.sub(" ", plain).strip()[:limit]


def parse_feed(content: bytes, name: str) -> list[Article]:
    """Read RSS or Atom. Declarations of types and entities are refused: they can blow up, or fetch files."""
    reading = _Reading()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.characters
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, _Unwanted, LookupError, ValueError):
        raise DataError(
            f"{name} of the bag of text is no feed that can be read",
            hint="RSS and Atom without a document type",
        ) from None
    return reading.articles


class _Unwanted(Exception):
    """What a feed has no need of."""


def _refuse(*_: object) -> None:
    raise _Unwanted


@dataclass
class _Reading:
    """Where the parser is, and what it has seen."""

    articles: list[Article] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)
    inside: int = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Enter an element."""
        self.path.append(name.rpartition(" ")[2].lower())
        if len(self.path) > _DEEPEST:
            raise _Unwanted
        if self.path[-1] in _ARTICLE and not self.inside:
            self.inside, self.parts = len(self.path), {}
        elif self.path[-1] == "link" and self.inside and attributes.get("rel", "alternate") == "alternate":
            self._add("link", attributes.get("href", ""))

    def characters(self, text: str) -> None:
        """Take text, if it belongs to a part of an article that is wanted."""
        if self.inside and len(self.path) > self.inside:
            part = self.path[self.inside]
            if part in ("title", "link", *_TEXTS):
                self._add("text" if part in _TEXTS else part, text)

    def _add(self, part: str, text: str) -> None:
        known = self.parts.get(part, "")
        if len(known) < 4 * TEXT_LIMIT:
            self.parts[part] = known + text

    def end(self, _: str) -> None:
        """Leave an element."""
        if self.inside == len(self.path):
            self.inside = 0
            title, text = tidy(self.parts.get("title", ""), TITLE_LIMIT), self.parts.get("text", "")
            if title or text:
                self.articles.append(Article(title, tidy(text, TEXT_LIMIT), _address(self.parts)))
            if len(self.articles) > MOST_ARTICLES:
                raise _Unwanted
        self.path.pop()


def _address(parts: dict[str, str]) -> str:
    link = parts.get("link", "").strip()
    good = link.startswith(("http://", "https://")) and len(link) <= 2_000 and not _NO_TEXT.search(link)
    return link if good else ""
