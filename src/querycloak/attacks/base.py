"""The interface of attacks: the attacker's view of a release, and the kinds of guesses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak import settings as declared
from querycloak.errors import NotApplicable
from querycloak.knowledge import Game, Knowledge
from querycloak.log import Flags, FloatArray, IntArray
from querycloak.protector import AttackBound, Labels, Traits
from querycloak.registry import labelling_of, labels_of, stages_of

if TYPE_CHECKING:
    from querycloak.attacks.auxiliary import Request


@dataclass(frozen=True)
class AttackerView:
    """What an attacker has: the release, its certificate, and the auxiliary information that was requested.

    `release` has the canonical columns that were released, in release order, and `released_row`. `auxiliary`
    has a frame for each request of the attack, by the name of the request.
    """

    release: pl.DataFrame
    certificate: Mapping[str, Any]
    auxiliary: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def setting(self, name: str, default: Any = None) -> Any:
        """Return a public setting of the release's methods, as the certificate has it."""
        for part in reversed(self.certificate.get("methods", [])):
            if name in part["settings"]:
                return part["settings"][name]
        return default

    @cached_property
    def stages(self) -> list[tuple[str, Traits | None]]:
        """The methods of the release with their traits; None for a method that is not installed here."""
        return stages_of(self.certificate)

    @cached_property
    def labels(self) -> Labels:
        """What a label of the release means."""
        return labels_of(self.certificate)

    @property
    def never_author(self) -> bool:
        """Whether the certificate excludes that a label is the author's."""
        return self.labels is Labels.OTHERS

    def labelling_setting(self, name: str) -> Any:
        """Return a setting of the method that made the labels, as the certificate has it."""
        parts = self.certificate.get("methods", [])
        return parts[labelling_of(self.stages)]["settings"].get(name) if parts else None

    def assumed_k(self, chosen: int) -> int:
        """Return the attacker's k: `chosen`, or that of the certificate if `chosen` is 0.

        The certificate's is the setting `k` of the method that made the labels, or the inverse of its bound.
        """
        k = chosen or self.labelling_setting("k") or self._k_of_bound()
        if not isinstance(k, int):
            raise NotApplicable("the certificate states neither k nor a bound; set one with `k`")
        return k

    def _k_of_bound(self) -> int | None:
        own = self.stages[labelling_of(self.stages)][1] if self.stages else None
        found = [one.value for one in own.bounds if one.game == Game.ATTRIBUTION] if own else []
        return max(1, round(1 / min(found))) if found else None

    def assumed_level(self, chosen: int, default: int = 0) -> int:
        """Return the attacker's level: `chosen`, or that of the certificate, or `default` if it has none.

        A level that varies counts as 1; 0 does not cut categories.
        """
        level = chosen or self.labelling_setting("level")
        if isinstance(level, int):
            return level
        return default if level is None else 1

    def bound(
        self, game: Game, knowledge: Knowledge = Knowledge.RELEASE, known_terms: float = 0
    ) -> tuple[str, AttackBound] | None:
        """Return the last method with a bound on this game for an attacker who knows this, and the bound.

        A method that exchanges labels voids the bounds of earlier ones: its labels stand for others.
        """
        for place, (name, own) in reversed(list(enumerate(self.stages))):
            found = [b for b in own.bounds if b.covers(game, knowledge, known_terms)] if own else []
            if found:
                return name, found[0]
            labelling = place == labelling_of(self.stages)
            if labelling and (game == Game.ATTRIBUTION or (own and own.labels.exchanged)):
                return None
        return None


