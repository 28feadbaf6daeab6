"""What an attack gets and gives: a view of the release, and guesses. No attack ever sees the truth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak import settings as declared

Game = Literal["attribution", "linkage", "identification", "control"]
#: Methods that put records under other labels than their authors'.
LABELLING: Final = ("swap", "cohort", "short-sessions")


@dataclass(frozen=True)
class AttackerView:
    """What an attacker has: the release, its certificate, and what else the attack says it knows.

    `release` has the canonical columns that were released, in the order of release, and
    `released_row`. `knowledge` holds what the runner gives to attacks that declare it in `knows`.
    """

    release: pl.DataFrame
    certificate: Mapping[str, Any]
    knowledge: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def setting(self, name: str, default: Any = None) -> Any:
        """Give a public setting of the release's methods, as the certificate states it."""
        for part in reversed(self.certificate.get("methods", [])):
            if name in part["settings"]:
                return part["settings"][name]
        return default

    def method(self) -> str:
        """Name the last method that gives labels, or the last of all."""
        names = [part["method"] for part in self.certificate.get("methods", [])]
        labelling = [name for name in names if name in LABELLING]
        return str((labelling or names or [""])[-1])


@dataclass(frozen=True)
class Attribution:
    """A guess for each released row: the label of its author, as text; none where null."""

    guess: pl.Series
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Linkage:
    """For pairs of released rows: how sure the attack is that one person wrote both."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Identification:
    """For each target: the released rows thought to be the target's, or the label thought to be hers."""

    target: pl.Series
    guess: pl.Series
    candidates: npt.NDArray[np.int64] | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Meanings:
    """For phrases of released queries: the concept that the attack thinks was there before.

    `row` is the place in the release, `turn` the place in its query. `meaning` reads texts as the release's
    method did: the concepts of all in one row, and where each text's begin. `ceiling` is the most that a
    guess can be right by the method's promise, given what the attack knew before; none, if that is
    not what it is about.
    """

    row: npt.NDArray[np.int64]
    turn: npt.NDArray[np.int64]
    guess: npt.NDArray[np.int64]
    meaning: Callable[[pl.Series], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
    ceiling: npt.NDArray[np.float64] | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Separated:
    """How an attack sorted one person's searches, real and fake, into clusters.

    `row` is the released row with which each search begins, `cluster` a number from 0 for few clusters and
    `finer` for many. `score` says how sure it is that she wrote both of two: of (0, 1), (0, 2) … (1, 2) …
    `hers` is the cluster that it takes for hers, if it has a reason; `told` are rows that it knew to be hers.
    """

    row: npt.NDArray[np.int64]
    cluster: npt.NDArray[np.int64]
    finer: npt.NDArray[np.int64]
    score: npt.NDArray[np.float32]
    hers: int | None = None
    told: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class Separation:
    """For each person under attack: which of her searches the attack thinks belong together.

    `again` says that a score is of its pair alone, so that searches without fakes would have been sorted by
    the same scores, with the same `seed`.
    """

    people: tuple[Separated, ...]
    seed: int
    again: bool = True
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """What an attack says of each candidate about one target: how sure it is, and if it calls it hers."""

    target: str
    score: npt.NDArray[np.float64]
    hers: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Reattachment:
    """For targets of whom some history is known: which released records the attack thinks are theirs too.

    `row` is the released row with which each candidate search begins; all claims are about these.
    """

    row: npt.NDArray[np.int64]
    claims: tuple[Claim, ...]
    details: dict[str, Any] = field(default_factory=dict)


Guesses = Attribution | Linkage | Identification | Meanings | Separation | Reattachment


class Attack(ABC):
    """Looks at a release and guesses."""

    name: ClassVar[str]
    game: ClassVar[Game]
    Settings: ClassVar[type[declared.Settings]]
    #: What an attacker must know beside the release, from what `attack` can give: see `run.KNOWLEDGE`.
    knows: ClassVar[frozenset[str]] = frozenset()
    #: Columns of the release without which the attack cannot work.
    needs: ClassVar[frozenset[str]] = frozenset({"user", "query"})
    #: Whether it asks what the release promises; a trace of a crowd, say, has no certificate.
    certified: ClassVar[bool] = True
    #: Columns beside the usual ones that it can read, if a trace has them.
    extra: ClassVar[frozenset[str]] = frozenset()
    #: Columns of the original, beside user, query and category, that what it knows is read from.
    recalls: ClassVar[frozenset[str]] = frozenset()
    #: Whether it runs when no attack is named.
    fast: ClassVar[bool] = True

    def __init__(self, settings: declared.Settings) -> None:
        self.settings = settings

    def against(self, *, fakes: bool) -> Attack:
        """Give the form of the attack for a trace with fakes, or for a release without; most have but one."""
        return self

    @abstractmethod
    def guess(self, view: AttackerView) -> Guesses:
        """Guess from what an attacker sees."""
