"""The rows and facts of a comparison's tables, each made once for Markdown and for the page."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from querycloak.compare.decide import judge_bound, worst_audit
from querycloak.compare.result import CandidateResult, Comparison, VariedSetting
from querycloak.formatting import percent, plural, verdict_word
from querycloak.measures.base import ALL_USES, KEEP, USES
from querycloak.report.comparison.answers import ATTACKER, LIMITS, choose, not_linked, unit_of, verdict_text
from querycloak.report.numbers import (
    capitalised,
    listed,
    megabytes,
    printable,
    seconds,
    span,
    with_interval,
    with_spread,
)
from querycloak.report.risk import TESTS

_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")


class Game(NamedTuple):
    """What an attacker tries to do, and the nearest of the three tests of European data protection."""

    name: str
    question: str
    test: str

    @property
    def title(self) -> str:
        """The test, with the game in brackets."""
        return f"{self.test} ({self.name})"


_QUESTIONS: Final = {
    "attribution": "Whose record is this?",
    "identification": "Which label is somebody's whom I know?",
    "linkage": "Are these two records one person's?",
    "inference": "What was the search before it was changed?",
}
#: The games of attacks.
GAMES: Final = tuple(Game(game, _QUESTIONS[game], test.name) for test in TESTS for game in test.games)


@dataclass(frozen=True)
class Cell:
    """A number of a table: its exact value, its text, a second line, and a reason or source."""

    value: float | None
    text: str
    detail: str = ""
    why: str = ""

    @property
    def exact(self) -> str | None:
        """The value with all digits, for sorting."""
        return None if self.value is None else repr(self.value)


def overview(comparison: Comparison) -> str:
    """Return a paragraph about what was compared on which log."""
    log = comparison.log
    methods = {method for one in comparison.candidates for method in one.methods}
    text = (
        f"{len(comparison.candidates)} ways to protect one search log, made of {len(methods)} methods. Each "
        f"was run on the log, attacked in {len(comparison.attacks)} ways, and measured for what it keeps. "
        "The report shows what each way leaves to work with, and how much of it an attacker still attributes "
        f"to the right person. The log has {log.of_records:,} records of {log.of_people:,} people."
    )
    if log.sampled:
        text += (
            f" The comparison ran on a random sample of {log.people:,} people ({log.records:,} records). "
            "Smaller samples have smaller anonymity sets, so the linked shares of the whole log can differ."
        )
    if skipped := sum(log.skipped.values()):
        text += f" {skipped:,} lines of the log could not be read and were left out."
    return text


def cards(comparison: Comparison) -> list[tuple[str, str]]:
    """Return the key figures with what they count."""
    log = comparison.log
    methods = {method for one in comparison.candidates for method in one.methods}
    whole = f"of {log.of_people:,} people" if log.sampled else "people, all there are"
    return [
        (f"{log.people:,}", f"{whole}, {log.records:,} records"),
        (f"{len(comparison.candidates)}", f"settings of {plural(len(methods), 'method')}"),
        (f"{len(comparison.attacks)}", f"attacks tried, {plural(comparison.repeats, 'run')}"),
        (comparison.preset or "own choice", f"plan; seed {comparison.seed}, QueryCloak {comparison.version}"),
    ]


def answer_tables(comparison: Comparison, attackers: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return, for each attacker, the best candidate by limit and use, and the candidates left out."""
    return [
        {
            "title": f"If at most so much may be linked by {ATTACKER[attacker]}",
            "head": ["At most", *(f"To keep {word}" for word in KEEP.values())],
            "rows": [
                (
                    f"{100 * limit:g} %",
                    [
                        _answer(choose(comparison, limit, use, attacker).candidate, use, attacker)
                        for use in KEEP
                    ],
                )
                for limit in LIMITS
            ],
            "left_out": [
                f"{listed(names, 40)}: {reason}." for reason, names in not_linked(comparison, attacker)
            ],
        }
        for attacker in attackers
    ]


def _answer(candidate: CandidateResult | None, use: str, attacker: str) -> tuple[str, str]:
    share, found = (candidate.kept(use), candidate.linked(attacker)) if candidate else (None, None)
    if candidate is None or share is None or found is None:
        return "", "none of those tried"
    linked = f"linked {percent(found.success)}, at most {percent(found.high)}"
    return candidate.name, f"keeps {percent(share.value)}; {linked}"


def candidate_head() -> list[tuple[str, str]]:
    """Return the columns of the table of candidates, each with the name of its numbers in the CSV."""
    return [
        ("Linked: sees the release only", "linked.release"),
        ("Linked: knows more", "linked.knowing"),
        *((capitalised(use.title), f"kept.{use.name}") for use in ALL_USES.values()),
        ("Time to protect", "cost.protect_seconds"),
        ("Memory", "cost.peak_mb"),
    ]


def candidate_cells(one: CandidateResult) -> list[Cell]:
    """Return the numbers of a candidate, in the order of `candidate_head`."""
    cells = []
    for found in map(one.linked, ("release", "knowing")):
        if found is None:
            cells.append(Cell(None, "–", why=one.why_not_linked))
            continue
        detail = f"{span(found.low, found.high)} of {unit_of(one, found.attack)}"
        cells.append(Cell(found.success, percent(found.success), detail, found.attack))
    for use in ALL_USES.values():
        share = one.kept(use.name)
        why = "" if share else one.why_not_kept(use.name)
        cells.append(Cell(share and share.value, with_spread(share), why=why))
    cells.append(Cell(one.cost.protect_seconds, seconds(one.cost.protect_seconds)))
    return [*cells, Cell(one.cost.peak_mb, megabytes(one.cost.peak_mb))]


