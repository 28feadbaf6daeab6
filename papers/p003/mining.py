"""k-means of people before and after microaggregation, by the distance of 5.3 (Figures 5.5 and 5.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl

import querycloak as qc
from querycloak.dictionary import Dictionaries
from querycloak.log import MISSING, NO_TIME, Batch, FloatArray, IntArray
from querycloak.measures.partitions import jaccard_index, k_means, rand_index, starts_of
from querycloak.methods.microaggregation.representatives import means, proportional_picks
from querycloak.methods.microaggregation.text_distance import distances

Item = TypeVar("Item")

#: People, and numbers of groups, for which means are histories made by the section's own aggregation.
OWN_PEOPLE, OWN_GROUPS, OWN_ROUNDS = 400, (10, 100), 6


def by_person(frame: pl.DataFrame, users: list[str]) -> Batch:
    """Return the records of a log user by user, in the order of `users`."""
    texts, place = Dictionaries(), {user: number for number, user in enumerate(users)}
    rows = frame.filter(pl.col("user").is_in(users)).drop_nulls("query")
    user = np.array([place[name] for name in rows["user"]], np.int64)
    columns = {
        "row": np.arange(len(rows)),
        "user": user,
        "query": texts.query.encode(rows["query"]),
        "url": texts.url.encode(rows["url"]),
        "rank": rows["rank"].fill_null(MISSING).to_numpy().astype(np.int64),
        "time": rows["time"].dt.epoch("us").fill_null(NO_TIME).to_numpy(),
    }
    return Batch.of(columns, texts)[np.argsort(user, kind="stable")]


def mined(log: qc.Log, ks: tuple[int, ...], groups: tuple[int, ...], seed: int) -> list[dict[str, Any]]:
    """Cluster people before and after, and compare; also two clusterings of the original, as a yardstick."""
    users = log.frame["user"].unique(maintain_order=True).to_list()
    before = distances(by_person(log.frame, users))
    found = [_compared(before, before, k=1, groups=groups, start=1)]
    for k in ks:
        shown = qc.protect(log, "microagg-syntactic", k=k, seed=seed).log.frame
        found.append(_compared(before, distances(by_person(shown, users)), k=k, groups=groups))
        found[-1]["own"] = _own(log.frame, shown, users[:OWN_PEOPLE])
        print(f"mining k={k}", flush=True)
    return found


def _compared(before: Any, after: Any, k: int, groups: tuple[int, ...], start: int = 0) -> dict[str, Any]:
    """Return both indices for every number of groups; both sides begin with the same people."""
    line: dict[str, Any] = {"k": k, "rand": {}, "jaccard": {}}
    for number in groups:
        sides = [
            k_means(before, starts_of(before, number)),
            k_means(after, starts_of(before, number, seed=start)),
        ]
        line["rand"][str(number)] = rand_index(*(side.tolist() for side in sides))
        line["jaccard"][str(number)] = jaccard_index(*(side.tolist() for side in sides))
    return line


def _own(before: pl.DataFrame, after: pl.DataFrame, users: list[str]) -> dict[str, Any]:
    """Return the same for few users with the section's own aggregation as the mean of a group."""
    sides = []
    starts = {g: starts_of(distances(by_person(before, users)), g) for g in OWN_GROUPS}
    for frame in (before, after):
        batch = by_person(frame, users)
        items = [batch[np.flatnonzero(batch.user == number)] for number in range(len(users))]
        sides.append({g: k_means_by(items, starts[g], _apart, _together, OWN_ROUNDS) for g in OWN_GROUPS})
    pairs = {g: (sides[0][g].tolist(), sides[1][g].tolist()) for g in OWN_GROUPS}
    return {
        "rand": {str(g): rand_index(*pair) for g, pair in pairs.items()},
        "jaccard": {str(g): jaccard_index(*pair) for g, pair in pairs.items()},
    }


def _apart(items: Sequence[Batch], centres: list[Batch]) -> Any:
    """Return the distances of all users from the centres."""
    both = [*centres, *items]
    user = np.repeat(np.arange(len(both)), [len(one) for one in both])
    columns = {name: np.concatenate([getattr(one, name) for one in both]) for name in both[0].arrays()}
    line = Batch.of(columns | {"user": user}, both[0].texts)
    return distances(line)[: len(centres), len(centres) :]


def _together(items: list[Batch]) -> Batch:
    """Return the history of a group, as the method makes it (5.3.1.4), with whole domain names."""
    whole = items[0]
    for item in items[1:]:
        whole = whole + item
    draws = np.random.default_rng(0).integers(0, 2**63, len(whole)).astype(np.uint64)
    time = means(whole.query, whole.time, whole.time != NO_TIME, NO_TIME)
    rank = means(whole.query, whole.rank, whole.rank >= 0, MISSING)
    chosen = whole.replace(time=time, rank=rank)[proportional_picks(whole.user, whole.query, draws)]
    return chosen.replace(user=np.zeros(len(chosen), np.int64))


def k_means_by(
    items: Sequence[Item],
    starts: IntArray,
    distances: Callable[[Sequence[Item], list[Any]], FloatArray],
    aggregate: Callable[[list[Item]], Any],
    rounds: int = 20,
) -> IntArray:
    """Return groups of k-means with any distance and aggregation, as in section 5.3.2.4 of paper 003.

    `distances(items, centres)` gives a row for each centre, with how far all items are from it, and
    `aggregate` makes a group's centre.
    """
    centres: dict[int, Any] = {place: items[start] for place, start in enumerate(starts.tolist())}
    labels = np.full(len(items), -1, np.int64)
    for _ in range(rounds):
        names = np.array(list(centres), np.int64)
        nearest = np.argmin(distances(items, list(centres.values())), axis=0)
        if np.array_equal(names[nearest], labels):
            break
        labels = names[nearest]
        groups = {place: np.flatnonzero(labels == place).tolist() for place in sorted(set(labels.tolist()))}
        centres = {place: aggregate([items[i] for i in group]) for place, group in groups.items()}
    return labels
