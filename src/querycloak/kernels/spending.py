"""Who may still draw: counts draws by person, record after record."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Longs = npt.NDArray[np.int64]


@njit(cache=True)
def _admit(user, need, used, limit, taken):  # type: ignore[no-untyped-def]
    for i in range(user.size):
        who = user[i]
        if used[who] + need[i] <= limit[who]:
            used[who] += need[i]
            taken[i] = True


def admit(user: Longs, need: Longs, used: Longs, limit: Longs) -> npt.NDArray[np.bool_]:
    """Say which records fit into what their person may still draw; `used` grows by what they need."""
    taken = np.zeros(user.size, np.bool_)
    _admit(user, need, used, limit, taken)
    return taken
