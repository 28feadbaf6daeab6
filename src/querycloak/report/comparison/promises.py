"""Promises against measured attacks: for each candidate and game, whether a stated bound stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from querycloak.report.comparison.figures import percent, with_interval
from querycloak.report.comparison.result import Comparison

Verdict = Literal["holds", "broken", "no bound stated", "not applicable", "open by design"]


@dataclass(frozen=True)
class Game:
    """What an attacker tries to do, and the nearest of the three tests of European data protection."""

    name: str
    test: str
    question: str


#: The three games, each with the test of Opinion 05/2014 that it is nearest to.
GAMES: Final = (
    Game("attribution", "Singling out", "Whose record is this?"),
    Game("linkage", "Linkability", "Are these two records one person's?"),
    Game("identification", "Inference", "Which label is somebody's whom I know?"),
)


#: Why a game is no question where labels are like this.
_NO_QUESTION: Final = {
    "one person each": "a label is one person's: it says already which records belong together",
    "shared": "a label is a whole group's, so no record is one person's",
    "none": "records carry no label",
    "table": "a table of counts has no records",
    "empty": "nothing was released",
}


@dataclass(frozen=True)
class Judged:
    """What one game says about one candidate: the verdict, and the attack that it rests on.

    `best` is the strongest attack of the game, whether a bound is stated for it or not.
    """

    candidate: str
    game: str
    verdict: Verdict
    attack: str | None = None
    finding: Mapping[str, Any] | None = None
    best: str | None = None
    best_finding: Mapping[str, Any] | None = None
    why: str = ""

    @property
    def text(self) -> str:
        """Say what was found, next to the verdict."""
        if self.finding is None:
            return self.why
        text = f"{self.attack} {with_interval(self.finding)}"
        if self.finding["bound"] is not None:
            text += f"; bound {percent(self.finding['bound'])}"
        if self.best != self.attack:
            text += f". Strongest: {self.best} {with_interval(self.best_finding)}, no bound for it"
        return text


def judge(candidate: Mapping[str, Any], game: str) -> Judged:
    """Judge a candidate in one game by the findings there."""
    played = {label: one for label, one in candidate["findings"].items() if one["game"] == game}
    tried = {label: one for label, one in played.items() if one["success"] is not None}
    name = candidate["name"]
    if candidate["labels"] == "one person each" and game != "identification":
        return Judged(name, game, "open by design", why=_NO_QUESTION["one person each"])
    if not tried:
        return Judged(name, game, "not applicable", why=_why_not(candidate, list(played.values())))
    best = max(tried, key=lambda label: tried[label]["success"])
    bounded = {label: one for label, one in tried.items() if one["bound"] is not None}
    if not bounded:
        return Judged(name, game, "no bound stated", best, tried[best], best, tried[best])
    tested = max(bounded, key=lambda label: bounded[label]["success"] - bounded[label]["bound"])
    broken = [label for label, one in bounded.items() if one["holds"] is False]
    tested = (
        max(broken, key=lambda label: bounded[label]["success"] - bounded[label]["bound"])
        if broken
        else tested
    )
    if tried[best]["bound"] is not None:
        best = tested  # a stronger attack under a looser bound says nothing more
    return Judged(name, game, "broken" if broken else "holds", tested, bounded[tested], best, tried[best])


def _why_not(candidate: Mapping[str, Any], played: Sequence[Mapping[str, Any]]) -> str:
    if not played:
        return "no attack of this game was run"
    reasons = dict.fromkeys(str(one["not_applicable"]) for one in played)
    return _NO_QUESTION.get(candidate["labels"]) or "; ".join(reasons)


def table(comparison: Comparison) -> list[tuple[dict[str, Any], list[Judged]]]:
    """Judge every candidate that has numbers in every game."""
    return [(one, [judge(one, game.name) for game in GAMES]) for one in comparison.worked]


def audit_of(candidate: Mapping[str, Any]) -> str:
    """Put the audits of a candidate's promises into one word: the worst."""
    audits = [str(one["audit"]) for one in candidate["promises"]]
    return next((word for word in ("broken", "not checkable", "not applicable") if word in audits), "kept")


def words_of(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Give what the methods of candidates promise, in their own words."""
    return list(dict.fromkeys(promise["words"] for one in candidates for promise in one["promises"]))
