"""What every store of profiles can do, whatever database is behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence

from querycloak.errors import DataError

#: Label, category, and how many records more.
Counts = Sequence[tuple[str, str, int]]


class Overtaken(DataError):
    """Somebody else has counted lines in the meantime that are in these counts too; nothing was counted."""

    code = "overtaken"


class Profiles(ABC):
    """How often each label was released with each category.

    `last` is the number of the last released line that is counted. It is kept in the same transaction as the
    counts: so both are there after a crash, or neither.
    """

    last: int

    @abstractmethod
    def add(self, upto: int, counts: Counts) -> None:
        """Count the lines after `last` up to `upto`: all of them or, on an error, none.

        What is counted already (`upto` ≤ `last`) is ignored. So after `Unavailable` make the same call again,
        with the same counts: perhaps they were taken, and only the answer was lost.
        """

    def _is_new(self, upto: int, last: int) -> bool:
        """Say whether counts up to a line are new to a database that has counted up to `last`.

        The caller gathered them from `self.last` on. When the database has gone on since (a commit whose
        answer was lost, or a second service), counts that go further would count some lines twice.
        """
        if upto > last != self.last:
            raise Overtaken(
                f"the profiles are counted up to line {last:,} already, not {self.last:,}",
                hint="give a failed call again as it was; two services must not share one stream's name",
            )
        return upto > last

    @abstractmethod
    def of(self, label: str) -> dict[str, int] | None:
        """Give a label's categories and counts, the most frequent first; None if it has none."""

    @abstractmethod
    def totals(self) -> dict[str, int]:
        """Give the counts of all labels together by category of the first level, the most frequent first."""

    @abstractmethod
    def forget(self, label: str) -> int:
        """Remove a label's profile, also from the totals; say how many records it counted."""

    @abstractmethod
    def close(self) -> None:
        """Let the database go."""


class NoProfiles(Profiles):
    """Keeps nothing, for whoever wants no profiles."""

    last = 0

    def add(self, upto: int, counts: Counts) -> None:
        """Note how far it would be."""
        self.last = max(self.last, upto)

    def of(self, label: str) -> dict[str, int] | None:
        """Know nobody."""
        return None

    def totals(self) -> dict[str, int]:
        """Have counted nothing."""
        return {}

    def forget(self, label: str) -> int:
        """Have nothing to forget."""
        return 0

    def close(self) -> None:
        """Have nothing to let go."""


def first_levels(rows: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Add up counts by the first level of their category."""
    whole: Counter[str] = Counter()
    for category, count in rows:
        whole[category] += count
    counted: Counter[str] = Counter()
    for category, count in whole.items():
        counted[category.partition("/")[0]] += count
    return sorted(counted.items())


def by_frequency(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Put the most frequent first; equally frequent ones by name."""
    return dict(sorted(rows, key=lambda row: (-row[1], row[0])))


def storable(text: str) -> str:
    """Replace the one character that PostgreSQL cannot keep, so that all stores give the same answers."""
    return text.replace("\0", "\ufffd") if "\0" in text else text


def added_up(counts: Counts) -> list[tuple[str, str, int]]:
    """Give each label and category once, in order: neighbours in the index are written together."""
    if not any("\0" in label or "\0" in category for label, category, _ in counts):
        once = {(label, category) for label, category, _ in counts}
        if len(once) == len(counts):  # as a tally gives them: nothing to add up
            return sorted(counts)
    total: Counter[tuple[str, str]] = Counter()
    for label, category, more in counts:
        total[storable(label), storable(category)] += more
    return sorted((label, category, more) for (label, category), more in total.items())
