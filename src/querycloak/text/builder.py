"""Puts a taxonomy together from paths and terms as they come out of a file."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from querycloak.errors import DataError
from querycloak.text import taxonomy
from querycloak.text.taxonomy import SLASH, Taxonomy
from querycloak.text.terms import Terms

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: How strongly a category's own name speaks for it, and each word of a longer name.
NAME, NAME_WORD = 1.0, 0.3


class Builder:
    """Grows a tree path by path; whatever lies above a new category is added with it."""

    def __init__(self) -> None:
        self._parent = [-1]
        self._names = [""]
        self._children: dict[tuple[int, str], int] = {}
        self._terms: list[tuple[str, int, float]] = []

    def add(self, path: Sequence[str]) -> int:
        """Give the node of a path, adding what is missing."""
        node = taxonomy.ROOT
        for name in path:
            node = self._child(node, name.replace("/", SLASH))
        return node

    def say(self, node: int, terms: Iterable[tuple[str, float]]) -> None:
        """Let terms speak for a category."""
        self._terms.extend((term, node, weight) for term, weight in terms)

    def finish(self) -> Taxonomy:
        """Make the taxonomy; one without any category is refused."""
        if len(self._names) == 1:
            raise DataError("the taxonomy file holds no category")
        return taxonomy.build(self._parent, self._names, Terms.of_pairs(self._terms))

    def _child(self, parent: int, name: str) -> int:
        node = self._children.get((parent, name))
        if node is None:
            node = self._children[parent, name] = len(self._names)
            self._parent.append(parent)
            self._names.append(name)
            words = name.split()
            self.say(node, [(name, NAME), *((word, NAME_WORD) for word in words if len(words) > 1)])
        return node


@contextmanager
def open_plain(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacking gzip and zstandard on the way."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(f"the taxonomy file cannot be opened: {error.strerror}") from error
    with file:
        start = file.read(len(ZSTD))
        file.seek(0)
        if start.startswith(GZIP):
            with gzip.open(file) as plain:
                yield cast(BinaryIO, plain)
        elif start == ZSTD:
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, reader)))
        else:
            yield file
