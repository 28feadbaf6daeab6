"""Scores many rows with small boosted trees, several times faster than walking each of them.

No tree is walked. Every node that sends a row to the right rules the leaves on its left out; the first leaf
that no node rules out is the one a walk would reach. A row's values are sorted in between all thresholds of a
feature at once, and what follows from that is looked up for all trees together: a bit for each leaf.

Reference: the idea is that of QuickScorer (Lucchese et al., 2015).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float32]

#: Leaves that a tree may have: one bit each.
MOST_LEAVES = 16
#: Rows that are sorted in between thresholds at a time.
_BLOCK = 256
#: Finds the place of a single bit among 16.
_SEQUENCE = 0x09AF
_PLACE = np.zeros(16, np.int64)
for _bit in range(MOST_LEAVES):
    _PLACE[((1 << _bit) * _SEQUENCE & 0xFFFF) >> 12] = _bit


@dataclass(frozen=True)
class Forest:
    """Trees as tables: thresholds by feature, the leaves left by each interval between them, and values.

    Interval `j` of feature `f` has the row `begins[f] + 2 * f + j` of `left`; its last is for unknown values.
    """

    begins: npt.NDArray[np.int64]
    thresholds: Floats
    left: npt.NDArray[np.uint16]
    values: npt.NDArray[np.float64]

    def __call__(self, rows: Floats) -> npt.NDArray[np.float64]:
        """Add up, for each row, the value of the leaf that it reaches in each tree."""
        out = np.empty(len(rows), np.float64)
        _score(
            np.ascontiguousarray(rows, np.float32), self.begins, self.thresholds, self.left, self.values, out
        )
        return out


@dataclass(frozen=True)
class _Node:
    """A node that rules leaves of its tree out for values above its threshold, or unknown ones."""

    tree: int
    feature: int
    threshold: np.float32
    unknown_too: bool
    mask: int


def of(trees: Sequence[Mapping[str, Any]], features: int) -> Forest:
    """Make tables of trees as LightGBM dumps them (`dump_model()["tree_info"]`), all with few leaves."""
    nodes: list[_Node] = []
    values = np.zeros((len(trees), MOST_LEAVES))
    for number, tree in enumerate(trees):
        leaves: list[float] = []
        _walk(tree["tree_structure"], number, leaves, nodes)
        if len(leaves) > MOST_LEAVES:
            raise ValueError(f"a tree has {len(leaves)} leaves; {MOST_LEAVES} are the most")
        values[number, : len(leaves)] = leaves
    by_feature = [[node for node in nodes if node.feature == feature] for feature in range(features)]
    thresholds = [np.unique([node.threshold for node in some]).astype(np.float32) for some in by_feature]
    tables = [
        _intervals(some, limits, len(trees)) for some, limits in zip(by_feature, thresholds, strict=True)
    ]
    return Forest(
        np.concatenate([[0], np.cumsum([len(limits) for limits in thresholds])]).astype(np.int64),
        np.concatenate([np.empty(0, np.float32), *thresholds]),
        np.concatenate(tables),
        values,
    )


def _walk(tree: Mapping[str, Any], number: int, leaves: list[float], nodes: list[_Node]) -> None:
    """Number the leaves from left to right, and note which of them each node can rule out."""
    if "leaf_value" in tree:
        leaves.append(float(tree["leaf_value"]))
        return
    before = len(leaves)
    _walk(tree["left_child"], number, leaves, nodes)
    after = len(leaves)
    threshold = float(tree["threshold"])
    # LightGBM reads a value that was never unknown while it learned as 0
    left_if_unknown = tree["default_left"] if tree["missing_type"] == "NaN" else threshold >= 0.0
    mask = 0xFFFF & ~((1 << after) - (1 << before))
    nodes.append(_Node(number, int(tree["split_feature"]), _below(threshold), not left_if_unknown, mask))
    _walk(tree["right_child"], number, leaves, nodes)


def _below(threshold: float) -> np.float32:
    """Return the largest short number that is not above a long one: then no short number changes sides."""
    largest = float(np.finfo(np.float32).max)
    short = np.float32(min(max(threshold, -largest), largest))
    return np.nextafter(short, np.float32(-np.inf)) if float(short) > threshold else short


def _intervals(nodes: Sequence[_Node], limits: Floats, trees: int) -> npt.NDArray[np.uint16]:
    """Return the leaves left in each tree between any two thresholds, and last where the value is unknown."""
    table = np.full((len(limits) + 2, trees), 0xFFFF, np.uint16)
    for node in nodes:
        place = int(np.searchsorted(limits, node.threshold))
        table[place + 1 : len(limits) + 1, node.tree] &= np.uint16(node.mask)
        if node.unknown_too:
            table[len(limits) + 1, node.tree] &= np.uint16(node.mask)
    return table


@njit(cache=True, nogil=True)
def _sort_in(rows, first, last, feature, limits, at):  # type: ignore[no-untyped-def]
    """Count for each row the thresholds below its value; an unknown one comes after all."""
    for i in range(last - first):
        at[i] = 0
    for limit in limits:
        for i in range(last - first):
            at[i] += rows[first + i, feature] > limit
    for i in range(last - first):
        if np.isnan(rows[first + i, feature]):
            at[i] = limits.size + 1


@njit(cache=True, nogil=True)
def _score(rows, begins, thresholds, left, values, out):  # type: ignore[no-untyped-def]
    trees, features = values.shape[0], begins.size - 1
    at = np.empty(_BLOCK, np.int32)
    alive = np.empty((_BLOCK, trees), np.uint16)
    for first in range(0, rows.shape[0], _BLOCK):
        last = min(first + _BLOCK, rows.shape[0])
        alive[:] = 0xFFFF
        for feature in range(features):
            begin, end = begins[feature], begins[feature + 1]
            if begin == end:
                continue
            _sort_in(rows, first, last, feature, thresholds[begin:end], at)
            for i in range(last - first):
                ruled, mine = left[begin + 2 * feature + at[i]], alive[i]
                for tree in range(trees):
                    mine[tree] &= ruled[tree]
        for i in range(last - first):
            total = 0.0
            for tree in range(trees):
                leaves = np.int64(alive[i, tree])
                bit = leaves & -leaves
                total += values[tree, _PLACE[(bit * _SEQUENCE & 0xFFFF) >> 12]]
            out[first + i] = total
