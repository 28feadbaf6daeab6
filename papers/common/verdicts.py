"""Claims of a paper and the rules by which they get a verdict; the index prints each rule's docstring.

There is one claim and one list of verdicts. Pages and index print them in different words: `on_page`,
`in_index` and `in_sentence`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from papers.common.render import MISSING, near

#: Points by which a percentage may differ from the paper's.
POINTS = 5.0
#: Level of the tests of paper 000.
SIGNIFICANT = 0.05
NOT_MEASURED = "Not measured in this run."


class Verdict(Enum):
    """Result of comparing a claim with our figures."""

    HOLDS = "holds"
    PARTLY = "in part"
    FAILS = "does not hold"
    REFUTED = "refuted"
    OPEN = "cannot be told"
    MISSING = "not measured yet"


#: The verdicts of the index, in the order of its columns; a verdict that a reader should not miss is bold.
IN_INDEX = {
    Verdict.HOLDS: "reproduced",
    Verdict.PARTLY: "not reproduced",
    Verdict.FAILS: "not reproduced",
    Verdict.REFUTED: "refuted",
    Verdict.OPEN: "cannot be told here",
    Verdict.MISSING: "cannot be told here",
}
BOLD = ("not reproduced", "refuted")
IN_SENTENCE = {
    Verdict.HOLDS: "Holds",
    Verdict.PARTLY: "Does not hold everywhere",
    Verdict.FAILS: "Does not hold",
    Verdict.MISSING: f"Cannot be said ({MISSING})",
}


class Judgement(NamedTuple):
    """A verdict, the rule behind it, and how many of its checks came out."""

    rule: str
    verdict: Verdict
    right: int = 0
    checks: int = 0

    @property
    def measured(self) -> bool:
        """Whether there was anything to judge."""
        return self.verdict is not Verdict.MISSING

    @property
    def on_page(self) -> str:
        """Verdict in the words of a study's page."""
        if self.verdict is Verdict.PARTLY:
            return f"{self.verdict.value} ({self.right} of {self.checks})"
        return f"**{self.verdict.value}**" if self.verdict is Verdict.FAILS else self.verdict.value

    @property
    def in_index(self) -> str:
        """Verdict in the words of the index."""
        return IN_INDEX[self.verdict]

    @property
    def in_sentence(self) -> str:
        """Verdict as the beginning of a sentence."""
        return IN_SENTENCE[self.verdict]

    @property
    def after_that(self) -> str:
        """Verdict in a sentence that begins with *That*."""
        if self.verdict is Verdict.MISSING:
            return "is not measured yet"
        return f"holds {self.on_page}" if self.verdict is Verdict.PARTLY else self.verdict.value


@dataclass(frozen=True)
class Claim:
    """One claim of a paper: its words, our figure and the judgement.

    The index also prints the paper's figure, the reason for a difference and the command.
    """

    says: str
    here: str
    judged: Judgement
    paper: str = ""
    because: str = ""
    command: str = ""

    @property
    def why(self) -> str:
        """Reason for the verdict; a figure that is missing needs no other."""
        return self.because if self.judged.measured else NOT_MEASURED


def counted(claims: Iterable[Claim]) -> Counter[Verdict]:
    """Count the verdicts of claims."""
    return Counter(claim.judged.verdict for claim in claims)


class Interval(Protocol):
    """A figure with its 95 % interval."""

    @property
    def low(self) -> float:
        """Lower end."""

    @property
    def high(self) -> float:
        """Upper end."""


def _judge(rule: str, checks: Sequence[bool]) -> Judgement:
    """Return the verdict of checks: all came out, some, none, or there are none."""
    right = sum(checks)
    if not checks:
        verdict = Verdict.MISSING
    elif right == len(checks):
        verdict = Verdict.HOLDS
    else:
        verdict = Verdict.PARTLY if right else Verdict.FAILS
    return Judgement(rule, verdict, right, len(checks))


def close(value: float | None, paper: float) -> Judgement:
    """Reproduced if our percentage is within 5 points of the paper's and within a quarter of the larger."""
    return _judge("close", [] if value is None else [abs(value - paper) <= POINTS and near(value, paper)])


