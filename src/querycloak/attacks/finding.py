"""What an attack achieved, in numbers that name nobody."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from querycloak.attacks.protocol import Game
from querycloak.shown import percent, table

Unit = Literal["record", "user", "pair", "concept"]
#: What only a finding about fakes has.
PRIVACY: Final = ("structure", "semantic", "relative")


class NotApplicable(Exception):
    """Raised when an attack has nothing to work on in a release; the text says why, and shows no cell."""


@dataclass(frozen=True)
class Finding:
    """How often an attack was right, how sure that number is, and whether a stated bound still stands.

    `success` is a share of `n` units, with a 95 % interval from `low` to `high`. `median_user` and
    `worst_decile_user` tell how it falls on people: half of them fare worse than the one, a tenth
    worse than the other. An attack that could not run has `not_applicable` and no numbers. `structure`,
    `semantic` and `relative` are the privacy that fakes left to people, from attacks that tell fakes.
    """

    attack: str
    game: Game
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

    @property
    def holds(self) -> bool | None:
        """Say whether the interval reaches down to the bound; without a bound there is nothing to say."""
        return reaches_down_to(self.bound, self.low)

    def _repr_html_(self) -> str:
        return Findings([self])._repr_html_()

    def as_dict(self) -> dict[str, Any]:
        """Give the finding as plain values, for `--json` and certificates."""
        values = asdict(self)
        if self.structure is None:
            for name in PRIVACY:
                del values[name]
        order = ("attack", "game", "unit", "success", "low", "high", "bound")
        return {name: values.pop(name) for name in order} | {"holds": self.holds} | values


class Findings(list[Finding]):
    """Several findings; in a notebook, a table."""

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


def reaches_down_to(bound: float | None, low: float | None) -> bool | None:
    """Say whether an interval that starts at `low` does not lie wholly above the bound."""
    return None if bound is None or low is None else low <= bound
