"""Reads the Open Directory's dumps, `structure.rdf.u8` and `content.rdf.u8`, as a stream."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.parsers import expat

from querycloak.errors import DataError
from querycloak.text.builder import Builder, open_plain
from querycloak.text.normalise import normalise_text

#: A page's title and description only hint at the category: at most this much, however often a word occurs.
MOST, PER_PAGE = 0.3, 0.02
WORDS_PER_CATEGORY = 40
SHORTEST_WORD = 3
TOP = "Top"
TEXTS = ("Title", "Description", "topic")


def read_odp(paths: list[Path], builder: Builder) -> None:
    """Add the categories and words of one or several dump files."""
    for path in paths:
        _Dump(builder).read(path)


class _Dump:
    """Follows one file: notes each category, and gathers the words of its pages until the next one begins."""

    def __init__(self, builder: Builder) -> None:
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

    def read(self, path: Path) -> None:
        with open_plain(path) as file:
            try:
                self._parser.ParseFile(file)
            except (expat.ExpatError, EOFError, OSError) as error:
                raise self._fault("is not well-formed XML") from error
        self._flush()

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
        self._open = name if self._inside_page and name in TEXTS else ""

    def _text(self, text: str) -> None:
        if self._open:
            self._texts[self._open] = self._texts.get(self._open, "") + text

    def _end(self, tag: str) -> None:
        self._open = ""
        if tag.rpartition(":")[2] == "ExternalPage":
            self._inside_page = False
            self._note_page()

    def _add(self, topic: str | None) -> int:
        if topic is None:
            raise self._fault("has a category without `r:id`")
        parts = topic.split("/")
        if "" in parts and topic:
            raise self._fault("has a category with an empty name")
        below = parts[1:] if parts[0] == TOP else parts
        return self._builder.add([part.replace("_", " ") for part in below if part])

    def _note_page(self) -> None:
        topic = self._texts.get("topic", "").strip()
        if topic and topic != self._topic:
            self._flush()
            self._topic = topic
        words = normalise_text(f"{self._texts.get('Title', '')} {self._texts.get('Description', '')}").split()
        self._words.update({word for word in words if len(word) >= SHORTEST_WORD and not word.isdecimal()})

    def _flush(self) -> None:
        """Keep the most frequent words of a category, so that a dump of any size fits into memory."""
        if self._topic is not None:
            usual = sorted(self._words.items(), key=lambda pair: (-pair[1], pair[0]))[:WORDS_PER_CATEGORY]
            self._builder.say(
                self._add(self._topic), [(word, min(MOST, PER_PAGE * count)) for word, count in usual]
            )
        self._words = Counter()


def _attribute(attributes: dict[str, str], name: str) -> str | None:
    return next((value for key, value in attributes.items() if key.rpartition(":")[2] == name), None)
