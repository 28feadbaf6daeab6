"""What keeps one friend from taking more than her share: a rate, and a memory that forgets the oldest."""

from __future__ import annotations

from collections import OrderedDict


class Bucket:
    """Lets `rate` things a second through, and `burst` at once after a rest."""

    __slots__ = ("_burst", "_filled", "_left", "_rate")

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst, self._left, self._filled = rate, burst, burst, 0.0

    def take(self, now: float) -> bool:
        """Take one, if there is one."""
        self._left = min(self._burst, self._left + max(0.0, now - self._filled) * self._rate)
        self._filled = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Recent:
    """Remembers the last things it was told, at most `size` of them."""

    __slots__ = ("_known", "_size")

    def __init__(self, size: int) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()
        self._size = size

    def __contains__(self, thing: str) -> bool:
        return thing in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, thing: str) -> None:
        """Remember one thing, and forget the oldest if there are too many."""
        self._known[thing] = None
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def remove(self, thing: str) -> bool:
        """Forget one thing; say whether it was known."""
        return self._known.pop(thing, 0) is None


def fingerprint(text: str) -> str:
    """Stand for a text in memory, by a hash whose key every process draws anew."""
    return str(hash(text))
