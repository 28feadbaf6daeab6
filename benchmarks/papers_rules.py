"""The rules by which a paper's claim gets its verdict; each rule's docstring is printed on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from benchmarks.paper_002_text import near
from benchmarks.paper_004_results import Mean

#: How many points off a percentage of a paper still counts as met; the page of paper 003 has the same limit.
POINTS = 5.0
#: The level at which paper 000 tests.
SIGNIFICANT = 0.05
NOT_MEASURED = "Not measured in this run."
#: Gives the file with the stored lines of a study, by its name.
Stored = Callable[[str], Path]


class Verdict(StrEnum):
    """What may be said of a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    REFUTED = "refuted"
    CANNOT_BE_TOLD = "cannot be told here"


class Judged(NamedTuple):
    """A verdict, the rule behind it, and whether there was anything to judge."""

    rule: str
    verdict: Verdict
    measured: bool = True


@dataclass(frozen=True)
class Claim:
    """One claim of a paper with its figure, ours, the verdict, why they differ, and how to see it again."""

    says: str
    paper: str
    here: str
    judged: Judged
    because: str
    command: str

    @property
    def why(self) -> str:
        """Give the reason; a figure that is missing needs no other."""
        return self.because if self.judged.measured else NOT_MEASURED


@dataclass(frozen=True)
class Paper:
    """One paper: what it does and what we saw in a few sentences, its full pages by label, its claims."""

    number: str
    title: str
    pages: dict[str, str]
    words: str
    claims: list[Claim]


def _either(rule: str, checks: Sequence[bool]) -> Judged:
    """Give yes if all checks came out; without any there is nothing to say."""
    if not checks:
        return Judged(rule, Verdict.CANNOT_BE_TOLD, measured=False)
    return Judged(rule, Verdict.REPRODUCED if all(checks) else Verdict.NOT_REPRODUCED)


def close(value: float | None, paper: float) -> Judged:
    """Reproduced if our percentage is within 5 points of the paper's and within a quarter of the larger."""
    return _either("close", [] if value is None else [abs(value - paper) <= POINTS and near(value, paper)])


def similar(value: float | None, paper: float) -> Judged:
    """Reproduced if our number is within a quarter of the larger of the two."""
    return _either("similar", [] if value is None else [near(value, paper)])


def as_fast(micro: float | None, paper: float) -> Judged:
    """Reproduced if ours takes at most the paper's time for each record."""
    return _either("as fast", [] if micro is None else [micro <= paper])


def below(values: Iterable[float], limit: float) -> Judged:
    """Reproduced if every setting that was tried stays below the paper's limit."""
    return _either("below", [value < limit for value in values])


def every_case(checks: Iterable[bool]) -> Judged:
    """Reproduced if the claim holds in every case that was tried; the claim says which cases."""
    return _either("every case", list(checks))


def every_reading(checks: Iterable[bool]) -> Judged:
    """Where the paper leaves open what it did, we tried several readings.

    Reproduced if the claim holds in all of them, not reproduced if in none, and it cannot be told otherwise.
    """
    found = list(checks)
    if any(found) and not all(found):
        return Judged("every reading", Verdict.CANNOT_BE_TOLD)
    return _either("every reading", found)


def bound(lows: Iterable[float], limits: Iterable[float]) -> Judged:
    """Refuted if the whole 95 % interval of an attack's success lies above what no attack may exceed.

    Otherwise it cannot be told: attacks that fail prove no bound.
    """
    trials = list(zip(lows, limits, strict=True))
    broken = any(low > limit for low, limit in trials)
    return Judged("bound", Verdict.REFUTED if broken else Verdict.CANNOT_BE_TOLD, measured=bool(trials))


def control(p_values: Iterable[float]) -> Judged:
    """Refuted if the test (at the 5 % level) also accepts success rates that are too high at every k.

    Reproduced if it rejects them.
    """
    accepted = [p_value > SIGNIFICANT for p_value in p_values]
    if not accepted:
        return Judged("control", Verdict.CANNOT_BE_TOLD, measured=False)
    return Judged("control", Verdict.REFUTED if all(accepted) else Verdict.REPRODUCED)


def accepts(p_value: float | None) -> Judged:
    """Reproduced if the test accepts at the 5 % level, as in the paper."""
    return _either("accepts", [] if p_value is None else [p_value > SIGNIFICANT])


def difference(found: Mean | None) -> Judged:
    """Reproduced if the 95 % interval of the difference is above 0, not reproduced if below.

    It cannot be told if 0 lies within.
    """
    if found is None:
        return Judged("difference", Verdict.CANNOT_BE_TOLD, measured=False)
    if found.low <= 0 <= found.high:
        return Judged("difference", Verdict.CANNOT_BE_TOLD)
    return _either("difference", [found.low > 0])


def among_first(place: int | None, first: int) -> Judged:
    """Reproduced if it is among so many first ones here too."""
    return _either("among first", [] if place is None else [place <= first])


def among_first_if_fed(place: int | None, first: int) -> Judged:
    """As *among first*; but a miss cannot be told, since our log lacks most of what it compares."""
    found = among_first(place, first)
    missed = found.verdict is Verdict.NOT_REPRODUCED
    verdict = Verdict.CANNOT_BE_TOLD if missed else found.verdict
    return Judged("among first if fed", verdict, found.measured)


def of_their_data() -> Judged:
    """The claim describes the paper's own data, which we do not use: no verdict is possible."""
    return Judged("of their data", Verdict.CANNOT_BE_TOLD)


#: All rules by the name that the page gives them.
RULES: dict[str, Callable[..., Judged]] = {
    rule.__name__.replace("_", " "): rule
    for rule in (
        close, similar, as_fast, below, every_case, every_reading, bound, control, accepts, difference,
        among_first, among_first_if_fed, of_their_data,
    )
}  # fmt: skip
