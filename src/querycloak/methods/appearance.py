"""How far apart people are by what their searches look like (paper 003, 5.3.1.2), from columns of a log.

Everything here takes records that stand person by person.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from querycloak.kernels import vector_distance
from querycloak.kernels.history_distance import Histories, Hosts, Strings, normalise, user_distances
from querycloak.log import NO_TIME, Batch, IntArray
from querycloak.methods.spelling import name_hosts, spell


def starts_of(user: IntArray) -> IntArray:
    """Say where each person's records begin, and where the last one's end."""
    return np.append(np.flatnonzero(np.diff(user, prepend=-1)), user.size)


def distances(held: Batch, weights: str = "text") -> npt.NDArray[np.float64]:
    """Give the distance of equation 5.4 for every pair of people."""
    return user_distances(*_laid_out(held), weights)


def _laid_out(held: Batch) -> tuple[Histories, Strings, Hosts]:
    urls, url = np.unique(held.url, return_inverse=True)
    host, hosts = name_hosts(held.texts.url.decode(urls).fill_null("").to_list())
    strings, string = _strings(held)
    histories = Histories(
        starts=starts_of(held.user),
        time=normalise(held.time, held.time != NO_TIME),
        rank=normalise(held.rank, held.rank >= 0),
        host=host[url],
        string=string,
    )
    return histories, strings, hosts


def _strings(held: Batch) -> tuple[Strings, IntArray]:
    """Spell the distinct queries, and say which each record has."""
    queries, string = np.unique(held.query, return_inverse=True)
    return spell(held.texts.query.decode(queries).to_list()), string


def outlines(held: Batch) -> vector_distance.Vectors:
    """Describe people by what opens gaps between them: how many searches, and their extremes."""
    strings, string = _strings(held)
    letters = np.diff(strings.bounds)[strings.words]
    longest = np.maximum.reduceat(np.append(letters, 0), strings.starts[:-1]) * (strings.terms > 0)
    time, rank = normalise(held.time, held.time != NO_TIME), normalise(held.rank, held.rank >= 0)
    most = (time, rank, normalise(strings.terms)[string], normalise(longest)[string])
    starts = starts_of(held.user)
    columns = [np.maximum.reduceat(one, starts[:-1]) for one in most]
    first = np.minimum.reduceat(time, starts[:-1])
    return vector_distance.by_line(np.column_stack([normalise(np.diff(starts)), first, *columns]))
