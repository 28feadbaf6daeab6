"""Keeps each released label's profile, how often which category, while records are being released."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import polars as pl

from querycloak.dictionary import Dictionary, Texts
from querycloak.errors import UsageError
from querycloak.kernels import profiles as kernel
from querycloak.kernels.tables import PairTable
from querycloak.log import BIT, Batch, IntArray
from querycloak.protector import State


class Profiler:
    """Counts categories by label, exactly, record by record; reading a label costs what its profile holds.

    What a release leaves empty (a label, a category) is not counted. A snapshot holds the texts too, so
    that another process can carry on.

    >>> profiler = Profiler()
    >>> profiler.update(pl.DataFrame({"user": ["a", "a"], "category": ["Arts", "Arts"]}))
    >>> profiler.profile("a")
    {'Arts': 2}
    """

    def __init__(self, texts: Texts | None = None) -> None:
        self._texts = texts or Texts()
        self._clear()

    def _clear(self) -> None:
        self._table = PairTable()
        self._entries = np.empty((1024, 3), np.int64)
        self._head = np.empty(0, np.int64)
        self._size = 0
        self._code: dict[str, int] = {}

    def __len__(self) -> int:
        return int(np.count_nonzero(self._head >= 0))

    @property
    def records(self) -> int:
        """Count the records in all profiles."""
        return int(self._entries[: self._size, kernel.COUNT].sum())

    def update(self, released: Batch | pl.DataFrame) -> None:
        """Add records that were released."""
        if isinstance(released, Batch):
            self._add_batch(released)
        elif {"user", "category"} <= set(released.columns):
            user, category = self._texts.user, self._texts.category
            self._tally(user.encode(released["user"]), category.encode(released["category"]))

    def _add_batch(self, batch: Batch) -> None:
        shown = (batch.blank & (BIT["user"] | BIT["category"])) == 0
        label, category = batch.user[shown], batch.category[shown]
        if batch.texts is not self._texts:
            label = _translated(label, batch.texts.user, self._texts.user)
            category = _translated(category, batch.texts.category, self._texts.category)
        self._tally(label, category)

    def _tally(self, label: IntArray, category: IntArray, many: IntArray | None = None) -> None:
        if not label.size:
            return
        self._make_room(int(label.max()) + 1, label.size)
        counts = np.ones(label.size, np.int64) if many is None else many
        first, second, full, value = self._table.arrays
        self._size = kernel.tally(
            label, category, counts, first, second, full, value, self._entries, self._head, self._size
        )

    def _make_room(self, labels: int, more: int) -> None:
        self._table.reserve(more, held=self._size)
        self._entries = _grown(self._entries, self._size + more)
        self._head = _grown(self._head, labels)

    def profile(self, label: str) -> dict[str, int]:
        """Give a label's categories and how often each was released, the most frequent first."""
        code = self._code_of(label)
        entry = int(self._head[code]) if 0 <= code < self._head.size else -1
        found = []
        while entry >= 0:
            found.append((int(self._entries[entry, 0]), int(self._entries[entry, 1])))
            entry = int(self._entries[entry, kernel.NEXT])
        names = self._texts.category.decode(np.array([code for code, _ in found], np.int64)).to_list()
        counted = [(name, count) for name, (_, count) in zip(names, found, strict=True)]
        return dict(sorted(counted, key=lambda pair: (-pair[1], pair[0])))

    def _code_of(self, label: str) -> int:
        """Look a label up without adding it: whoever asks for unknown ones must not fill the memory."""
        if label not in self._code:
            fresh = self._texts.user.texts()[len(self._code) :].to_list()
            self._code |= {text: len(self._code) + place for place, text in enumerate(fresh)}
        return self._code.get(label, -1)

    def frame(self) -> pl.DataFrame:
        """Give all profiles as a table of label, category and count, in order of their texts."""
        label, category, count = self._items()
        columns = {"label": self._texts.user.decode(label), "category": self._texts.category.decode(category)}
        return pl.DataFrame(columns | {"count": count}).sort("label", "category")

    def _items(self) -> tuple[IntArray, IntArray, IntArray]:
        pairs = self._table.items()
        return pairs["first"], pairs["second"], self._entries[pairs["value"], kernel.COUNT]

    def merge(self, other: Profiler) -> None:
        """Add the profiles of another part of the same release."""
        label, category, count = other._items()
        if other._texts is not self._texts:
            label = _translated(label, other._texts.user, self._texts.user)
            category = _translated(category, other._texts.category, self._texts.category)
        self._tally(label, category, count)

    def snapshot(self) -> State:
        """Give all profiles as arrays; equal profiles give equal arrays, whatever their history."""
        table = self.frame()
        state: dict[str, Any] = {"count": table["count"].to_numpy()}
        for name in ("label", "category"):
            names = table[name].unique().sort()
            state[f"{name}_texts"] = np.array(names.to_list(), np.str_)
            state[name] = names.search_sorted(table[name]).cast(pl.Int64).to_numpy()
        return state

    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""
        self._clear()
        label = self._texts.user.intern(state["label_texts"].tolist())[state["label"]]
        category = self._texts.category.intern(state["category_texts"].tolist())[state["category"]]
        self._tally(label, category, state["count"].astype(np.int64))


def profiles_bytes(records: pl.DataFrame, suffix: str) -> bytes:
    """Write the profiles of records as a table of `user, category, count`: Parquet, or else CSV."""
    if "category" not in records.columns:
        raise UsageError("the release has no categories, so there are no profiles", hint="leave them out")
    profiler = Profiler()
    profiler.update(records)
    table, buffer = profiler.frame().rename({"label": "user"}), io.BytesIO()
    if suffix == ".parquet":
        table.write_parquet(buffer)
    else:
        table.write_csv(buffer)
    return buffer.getvalue()


def _translated(codes: IntArray, source: Dictionary, target: Dictionary) -> IntArray:
    """Give the codes that the same texts have in another dictionary."""
    known, place = np.unique(codes, return_inverse=True)
    translated: IntArray = target.encode(source.decode(known))[place]
    return translated


def _grown(array: IntArray, size: int) -> IntArray:
    """Give the same array with room for `size` entries, doubling so that growth stays cheap."""
    if size <= len(array):
        return array
    larger = np.full((max(size, 2 * len(array)), *array.shape[1:]), -1, np.int64)
    larger[: len(array)] = array
    return larger
