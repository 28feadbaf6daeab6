"""Slow twins of the kernels, built from sets, dicts and loops."""

from __future__ import annotations

from collections import defaultdict

_MASK = (1 << 64) - 1


def _rotate(x: int, by: int) -> int:
    return ((x << by) | (x >> (64 - by))) & _MASK


def siphash(key: bytes, message: bytes) -> int:
    """SipHash-2-4 of any message, straight from its definition."""
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:16], "little")
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & _MASK
            v[1] = _rotate(v[1], 13) ^ v[0]
            v[0] = _rotate(v[0], 32)
            v[2] = (v[2] + v[3]) & _MASK
            v[3] = _rotate(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & _MASK
            v[3] = _rotate(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & _MASK
            v[1] = _rotate(v[1], 17) ^ v[2]
            v[2] = _rotate(v[2], 32)

    padded = message + b"\0" * (7 - len(message) % 8) + bytes([len(message) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def opened(queries, users, seqs, k):
    """For each query the moment at which k different users had asked it."""
    askers, moments = defaultdict(set), {}
    for query, user, seq in zip(queries, users, seqs, strict=True):
        askers[query].add(user)
        if len(askers[query]) >= k:
            moments.setdefault(query, seq)
    return moments


def exposed(keys, users, times, span, z):
    """For each record the first of its keys that z users had within the span; -1 where none."""
    history, chosen, now = defaultdict(list), [], -(10**18)
    for row, user, time in zip(keys, users, times, strict=True):
        now = max(now, time)
        choice = -1
        for place, key in enumerate(row):
            if key < 0:
                continue
            history[key].append((now, user))
            people = {who for when, who in history[key] if when > now - span}
            if choice < 0 and len(people) >= z:
                choice = place
        chosen.append(choice)
    return chosen


def heads(times, who_and_what, rows):
    """For each row the first row of the same moment and the same person and query."""
    first = {}
    return [first.setdefault((t, w), row) for t, w, row in zip(times, who_and_what, rows, strict=True)]
