"""The rule that rates measured attacks as low, medium or high risk; every page that uses it states it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, Literal

from querycloak.attacks.finding import LINKING, Finding, linkage
from querycloak.compare.decide import BY_DESIGN, NO_QUESTION
from querycloak.formatting import percent
from querycloak.knowledge import Game, Knowledge
from querycloak.report.evidence import of_games
from querycloak.report.numbers import printable

Level = Literal["low", "medium", "high", "unknown"]
#: Exposure up to these shares is low, or medium.
LOW, MEDIUM = 0.05, 0.20


@dataclass(frozen=True)
class Test:
    """One of the three tests of anonymisation, and the games of ours that answer it."""

    name: str
    games: tuple[Game, ...]
    question: str

    @property
    def game(self) -> str:
        """The names of the games."""
        return ", ".join(self.games)


TESTS: Final = (
    Test("Singling out", LINKING, "Can a record, or a label, be traced to its person?"),
    Test("Linkability", (Game.LINKAGE,), "Can two records be recognised as one person's?"),
    Test("Inference", (Game.INFERENCE,), "Can something be guessed about a person that was not released?"),
)

RULE: Final = (
    "Exposure is the upper end of the 95 % interval of the strongest measured attack. Pairs of records are "
    "compared with a coin: right half of the time is an exposure of 0 %, always right one of 100 %.",
    f"Low: exposure up to {percent(LOW, 0)}. Medium: up to {percent(MEDIUM, 0)}. High: above that, or an "
    "attack beats a bound that was stated, or nothing was measured and labels are open by design: each is "
    "one person's. Unknown: no attack of the kind was measured.",
    "The thresholds are QueryCloak's, not those of any law or authority. Small logs have wide intervals, and "
    "so a higher exposure: what was not shown to be small is not called small.",
)


@dataclass(frozen=True)
class Risk:
    """The rating of one test: the level, the exposure, and the attack behind it."""

    test: Test
    level: Level
    exposure: float | None
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for `--json`."""
        return {
            "test": self.test.name,
            "game": self.test.game,
            "risk": self.level,
            "exposure": self.exposure,
            "why": self.reason,
        }


def exposure_of(finding: Finding) -> float:
    """Return the upper end of the interval; for pairs, its distance from chance."""
    high = finding.high or 0.0
    return max(0.0, 2 * high - 1) if finding.unit == "pair" else high


def assess(test: Test, findings: Sequence[Finding], labels: str) -> Risk:
    """Rate one test by the findings of its games; `labels` is what a label stands for (`label_text`)."""
    measured = of_games(findings, *test.games)
    attack, exposure = _strongest(measured)
    beaten = [printable(one.attack) for one in measured if one.holds is False]
    if beaten:
        return Risk(test, "high", exposure, f"{', '.join(beaten)} beats the stated bound")
    if exposure is None and labels == "one person each" and set(test.games) & BY_DESIGN:
        return Risk(test, "high", None, f"open by design: {NO_QUESTION[labels]}")
    if exposure is None:
        return Risk(test, "unknown", None, "no attack of this kind was measured")
    level: Level = "low" if exposure <= LOW else "medium" if exposure <= MEDIUM else "high"
    return Risk(test, level, exposure, f"strongest attack: {printable(attack)}")


def _strongest(measured: Sequence[Finding]) -> tuple[str, float | None]:
    """Return the attack with the largest exposure, and the exposure; None if no attack counts."""
    linked = linkage(measured, Knowledge.EVERYTHING)
    found = [(linked.attack, linked.high)] if linked else []
    found += [(one.attack, exposure_of(one)) for one in measured if one.game not in LINKING]
    return max(found, key=itemgetter(1), default=("", None))
