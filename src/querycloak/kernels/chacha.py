"""ChaCha20 (RFC 8439) as a keyed source of words: the randomness behind differentially private draws."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Words = npt.NDArray[np.uint32]

_SIGMA = tuple(np.uint32(word) for word in np.frombuffer(b"expand 32-byte k", "<u4"))
_R16, _R12, _R8, _R7, _W32 = (np.uint32(n) for n in (16, 12, 8, 7, 32))
_ROUNDS = 10  # double rounds


@njit(forceinline=True)
def _rotate(x, by):  # type: ignore[no-untyped-def]
    return np.uint32((x << by) | (x >> np.uint32(_W32 - by)))


@njit(forceinline=True)
def _quarter(a, b, c, d):  # type: ignore[no-untyped-def]
    a = np.uint32(a + b)
    d = _rotate(np.uint32(d ^ a), _R16)
    c = np.uint32(c + d)
    b = _rotate(np.uint32(b ^ c), _R12)
    a = np.uint32(a + b)
    d = _rotate(np.uint32(d ^ a), _R8)
    c = np.uint32(c + d)
    b = _rotate(np.uint32(b ^ c), _R7)
    return a, b, c, d


@njit(forceinline=True)
def block(key, counter, n0, n1, n2, out):  # type: ignore[no-untyped-def]
    """Write the 16 words of one block: key of eight words, block counter, nonce of three words."""
    x0, x1, x2, x3 = _SIGMA
    x4, x5, x6, x7 = key[0], key[1], key[2], key[3]
    x8, x9, x10, x11 = key[4], key[5], key[6], key[7]
    x12, x13, x14, x15 = counter, n0, n1, n2
    for _ in range(_ROUNDS):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    out[0] = np.uint32(x0 + _SIGMA[0])
    out[1] = np.uint32(x1 + _SIGMA[1])
    out[2] = np.uint32(x2 + _SIGMA[2])
    out[3] = np.uint32(x3 + _SIGMA[3])
    out[4] = np.uint32(x4 + key[0])
    out[5] = np.uint32(x5 + key[1])
    out[6] = np.uint32(x6 + key[2])
    out[7] = np.uint32(x7 + key[3])
    out[8] = np.uint32(x8 + key[4])
    out[9] = np.uint32(x9 + key[5])
    out[10] = np.uint32(x10 + key[6])
    out[11] = np.uint32(x11 + key[7])
    out[12] = np.uint32(x12 + counter)
    out[13] = np.uint32(x13 + n0)
    out[14] = np.uint32(x14 + n1)
    out[15] = np.uint32(x15 + n2)


@njit(cache=True)
def blocks(key, counter, nonce, out):  # type: ignore[no-untyped-def]
    """Fill `out`, a multiple of 16 words long, with the key stream from block `counter` on."""
    for i in range(out.size // 16):
        n0, n1, n2 = nonce
        block(key, np.uint32(counter + i), n0, n1, n2, out[16 * i : 16 * i + 16])


def key_words(key: bytes) -> Words:
    """Read a 32-byte key as the eight words that ChaCha20 takes."""
    return np.frombuffer(key[:32], "<u4").astype(np.uint32)
