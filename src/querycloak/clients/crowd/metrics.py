"""Metrics of a simulated crowd: exposure, positions, load and response time (paper 003, 4.5 to 4.7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from querycloak.clients.crowd.simulator import Trace
from querycloak.kernels.arrays import information
from querycloak.log import Flags, FloatArray, IntArray

#: Milliseconds of a round trip between two peers, and of the search engine (4.6).
LATENCY: Final = 530.0
ENGINE: Final = 400.0
#: Percentages of exposure above which a user counts as exposed; the first is the thesis's own.
LIMITS: Final = (60, 70, 80)
_TENTHS: Final = 10


def exposures(trace: Trace, query: IntArray | None = None) -> FloatArray:
    """Return the profile exposure level (PEL) of each user in percent; nan where it is undefined.

    Without query texts, each user is assumed to have several queries of its own, equally often. Then PEL is
    the share of own queries among those that the user submits.
    """
    users = trace.network.users
    all_asked = np.bincount(trace.author, minlength=users).astype(np.float64)
    all_shown, own = (trace.users[name][:-1].astype(np.float64) for name in ("submitted", "own"))
    if query is None:
        return np.where(all_asked > 0, 100.0 * (own / np.maximum(all_shown, 1)), np.nan)
    wide = int(query.max(initial=0)) + 1
    asked, times = np.unique(trace.author.astype(np.int64) * wide + query, return_counts=True)
    shown, many = np.unique(trace.outcomes["submitter"].astype(np.int64) * wide + query, return_counts=True)
    both, mine, theirs = np.intersect1d(asked, shown, assume_unique=True, return_indices=True)
    person = both // wide
    released = information(
        times[mine].astype(np.float64), many[theirs].astype(np.float64), all_asked[person], all_shown[person]
    )
    share = times / all_asked[asked // wide]
    entropy = np.bincount(asked // wide, -share * np.log2(share), minlength=users)
    known = np.bincount(person, released, minlength=users)
    return np.where(entropy > 0, 100.0 * known / np.where(entropy > 0, entropy, 1.0), np.nan)


def positions(trace: Trace) -> FloatArray:
    """Return the rank of each user among its friends by number of the user's queries submitted, from 0.

    Half of equals count as lower. A user without queries has nan.
    """
    users = trace.network.users
    person = np.repeat(np.arange(users), trace.network.friends)
    own = trace.users["own"][:-1][person].astype(np.int64)
    theirs = trace.friends["submitted"].astype(np.int64)
    before = np.bincount(person, (theirs < own) + 0.5 * (theirs == own), minlength=users)
    sent = np.bincount(trace.author, minlength=users) > 0
    return np.where(sent, before, np.nan)


def summary(trace: Trace, query: IntArray | None = None) -> dict[str, Any]:
    """Return the columns of the thesis's tables."""
    exposed, place = exposures(trace, query), positions(trace)
    return {
        "users": trace.network.users,
        "queries": int(trace.author.size),
        "hops": trace.hops,
        "response_ms": 2.0 * trace.hops * LATENCY + ENGINE,
        "exposed": _exposed(trace, exposed),
        "position": _by_friends(trace, place),
        "load": _load(trace),
        "refused": trace.refused,
        "unanswered": trace.silent,
        "alone": trace.alone,
        "seconds": trace.seconds,
        "queries_per_second": trace.author.size / trace.seconds if trace.seconds else None,
    }


def by_friends(friends: IntArray, among: Flags) -> Iterator[tuple[int, Flags]]:
    """Yield numbers of friends from 1 to 10, and who among these has so many, if there is anybody."""
    for many in range(1, 11):
        if (who := among & (friends == many)).any():
            yield many, who


def _exposed(trace: Trace, exposed: FloatArray) -> dict[str, Any]:
    """Return exposed users in percent: honest and selfish, by friends (Table 4.2), and by tenths (4.3)."""
    known, selfish = ~np.isnan(exposed), trace.selfish
    found: dict[str, Any] = {"people": int(known.sum()), "mean": _mean(np.minimum(exposed[known], 100.0))}
    for name, who in (("honest", known & ~selfish), ("selfish", known & selfish)):
        if who.any():
            found[name] = {str(limit): 100.0 * _mean(exposed[who] > limit) for limit in LIMITS}
    honest = known & ~selfish
    found["by_friends"] = {
        str(many): {str(limit): int((exposed[who] > limit).sum()) for limit in LIMITS}
        | {"people": int(who.sum())}
        for many, who in by_friends(trace.network.friends, honest)
    }
    tenth = np.clip(np.ceil(exposed[honest] / _TENTHS), 1, _TENTHS).astype(np.int64)
    counts = np.bincount(tenth, minlength=_TENTHS + 1)[1:]
    share = 100.0 * counts / max(int(honest.sum()), 1)
    found["tenths"] = {str(_TENTHS * (i + 1)): float(value) for i, value in enumerate(share)}
    return found


def _by_friends(trace: Trace, place: FloatArray) -> dict[str, Any]:
    """Return mean and deviation of positions by number of friends (Figure 4.1, Table 4.5)."""
    honest = ~trace.selfish & ~np.isnan(place)
    return {
        str(many): {
            "average": _mean(place[who]),
            "deviation": float(place[who].std()),
            "ideal": many / 2,
            "people": int(who.sum()),
        }
        for many, who in by_friends(trace.network.friends, honest)
    }


def _load(trace: Trace) -> dict[str, Any]:
    """Return queries submitted and forwarded per query that an average user sends."""
    submitted = trace.users["submitted"][:-1]
    passed, each = trace.users["passed"][:-1], trace.author.size / trace.network.users
    found = {
        "submitted_most": float(submitted.max(initial=0) / each),
        "submitted_99": float(np.quantile(submitted, 0.99) / each),
        "passed_mean": float(passed.mean() / each),
        "passed_most": float(passed.max(initial=0) / each),
    }
    if trace.selfish.any():
        sent = np.bincount(trace.author, minlength=trace.network.users)
        own = trace.users["own"][:-1] / np.maximum(sent, 1)
        found["own_submitted_by_selfish"] = _mean(own[trace.selfish & (sent > 0)])
    return found


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")
