"""Reader of the Open Directory's dumps, `structure.rdf.u8` and `content.rdf.u8`, as a stream."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final
from xml.parsers import expat

import polars as pl

from querycloak.errors import DataError
from querycloak.text.normalise import normalise
from querycloak.text.taxonomy_files import TreeBuilder, open_plain

DUMPS: Final = ("structure.rdf.u8", "content.rdf.u8")
#: Weight of a word in the titles and descriptions of a category's pages: at most, and per page.
MOST, PER_PAGE = 0.3, 0.02
#: Words that are kept of one category, and of all. With more, words of fewer pages go first.
WORDS_PER_CATEGORY, MOST_WORDS = 40, 6_000_000
SHORTEST_WORD = 3
#: Characters of a title and description that are read.
LONGEST_PAGE = 2000
#: Pages whose words are counted at a time.
_PAGES = 1000
_TOP = "Top"
_TEXTS = ("Title", "Description", "topic")


def read_odp(paths: list[Path], builder: TreeBuilder) -> None:
    """Add the categories and words of one or several dump files, with bounded memory."""
    for path in paths:
        _Dump(builder).read(path)


class _Dump:
    """Parser of one file: adds each category, and the words of its pages when the next one begins."""

    def __init__(self, builder: TreeBuilder) -> None:
        self._builder = builder
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.EntityDeclHandler = self._refuse_entity
        self._open = ""
        self._inside_page = False
        self._texts: dict[str, str] = {}
        self._topic: str | None = None
        self._words: Counter[str] = Counter()
        self._pages: list[str] = []
        self._least = 1  # pages that a word must be on

    def read(self, path: Path) -> None:
        with open_plain(path) as file:
            try:
                self._parser.ParseFile(file)
            except (expat.ExpatError, EOFError, OSError) as error:
                raise self._fault("is not well-formed XML") from error
        self._end_category()

    def _fault(self, what: str) -> DataError:
        return DataError(f"the ODP dump {what}, near line {self._parser.CurrentLineNumber}")

    def _refuse_entity(self, *_: object) -> None:
        raise self._fault("declares an entity, which real dumps never do")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if name == "Topic":
            self._add(_attribute(attributes, "id"))
        elif name == "ExternalPage":
            self._inside_page, self._texts = True, {}
        self._open = name if self._inside_page and name in _TEXTS else ""

    def _text(self, text: str) -> None:
        if self._open:
            self._texts[self._open] = self._texts.get(self._open, "") + text

    def _end(self, tag: str) -> None:
        self._open = ""
        if tag.rpartition(":")[2] == "ExternalPage":
            self._inside_page = False
            self._add_page()

    def _add(self, topic: str | None) -> int:
        if topic is None:
            raise self._fault("has a category without `r:id`")
        parts = topic.split("/")
        if "" in parts and topic:
            raise self._fault("has a category with an empty name")
        below = parts[1:] if parts[0] == _TOP else parts
        return self._builder.add([part.replace("_", " ") for part in below if part])

    def _add_page(self) -> None:
        topic = self._texts.get("topic", "").strip()
        if topic and topic != self._topic:
            self._end_category()
            self._topic = topic
        self._pages.append(f"{self._texts.get('Title', '')} {self._texts.get('Description', '')}")
        if len(self._pages) == _PAGES:
            self._count_words()

    def _count_words(self) -> None:
        for text in normalise(pl.Series(self._pages, dtype=pl.String), LONGEST_PAGE).to_list():
            words = {word for word in text.split(" ") if len(word) >= SHORTEST_WORD and not word.isdecimal()}
            self._words.update(words)
        self._pages = []

    def _end_category(self) -> None:
        """Keep the most frequent words of a category; drop rare ones if there are too many in all."""
        self._count_words()
        if self._topic is not None:
            usual = sorted(self._words.items(), key=lambda pair: (-pair[1], pair[0]))[:WORDS_PER_CATEGORY]
            terms = [(word, min(MOST, PER_PAGE * pages)) for word, pages in usual if pages >= self._least]
            self._builder.add_terms(self._add(self._topic), terms, curated=False)
            if self._builder.uncurated > MOST_WORDS:
                self._least += 1
                self._builder.drop_below(PER_PAGE * (self._least - 0.5))
        self._words = Counter()


def _attribute(attributes: dict[str, str], name: str) -> str | None:
    return next((value for key, value in attributes.items() if key.rpartition(":")[2] == name), None)
