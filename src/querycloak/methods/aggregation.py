"""How groups share one history: whose records count how often."""

from __future__ import annotations

from typing import Any

import numpy as np

from querycloak.log import IntArray


def quotas(shares: Any) -> IntArray:
    """Round shares to whole numbers that add up to the rounded sum, by largest remainders.

    >>> quotas(np.array([0.5, 1.5, 2.0])).tolist()
    [1, 1, 2]
    """
    whole = np.floor(shares).astype(np.int64)
    left = round(float(shares.sum())) - int(whole.sum())
    whole[np.argsort((whole - shares).round(9), kind="stable")[:left]] += 1  # thirds are equal
    return np.asarray(whole, np.int64)