def similar(value: float | None, paper: float) -> Judgement:
    """Reproduced if our number is within a quarter of the larger of the two."""
    return _judge("similar", [] if value is None else [near(value, paper)])


def as_fast(micro: float | None, paper: float) -> Judgement:
    """Reproduced if ours takes at most the paper's time for each record."""
    return _judge("as fast", [] if micro is None else [micro <= paper])


def below(values: Iterable[float], limit: float) -> Judgement:
    """Reproduced if every setting that was tried stays below the paper's limit."""
    return _judge("below", [value < limit for value in values])


def every_case(checks: Iterable[bool]) -> Judgement:
    """Reproduced if the claim holds in every case that was tried; the claim says which cases."""
    return _judge("every case", list(checks))


def every_reading(checks: Iterable[bool]) -> Judgement:
    """Where the paper leaves open what it did, we tried several readings.

    Reproduced if the claim holds in all of them, not reproduced if in none, and it cannot be told otherwise.
    """
    found = _judge("every reading", list(checks))
    return found._replace(verdict=Verdict.OPEN) if found.verdict is Verdict.PARTLY else found


def bound(lows: Iterable[float], limits: Iterable[float]) -> Judgement:
    """Refuted if the whole 95 % interval of an attack's success lies above what no attack may exceed.

    Otherwise it cannot be told: attacks that fail prove no bound.
    """
    trials = list(zip(lows, limits, strict=True))
    if not trials:
        return Judgement("bound", Verdict.MISSING)
    broken = any(low > limit for low, limit in trials)
    return Judgement("bound", Verdict.REFUTED if broken else Verdict.OPEN)


def control(p_values: Iterable[float]) -> Judgement:
    """Refuted if the test (at the 5 % level) also accepts success rates that are too high at every k.

    Reproduced if it rejects them.
    """
    accepted = [p_value > SIGNIFICANT for p_value in p_values]
    if not accepted:
        return Judgement("control", Verdict.MISSING)
    return Judgement("control", Verdict.REFUTED if all(accepted) else Verdict.HOLDS)


def accepts(p_value: float | None) -> Judgement:
    """Reproduced if the test accepts at the 5 % level, as in the paper."""
    return _judge("accepts", [] if p_value is None else [p_value > SIGNIFICANT])


def difference(found: Interval | None) -> Judgement:
    """Reproduced if the 95 % interval of the difference is above 0, not reproduced if below.

    It cannot be told if 0 lies within.
    """
    if found is not None and found.low <= 0 <= found.high:
        return Judgement("difference", Verdict.OPEN)
    return _judge("difference", [] if found is None else [found.low > 0])


def among_first(place: int | None, first: int) -> Judgement:
    """Reproduced if it is among so many first ones here too."""
    return _judge("among first", [] if place is None else [place <= first])


def among_first_if_fed(place: int | None, first: int) -> Judgement:
    """As *among first*; but a miss cannot be told, since our log lacks most of what it compares."""
    found = among_first(place, first)._replace(rule="among first if fed")
    return found._replace(verdict=Verdict.OPEN) if found.verdict is Verdict.FAILS else found


def of_their_data() -> Judgement:
    """The claim describes the paper's own data, which we do not use: no verdict is possible."""
    return Judgement("of their data", Verdict.OPEN)


def checked(says: str, here: str, checks: Iterable[bool]) -> Claim:
    """Return a claim that must hold in every case."""
    return Claim(says, here, every_case(checks))


def stated(says: str, paper: str, here: str, judged: Judgement, because: str, *, study: str) -> Claim:
    """Return a claim of the index: the paper's figure, ours, why they differ, and the study's command."""
    return Claim(says, here, judged, paper, because, f"python -m papers {study}")


#: All rules by the name that the index prints.
RULES: dict[str, Callable[..., Judgement]] = {
    rule.__name__.replace("_", " "): rule
    for rule in (
        close, similar, as_fast, below, every_case, every_reading, bound, control, accepts, difference,
        among_first, among_first_if_fed, of_their_data,
    )
}  # fmt: skip
