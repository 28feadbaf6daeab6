"""The rule that turns measured attacks into words of risk: stated on every page that uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from querycloak.report.document import Kind, Mark, shown
from querycloak.report.evidence import of_games
from querycloak.shown import percent

Level = Literal["low", "medium", "high", "unknown"]
#: Exposure up to these shares is low, or medium.
LOW, MEDIUM = 0.05, 0.20
KINDS: Final[dict[Level, Kind]] = {"low": "good", "medium": "warn", "high": "bad", "unknown": "warn"}


@dataclass(frozen=True)
class Test:
    """One of the three tests of anonymisation, and the game of ours that answers it."""

    name: str
    game: str
    question: str


TESTS: Final = (
    Test("Singling out", "attribution", "Can a record be traced to the person who wrote it?"),
    Test("Linkability", "linkage", "Can two records be recognised as one person's?"),
    Test("Inference", "identification", "Can somebody who knows a little about a person find the rest?"),
)

RULE: Final = (
    "Exposure is the upper end of the 95 % interval of the strongest measured attack. Pairs of records are "
    "compared with a coin: right half of the time is an exposure of 0 %, always right one of 100 %.",
    f"Low: exposure up to {percent(LOW, 0)}. Medium: up to {percent(MEDIUM, 0)}. High: above that, or an "
    "attack beats a bound that was stated. Unknown: no attack of the kind was measured.",
    "The thresholds are QueryCloak's, not those of any law or authority. Small logs have wide intervals, and "
    "so a higher exposure: what was not shown to be small is not called small.",
)


@dataclass(frozen=True)
class Risk:
    """How one test came out: the level, the exposure, and the attack that it is due to."""

    test: Test
    level: Level
    exposure: float | None
    reason: str

    @property
    def mark(self) -> Mark:
        """The level as a word that stands out."""
        return Mark(KINDS[self.level], self.level)

    def as_dict(self) -> dict[str, Any]:
        """Give plain values, for `--json`."""
        return {
            "test": self.test.name,
            "game": self.test.game,
            "risk": self.level,
            "exposure": self.exposure,
            "why": self.reason,
        }


def exposure_of(finding: Mapping[str, Any]) -> float:
    """Give the upper end of the interval; for pairs, how far above a coin it is."""
    high = float(finding["high"])
    return max(0.0, 2 * high - 1) if finding["unit"] == "pair" else high


def assess(test: Test, findings: Sequence[Mapping[str, Any]]) -> Risk:
    """Rate one test by the findings of its game."""
    measured = of_games(findings, test.game)
    if not measured:
        return Risk(test, "unknown", None, "no attack of this kind was measured")
    strongest = max(measured, key=exposure_of)
    exposure = exposure_of(strongest)
    beaten = [shown(one["attack"]) for one in measured if one["holds"] is False]
    if beaten:
        return Risk(test, "high", exposure, f"{', '.join(beaten)} beats the stated bound")
    level: Level = "low" if exposure <= LOW else "medium" if exposure <= MEDIUM else "high"
    return Risk(test, level, exposure, f"strongest attack: {shown(strongest['attack'])}")
