"""SipHash-2-4 of two 64-bit words: the keyed function behind labels, orders and shards."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from querycloak.log import IntArray

Words = npt.NDArray[np.uint64]

_C0, _C1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_C2, _C3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
_LENGTH_BLOCK = np.uint64(16 << 56)  # the message is always 16 bytes long
_FINAL = np.uint64(0xFF)
_R13, _R16, _R17, _R21, _R32 = (np.uint64(n) for n in (13, 16, 17, 21, 32))
_W64 = np.uint64(64)


@njit(forceinline=True)
def _rotate(x, by):  # type: ignore[no-untyped-def]
    return (x << by) | (x >> (_W64 - by))


@njit(forceinline=True)
def _round(a, b, c, d):  # type: ignore[no-untyped-def]
    a += b
    b = _rotate(b, _R13) ^ a
    a = _rotate(a, _R32)
    c += d
    d = _rotate(d, _R16) ^ c
    a += d
    d = _rotate(d, _R21) ^ a
    c += b
    b = _rotate(b, _R17) ^ c
    c = _rotate(c, _R32)
    return a, b, c, d


@njit(forceinline=True)
def siphash(k0, k1, first, second):  # type: ignore[no-untyped-def]
    """Hash the 16 bytes of two words with a key of two words."""
    a, b, c, d = k0 ^ _C0, k1 ^ _C1, k0 ^ _C2, k1 ^ _C3 ^ first
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a ^= first
    d ^= second
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a ^= second
    d ^= _LENGTH_BLOCK
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a ^= _LENGTH_BLOCK
    c ^= _FINAL
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


@njit(cache=True, nogil=True)
def _hash_many(k0, k1, first, second, out):  # type: ignore[no-untyped-def]
    for i in range(second.size):
        out[i] = siphash(k0, k1, first, second[i])


def key_words(key: bytes) -> tuple[np.uint64, np.uint64]:
    """Read the first 16 bytes of a key as the two words that SipHash takes."""
    first, second = np.frombuffer(key[:16], dtype="<u8")
    return np.uint64(first), np.uint64(second)


def draw(key: bytes, purpose: int, ids: IntArray) -> Words:
    """Draw one 64-bit number for each record id, the same one in every process and order."""
    out = np.empty(ids.size, np.uint64)
    _hash_many(*key_words(key), np.uint64(purpose), np.ascontiguousarray(ids).view(np.uint64), out)
    return out


_LOW = np.uint64(0xFFFFFFFF)
_W32 = np.uint64(32)


@njit(forceinline=True)
def uniform_below(word, size):  # type: ignore[no-untyped-def]
    """Map a 64-bit word to 0 … size - 1: the high half of word × size, off uniform by size / 2⁶⁴ at most."""
    n = np.uint64(size)
    low = (word & _LOW) * n
    return np.int64(((word >> _W32) * n + (low >> _W32)) >> _W32)


@njit(forceinline=True)
def high_below(word, size):  # type: ignore[no-untyped-def]
    """Map the upper half of a word to 0 … size - 1; off uniform by size / 2³² at most."""
    return np.int64(((word >> _W32) * np.uint64(size)) >> _W32)


@njit(forceinline=True)
def low_below(word, size):  # type: ignore[no-untyped-def]
    """Map the lower half of a word to 0 … size - 1; off uniform by size / 2³² at most."""
    return np.int64(((word & _LOW) * np.uint64(size)) >> _W32)
