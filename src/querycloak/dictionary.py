"""Opaque integer codes for texts: equal codes mean equal texts, and a code tells nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.log import MISSING, IntArray


class Dictionary:
    """Encodes each distinct text as a number, over any number of pieces, and decodes it again.

    Codes depend on the order in which texts come, so nothing released may depend on a code's value;
    use `fingerprints` where a number that belongs to the text itself is needed.
    """

    def __init__(self) -> None:
        self._categories = pl.Categories.random()
        self._kind = pl.Categorical(self._categories)
        self._alive = pl.Series([], dtype=self._kind)  # polars forgets categories that no series uses
        self._size = 0
        self._fingerprints: dict[bytes, npt.NDArray[np.uint64]] = {}

    def encode(self, texts: pl.Series) -> IntArray:
        """Return the codes of a column of texts; no text gives `MISSING`."""
        series = texts.cast(self._kind).to_physical().cast(pl.Int64)
        codes = series.fill_null(MISSING).to_numpy().astype(np.int64, copy=False)
        self._size = max(self._size, int(codes.max(initial=MISSING)) + 1)
        return codes

    def intern(self, texts: Sequence[str]) -> IntArray:
        """Return the codes of a list of texts."""
        return self.encode(pl.Series(texts, dtype=pl.String))

    def decode(self, codes: IntArray) -> pl.Series:
        """Spell out codes; `MISSING` gives no text."""
        known = pl.Series(codes)
        if codes.size and int(codes.min()) < 0:
            known = known.set(known < 0, None)
        return known.cast(pl.UInt32).cat.to(self._kind).cast(pl.String)

    def texts(self) -> pl.Series:
        """Return all texts so far, in the order of their codes."""
        return self.decode(np.arange(self._size))

    def __len__(self) -> int:
        return self._size

    def find(self, text: str) -> int:
        """Return the code of a text, or `MISSING` if it has none."""
        return int(self._categories[text]) if text in self._categories else MISSING

    def fingerprints(self, codes: IntArray, key: bytes) -> npt.NDArray[np.uint64]:
        """Return a keyed 64-bit hash of each code's text: the same in every process and order."""
        known = self._fingerprints.get(key, np.empty(0, np.uint64))
        fresh = self._beyond(known.size, codes)
        if fresh is not None:
            known = self._fingerprints[key] = np.concatenate([known, fingerprint(fresh.to_list(), key)])
        return known[codes]

    def _beyond(self, known: int, codes: IntArray) -> pl.Series | None:
        """Return the texts that a cache of the first `known` lacks, if these codes need any of them."""
        last = int(codes.max(initial=MISSING))
        return self.decode(np.arange(known, last + 1)) if last >= known else None


def fingerprint(texts: Sequence[str], key: bytes) -> npt.NDArray[np.uint64]:
    """Hash texts with a key to 64 bits each."""
    digests = (hashlib.blake2b(text.encode(), key=key, digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def distinct(texts: pl.Series) -> tuple[pl.Series, IntArray]:
    """Return the distinct texts (none counts as the empty one), and for each text which of them it is."""
    filled = texts.cast(pl.String).fill_null("").rename("text")
    once = filled.unique(maintain_order=True)
    numbers = pl.DataFrame({"text": once, "number": np.arange(once.len(), dtype=np.int64)})
    joined = filled.to_frame().join(numbers, on="text", how="left", maintain_order="left")
    return once, joined["number"].to_numpy()


def ancestors(paths: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Return a row for each category path: its ancestors from level 1 down to itself, then -1; and its depth.

    Ancestors are numbered from 0 as they are met, so that equal numbers mean a common ancestor.
    """
    parts = [path.split("/") for path in paths]
    depth = np.array([len(names) for names in parts], np.int64)
    above = np.full((len(parts), max(int(depth.max(initial=0)), 1)), MISSING, np.int64)
    numbers: dict[tuple[str, ...], int] = {}
    for row, names in zip(above, parts, strict=True):
        for level in range(len(names)):
            row[level] = numbers.setdefault(tuple(names[: level + 1]), len(numbers))
    return above, depth


class CategoryDictionary(Dictionary):
    """Codes for category paths, which can also be cut to a level."""

    def __init__(self) -> None:
        super().__init__()
        self._cut: dict[int, IntArray] = {}
        self._depth = np.empty(0, np.int64)

    def at_level(self, codes: IntArray, level: int) -> IntArray:
        """Cut `Sports/Soccer/UEFA` to its first `level` names; shorter paths stay as they are."""
        known = self._cut.get(level, np.empty(0, np.int64))
        fresh = self._beyond(known.size, codes)
        if fresh is not None:
            cut = self.encode(fresh.str.split("/").list.head(level).list.join("/"))
            known = self._cut[level] = np.concatenate([known, cut])
        return np.where(codes >= 0, known[codes], MISSING) if known.size else codes.copy()

    def depths(self, codes: IntArray) -> IntArray:
        """Count the names in each path; `MISSING` has none."""
        fresh = self._beyond(self._depth.size, codes)
        if fresh is not None:
            deep = fresh.str.count_matches("/", literal=True).cast(pl.Int64).to_numpy() + 1
            self._depth = np.concatenate([self._depth, deep])
        return np.where(codes >= 0, self._depth[codes], 0) if self._depth.size else np.zeros_like(codes)


class Dictionaries:
    """The dictionaries behind the codes of a Batch."""

    def __init__(self) -> None:
        self.user = Dictionary()
        self.query = Dictionary()
        self.url = Dictionary()
        self.category = CategoryDictionary()
