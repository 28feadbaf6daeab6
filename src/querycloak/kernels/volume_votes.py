"""Chooses among the labels near a record, weighing nearness by how much each person searches."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def heaviest_nearby(label, category, fall, volume, barred, best):  # type: ignore[no-untyped-def]
    """For each place: the label with the largest (sum of `fall` by distance) × volume in its category."""
    sums = np.zeros(volume.size, np.float64)
    reach = fall.size - 1
    for i in range(label.size):
        first, last = max(0, i - reach), min(label.size - 1, i + reach)
        for j in range(first, last + 1):
            if category[j] == category[i]:
                sums[label[j]] += fall[abs(j - i)]
        top, best[i] = -1.0, -1
        for j in range(first, last + 1):
            own = barred and label[j] == label[i]
            weight = sums[label[j]] * volume[label[j]]
            if category[j] == category[i] and not own and weight > top:
                top, best[i] = weight, label[j]
        for j in range(first, last + 1):
            sums[label[j]] = 0.0