def candidate_texts(one: CandidateResult) -> list[str]:
    """Return the row of a candidate in the Markdown table: shares with their intervals in one cell."""
    found = map(one.linked, ("release", "knowing"))
    linked = [with_interval(each.share if each else None) for each in found]
    kept = [with_spread(one.kept(use.name)) for use in USES]
    return [one.name, *linked, *kept, seconds(one.cost.protect_seconds), megabytes(one.cost.peak_mb)]


def verdict_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return, for each candidate, its promise, the verdict of its audit, and one verdict per game."""
    return [
        {
            "name": one.name,
            "promise": "; ".join(promise.words for promise in one.promises),
            "audit": verdict_word(worst_audit(one)),
            "games": [
                (judged.verdict, verdict_text(one, judged))
                for judged in (judge_bound(one, game.name) for game in GAMES)
            ],
        }
        for one in comparison.succeeded
    ]


def method_cards(comparison: Comparison) -> list[dict[str, Any]]:
    """Return, for each method, what it does, keeps, and does not protect against."""
    return [
        {
            "name": name,
            "about": comparison.methods.get(name, ""),
            "keeps": keeps(comparison, name),
            "limits": limits,
        }
        for name, limits in not_protected(comparison).items()
    ]


def not_protected(comparison: Comparison) -> dict[str, list[str]]:
    """Return what each method does not protect against; a number that varies becomes the setting's name."""
    found: dict[str, dict[str, list[tuple[str, VariedSetting | None]]]] = {}
    for one in comparison.succeeded:
        for promise in one.promises:
            lines = found.setdefault(promise.method, {})
            for text in promise.does_not_protect_against:
                lines.setdefault(_NUMBER.sub("#", text), []).append((text, one.varied))
    return {method: [_general(texts) for texts in lines.values()] for method, lines in found.items()}


def _general(texts: list[tuple[str, VariedSetting | None]]) -> str:
    """Return one text for several that differ in numbers: `k accounts` for `5 accounts`, `10 accounts`."""
    first = texts[0][0]
    numbers = [_NUMBER.findall(text) for text, _ in texts]
    if len(set(map(tuple, numbers))) == 1:
        return first
    names = [varied.setting.rpartition(".")[2] if varied else "n" for _, varied in texts]
    name = names[0] if len(set(names)) == 1 else "n"
    varying = iter(len({row[place] for row in numbers}) > 1 for place in range(len(numbers[0])))
    return _NUMBER.sub(lambda number: name if next(varying) else number[0], first)


def keeps(comparison: Comparison, method: str) -> str:
    """Return what a method keeps by itself: the range over the settings that were tried."""
    parts = []
    for use in USES:
        shares = [one.kept(use.name) for one in comparison.succeeded if one.methods == [method]]
        values = [share.value for share in shares if share]
        if values:
            low, high = percent(min(values)), percent(max(values))
            parts.append(f"{use.title.removesuffix(' kept')} {low if low == high else f'{low} to {high}'}")
    return ", ".join(parts)


def user_rows(comparison: Comparison) -> list[list[str]]:
    """Return how the strongest attack on each candidate is spread over users."""
    rows = []
    for one in comparison.succeeded:
        best = one.linked("any")
        found = one.findings[best.attack] if best else None
        if best and found and found.median_user is not None:
            attack = f"{best.attack} ({unit_of(one, best.attack)})"
            shares = (found.success, found.median_user, found.worst_decile_user)
            rows.append([one.name, attack, *map(percent, shares)])
    return rows


def attack_rows(comparison: Comparison) -> list[tuple[str, str, str, str]]:
    """Return the attacks that were run: test, what it sees, what it does."""
    tests = {game.name: game.test for game in GAMES}
    return [
        (one["label"], tests.get(one["game"], "Control"), ", ".join(one["sees"]), one["summary"])
        for one in comparison.attacks
    ]


def not_run(comparison: Comparison) -> list[str]:
    """Return what has no numbers, and why."""
    failed = [f"{one.name}: {one.failed}" for one in comparison.candidates if one.failed]
    return failed + [f"{one['method']}: {one['why']}" for one in comparison.not_run]


def settings_of(one: CandidateResult) -> str:
    """Return all settings on one line."""
    several = len(one.settings) > 1
    return "; ".join(
        (f"{method}: " if several else "")
        + ", ".join(f"{name}={printable(value)}" for name, value in settings.items())
        for method, settings in one.settings.items()
    )


def command(comparison: Comparison) -> str:
    """Return the command that makes these numbers again."""
    words = comparison.arguments or _arguments(comparison)
    return shlex.join(["querycloak", "compare", "LOG", *words, "--seed", str(comparison.seed), "-o", "DIR"])


def _arguments(comparison: Comparison) -> list[str]:
    """Return the arguments of a plan that was made in Python."""
    words: list[str] = []
    for one in comparison.candidates:
        rest = one.name.removeprefix(" + ".join(one.methods)).split()
        words += ["-m", ":".join(["+".join(one.methods), *rest])]
    for attack in comparison.attacks:
        words += ["-a", ":".join(attack["label"].split())]
    for measure in comparison.measures:
        words += ["-u", measure["name"]]
    return words
