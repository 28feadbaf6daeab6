"""How far people's interests lie apart: `querycloak.topics.user_distance` of all pairs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

#: Cells of a table of people and categories that are worked on together.
ROOM = 1 << 22


def user_distances(histories: Sequence[Mapping[str, float]]) -> FloatArray:
    """Give the matrix of the distances of histories, `{category path: count}`: paper 003's equation 5.13."""
    paths = sorted({path for history in histories for path, count in history.items() if count})
    place = {path: number for number, path in enumerate(paths)}
    counts = np.zeros((len(histories), len(paths)))
    for person, history in enumerate(histories):
        for path, count in history.items():
            if count:
                counts[person, place[path]] = count
    return distances_of(counts, paths)


def distances_of(counts: FloatArray, paths: Sequence[str]) -> FloatArray:
    """Do the same from a table of people and paths."""
    people, total = counts.shape[0], counts.sum(axis=1)
    node, depth = _tree(paths)
    one_way = np.empty((people, people))
    step = max(1, ROOM // max(len(paths), 1))
    for start in range(0, people, step):
        few = slice(start, start + step)
        one_way[:, few] = counts @ _to_nearest(counts[few] > 0, node, depth).T
    both = total[:, None] + total
    found = np.where(both > 0, (one_way + one_way.T) / np.where(both > 0, both, 1.0), 0.0)
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def _tree(paths: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Give for each level and path the node above it (-1: none), and each path's depth."""
    parts = [path.split("/") if path else [] for path in paths]
    depth = np.array([len(names) for names in parts], np.int64)
    nodes: dict[tuple[str, ...], int] = {}
    node = np.full((int(depth.max(initial=0)), len(parts)), -1, np.int64)
    for place, names in enumerate(parts):
        for level in range(len(names)):
            node[level, place] = nodes.setdefault(tuple(names[: level + 1]), len(nodes))
    return node, depth


def _to_nearest(has: npt.NDArray[np.bool_], node: IntArray, depth: IntArray) -> FloatArray:
    """Give the distance of each path to the nearest that a person has; 1 where no level is shared.

    Of the paths below one node the least deep is the nearest, see `querycloak.topics.distance`.
    """
    near = np.zeros(has.shape)
    least = np.full((has.shape[0], int(node.max(initial=-1)) + 1), np.inf)
    who, path = np.nonzero(has)
    for above in node:
        reached = above[path] >= 0
        np.minimum.at(least, (who[reached], above[path[reached]]), depth[path[reached]])
    for level, above in enumerate(node, start=1):
        reached = np.flatnonzero(above >= 0)
        shared = level / (depth[reached] + least[:, above[reached]] - level)
        near[:, reached] = np.maximum(near[:, reached], shared)
    near[has] = 1.0
    return 1.0 - near
