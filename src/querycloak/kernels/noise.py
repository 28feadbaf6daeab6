"""Noise for whole numbers, by OpenDP: exact samplers on the operating system's random bits.

It cannot be seeded, on purpose: who could repeat the noise could take it off again.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from querycloak.accounting import library
from querycloak.log import IntArray

#: Numbers that go to OpenDP together, as a list.
_SLICE = 1 << 16


def require() -> None:
    """Load OpenDP, or say which extra brings it."""
    library("noise for counts")


def add_laplace(counts: IntArray, scale: float) -> IntArray:
    """Add to each count its own draw of the discrete Laplace distribution: P(x) ∝ exp(-|x| / scale)."""
    opendp = library("noise for counts")
    domain = opendp.domains.vector_domain(opendp.domains.atom_domain(T="i64"))
    noise = opendp.measurements.make_laplace(domain, opendp.metrics.l1_distance(T="i64"), scale=scale)
    slices = [counts[start : start + _SLICE].tolist() for start in range(0, counts.size, _SLICE)]
    with ThreadPoolExecutor() as pool:  # OpenDP lets other threads run while it draws
        return np.array([count for part in pool.map(noise, slices) for count in part], np.int64)
