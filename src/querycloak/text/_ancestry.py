"""Ancestors of nodes of a directed acyclic graph, and the ancestors that pairs of nodes share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.errors import DataError

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@njit(cache=True)
def _closure(flat, start, sizes, out, out_start):  # type: ignore[no-untyped-def]
    """Count, and if `out` has room write, the nodes at and above each node."""
    seen = np.full(start.size - 1, -1, np.int64)
    stack = np.empty(start.size, np.int64)
    for node in range(start.size - 1):
        top, count = 1, 0
        stack[0] = node
        seen[node] = node
        while top > 0:
            top -= 1
            here = stack[top]
            if out.size:
                out[out_start[node] + count] = here
            count += 1
            for place in range(start[here], start[here + 1]):
                above = flat[place]
                if seen[above] != node:
                    seen[above] = node
                    stack[top] = above
                    top += 1
        sizes[node] = count


def inverted(flat: Ints, start: Ints | Longs, size: int) -> tuple[Ints, Longs]:
    """Return for each number below `size` the rows that contain it, in order."""
    rows = np.repeat(np.arange(start.size - 1, dtype=np.int32), np.diff(start))
    order = np.argsort(flat, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=size))])
    return rows[order], bounds.astype(np.int64)


def ancestors(flat: Ints, start: Ints) -> tuple[Ints, Longs]:
    """Return all nodes at and above each node, from the rows of its parents. Raise DataError for a cycle."""
    sizes, none = np.zeros(start.size - 1, np.int64), np.empty(0, np.int32)
    _closure(flat, start, sizes, none, np.zeros(1, np.int64))
    if (np.repeat(sizes, np.diff(start)) <= sizes[flat]).any():  # each has more above it
        raise DataError("the taxonomy leads in a circle")
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    out = np.empty(bounds[-1], np.int32)
    _closure(flat, start, sizes, out, bounds)
    return out, bounds


@njit(cache=True)
def _most_apart(nodes, features, start, stamp):  # type: ignore[no-untyped-def]
    """Find the least (common / union) of two nodes, given in falling order of their numbers of features."""
    best_common, best_union = 1, 1
    for a in range(nodes.size):
        first = nodes[a]
        n1 = start[first + 1] - start[first]
        for place in range(start[first], start[first + 1]):
            stamp[features[place]] = first
        for b in range(a, nodes.size):
            second = nodes[b]
            n2 = start[second + 1] - start[second]
            # with one feature in common, no later node can lie further apart than this
            if best_union <= best_common * (n1 + n2 - 1):
                common = 0
                for place in range(start[second], start[second + 1]):
                    common += stamp[features[place]] == first
                if common * best_union < best_common * (n1 + n2 - common):
                    best_common, best_union = common, n1 + n2 - common
            else:
                break
        if best_union > best_common * (2 * n1 - 1):
            break
    return best_common, best_union


def most_apart(nodes: Longs, features: Ints, start: Longs) -> tuple[int, int]:
    """Return common and united features of the two nodes that share least; all share at least one."""
    sizes = start[nodes + 1] - start[nodes]
    in_order = nodes[np.argsort(-sizes, kind="stable")]
    stamp = np.full(int(features.max(initial=0)) + 1, -1, np.int64)
    common, union = _most_apart(in_order, features, start, stamp)
    return int(common), int(union)
