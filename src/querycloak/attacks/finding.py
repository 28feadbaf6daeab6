"""Results of attacks, and the share that an attacker with given knowledge links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from querycloak.formatting import percent, table
from querycloak.intervals import Estimate
from querycloak.knowledge import Game, Knowledge
from querycloak.protector import Labels

Unit = Literal["record", "user", "pair", "concept"]
#: Fields that only a finding about fakes has.
PRIVACY: Final = ("structure", "semantic", "relative")
#: Games of which a success can be a share of linked records or users; see `Finding.links`.
LINKING: Final = (Game.ATTRIBUTION, Game.IDENTIFICATION)
#: Fields that are not in the JSON form.
_INTERNAL: Final = ("knowledge", "labels")
#: What each attacker knows. Each knows at least what those before it know, but for volumes.
ATTACKERS: Final = {
    "release": Knowledge.RELEASE,
    "volumes": Knowledge.VOLUMES,
    "hours": Knowledge.HOURS,
    "searches": Knowledge.SEARCHES,
    "any": Knowledge.EVERYTHING,
}


@dataclass(frozen=True)
class Finding:
    """How often an attack was right, with its 95 % interval, and the stated bound.

    `success` is a share of `n` units, with a 95 % interval from `low` to `high`. `median_user` is the success
    against the median user, and `worst_decile_user` that which a tenth of users exceed. An attack that did
    not apply has `not_applicable` and no figures. `structure`, `semantic` and `relative` are the privacy that
    dummy queries leave to users. `knowledge` is what the attacker knows beside the release, and `labels` what
    a label of the release means.
    """

    attack: str
    game: str
    unit: Unit
    success: float | None = None
    low: float | None = None
    high: float | None = None
    bound: float | None = None
    n: int = 0
    seconds: float = 0.0
    median_user: float | None = None
    worst_decile_user: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    not_applicable: str | None = None
    structure: dict[str, Any] | None = None
    semantic: dict[str, Any] | None = None
    relative: dict[str, Any] | None = None
    knowledge: Knowledge = Knowledge.RELEASE
    labels: Labels = Labels.OWN

    @property
    def links(self) -> bool:
        """Whether the success is a share of linked records or users.

        Attribution counts where labels are mixed: a label that is one user's already shows which records
        belong together. Controls, pairs and concepts do not count: their shares are of other things.
        """
        mixed = self.labels in (Labels.OTHERS, Labels.GROUP)
        return self.game in LINKING and (mixed or self.game == Game.IDENTIFICATION)

    @property
    def share(self) -> Estimate | None:
        """The success with its interval; None without figures."""
        if self.success is None or self.low is None or self.high is None:
            return None
        return Estimate(self.success, self.low, self.high)

    @property
    def holds(self) -> bool | None:
        """Whether the bound holds: the interval's lower end is at or below it. None without a bound."""
        return bound_holds(self.bound, self.low)

    def _repr_html_(self) -> str:
        return Findings([self])._repr_html_()

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for `--json` and certificates."""
        values = {name: value for name, value in asdict(self).items() if name not in _INTERNAL}
        if self.structure is None:
            for name in PRIVACY:
                del values[name]
        order = ("attack", "game", "unit", "success", "low", "high", "bound")
        return {name: values.pop(name) for name in order} | {"holds": self.holds} | values


class Findings(list[Finding]):
    """Several findings; in a notebook, a table.

    `untested` names stated bounds, by method and game, whose game attacks played but none tested.
    """

    untested: Sequence[str] = ()

    def _repr_html_(self) -> str:
        head = ("attack", "game", "success", "95 % interval", "bound", "holds", "of")
        return table(head, [_row(finding) for finding in self])


def _row(finding: Finding) -> tuple[str, ...]:
    if finding.not_applicable:
        return finding.attack, finding.game, "–", f"not applicable: {finding.not_applicable}", "–", "–", "–"
    return (
        finding.attack,
        finding.game,
        percent(finding.success),
        f"{percent(finding.low)} to {percent(finding.high)}",
        percent(finding.bound),
        {None: "–", True: "yes", False: "no"}[finding.holds],
        f"{finding.n:,} {finding.unit}s",
    )


def bound_holds(bound: float | None, low: float | None) -> bool | None:
    """Whether the bound holds: the interval's lower end is at or below it. None without a bound."""
    return None if bound is None or low is None else low <= bound


@dataclass(frozen=True)
class Linkage:
    """The share that an attacker links: `success`, `low` and `high` are each the maximum over the attacks.

    `attack` is the one with the largest `high`.
    """

    attack: str
    success: float
    low: float
    high: float

    @property
    def share(self) -> Estimate:
        """The linked share with its interval."""
        return Estimate(self.success, self.low, self.high)


def linkage(findings: Iterable[Finding], knows: Knowledge) -> Linkage | None:
    """Return the share linked by an attacker who knows this; None if no attack counts.

    Every attacker also runs the attacks that need less, so that more knowledge never gives a smaller share.
    """
    counted = [one for one in findings if one.success is not None and one.links and one.knowledge in knows]
    if not counted:
        return None
    strongest = max(counted, key=lambda one: (one.high or 0.0, one.success or 0.0))
    return Linkage(
        strongest.attack,
        max(one.success or 0.0 for one in counted),
        max(one.low or 0.0 for one in counted),
        strongest.high or 0.0,
    )
