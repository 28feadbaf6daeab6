"""A release as our stronger attacks read it: searches as integers, those of a category side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.dictionary import CategoryDictionary, Dictionary
from querycloak.kernels.order import group
from querycloak.log import NO_TIME, Flags, IntArray

Codes = npt.NDArray[np.int32]

#: A row without a label has no place in the stream.
NOWHERE = -1


@dataclass(frozen=True)
class ReleaseStream:
    """The searches of a release, as places in a stream: by category, in order of release within.

    Several rows of one search (clicks) carry one label, since one token was drawn for them: they are one
    place. `at` says at which place each row of the release is.
    """

    labels: Dictionary
    strings: Dictionary
    at: IntArray
    label: Codes
    string: Codes
    category: Codes
    starts: IntArray
    time: IntArray | None

    @property
    def people(self) -> int:
        """How many labels there are."""
        return int(self.label.max(initial=-1)) + 1

    def spell(self, guess: npt.NDArray[Any]) -> pl.Series:
        """Turn guesses for places into guesses for the rows of the release."""
        rows = np.full(self.at.size, -1, np.int64)
        shown = self.at >= 0
        rows[shown] = guess[self.at[shown]]
        return self.labels.decode(rows)


def read_stream(release: pl.DataFrame, level: int) -> ReleaseStream:
    """Read a release; `level` cuts categories, and 0 takes all records for one category."""
    labels, strings = Dictionary(), Dictionary()
    label = labels.encode(release["user"])
    rows = np.flatnonzero(label >= 0)
    string = strings.encode(release["query"])[rows] if "query" in release.columns else -np.ones_like(rows)
    category, categories = categories_at(release, level)
    time = _times(release)
    columns = [label[rows], string, category[rows]] + ([time[rows]] if time is not None else [])
    opens = _opens(columns)
    order, starts = group(columns[2][opens], categories)
    at = np.full(release.height, NOWHERE, np.int64)
    at[rows] = _inverse(order)[np.cumsum(opens) - 1]
    owner, text, topic = (column[opens][order].astype(np.int32) for column in columns[:3])
    moment = columns[3][opens][order] if time is not None else None
    return ReleaseStream(labels, strings, at, owner, text, topic, starts, moment)


def _opens(columns: list[IntArray]) -> Flags:
    """Find the rows that begin a search: those that differ from the row before in any column."""
    opens = np.ones(columns[0].size, np.bool_)
    if opens.size:
        opens[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return opens


def _inverse(order: IntArray) -> IntArray:
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return place


def categories_at(release: pl.DataFrame, level: int) -> tuple[IntArray, int]:
    """Number the categories of a level from 0; rows without one share a number of their own."""
    if level == 0 or "category" not in release.columns:
        return np.zeros(release.height, np.int64), 1
    paths = CategoryDictionary()
    codes = paths.at_level(paths.encode(release["category"]), level) + 1
    return codes, int(codes.max(initial=0)) + 1


def _times(release: pl.DataFrame) -> IntArray | None:
    if "time" not in release.columns or release["time"].null_count() == release.height:
        return None
    return release["time"].cast(pl.Datetime("us")).to_physical().fill_null(NO_TIME).to_numpy()