@dataclass(frozen=True)
class Attribution:
    """A guess for each released row: the label of its author as text, or null."""

    guess: pl.Series
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PairGuesses:
    """A score for pairs of released rows: the larger, the likelier that both have one author."""

    first: IntArray
    second: IntArray
    score: FloatArray
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Identification:
    """A guess for each target: a label, released rows, or a list of either."""

    target: pl.Series
    guess: pl.Series
    candidates: IntArray | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ConceptGuesses:
    """Guesses of the original concepts of phrases in released queries.

    `row` is the place in the release, `turn` the place in its query. `meaning` reads texts as the release's
    method did: the concepts of all texts in sequence, and where those of each text begin. `ceiling` is the
    largest success probability of each guess by the method's guarantee, given the attacker's prior; None if
    the prior is not that of the log.
    """

    row: IntArray
    turn: IntArray
    guess: IntArray
    meaning: Callable[[pl.Series], tuple[IntArray, IntArray]]
    ceiling: FloatArray | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusteredTrace:
    """The searches of one user, real and fake, sorted into clusters.

    `row` is the released row with which each search begins, `cluster` a number from 0 for few clusters and
    `finer` for many. `score` has one value for each pair of searches: (0, 1), (0, 2) … (1, 2) …
    `own_cluster`: the cluster attributed to the target, or None. `known_rows`: rows known to be the target's.
    """

    row: IntArray
    cluster: IntArray
    finer: IntArray
    score: npt.NDArray[np.float32]
    own_cluster: int | None = None
    known_rows: IntArray = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class TraceClusters:
    """Clusters of the searches of each target.

    `again`: whether a score depends on its pair alone, so that searches without fakes would have been sorted
    by the same scores, with the same `seed`.
    """

    people: tuple[ClusteredTrace, ...]
    seed: int
    again: bool = True
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """Scores of all candidate records for one target, and which of them are claimed as the target's."""

    target: str
    score: FloatArray
    claimed: Flags


@dataclass(frozen=True)
class RecordClaims:
    """Claims about the further records of targets with known searches.

    `row` is the released row with which each candidate search begins; all claims are about these.
    """

    row: IntArray
    claims: tuple[Claim, ...]
    details: dict[str, Any] = field(default_factory=dict)


Guesses = Attribution | PairGuesses | Identification | ConceptGuesses | TraceClusters | RecordClaims


@dataclass(frozen=True, kw_only=True)
class AssumedSettings(declared.Settings):
    """Settings of an attack that assumes a k and a level; see `AttackerView.assumed_k`."""

    k: int = declared.setting(0, at_least=0, help="the attacker's k; 0 takes the certificate's")
    level: int = declared.setting(
        0, at_least=0, at_most=13, help="the attacker's level; 0 takes the certificate's"
    )


class Attack(ABC):
    """Guesses from a release and the auxiliary information that it requests. It never sees the truth."""

    name: ClassVar[str]
    game: ClassVar[str]
    Settings: ClassVar[type[declared.Settings]] = declared.Settings
    #: Columns of the release without which the attack cannot run.
    columns: ClassVar[frozenset[str]] = frozenset({"user", "query"})
    #: Further columns of a trace that it reads if there are any, such as the messages that a peer received.
    trace_columns: ClassVar[frozenset[str]] = frozenset()
    #: Whether it needs a certificate; a trace of a crowd, for instance, has none.
    certified: ClassVar[bool] = True
    #: Whether it runs when no attack is named.
    fast: ClassVar[bool] = True

    def __init__(self, settings: declared.Settings) -> None:
        self.settings = settings

    def requests(self) -> tuple[Request, ...]:
        """Return the auxiliary information that the attack needs, by its settings."""
        return ()

    @classmethod
    def sees(cls) -> list[str]:
        """Return what the attacker has by default: the release, and the names of the requests."""
        return ["release", *sorted(one.name for one in cls(cls.Settings()).requests())]

    def knowledge(self) -> Knowledge:
        """Return what the attacker knows beside the release."""
        return reduce(or_, (one.knowledge() for one in self.requests()), Knowledge.RELEASE)

    def against(self, *, fakes: bool) -> Attack:
        """Return the form of the attack for a trace with fakes, or for a release without."""
        return self

    @abstractmethod
    def guess(self, view: AttackerView) -> Guesses:
        """Return guesses from the attacker's view."""
