"""Sentences about a comparison: which setting to use within a limit, why, and what stands out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from querycloak.attacks.finding import Finding
from querycloak.compare.decide import BoundVerdict, eligible, excess, never_proposed, ranked
from querycloak.compare.result import CandidateResult, Comparison
from querycloak.formatting import percent
from querycloak.measures.base import KEEP
from querycloak.report.numbers import listed, span, with_interval

#: The limits that every report answers.
LIMITS: Final = (0.01, 0.05, 0.10, 0.20)
#: A share below this is called next to nothing.
LITTLE: Final = 0.05
#: The unit of an attack's success.
UNITS: Final = {
    "record": "records",
    "user": "people",
    "pair": "pairs of records",
    "concept": "replaced phrases",
}
ATTACKER: Final = {
    "release": "somebody who sees only the release",
    "knowing": "somebody who also knows things about people",
    "any": "any attacker tried here",
}
_NONE: Final = "None of those tried"
_TOGETHER: Final = (
    "each label stands for one person or one group, so it is plain which records belong together; only "
    "somebody who knows things about people can say whose label it is"
)


@dataclass(frozen=True)
class Choice:
    """The candidate that keeps most within a limit, or None, in sentences.

    `more` states what the release still reveals, what its methods do, and what its strongest attack does.
    """

    candidate: CandidateResult | None
    headline: str
    reason: str
    more: str = ""


def unit_of(candidate: CandidateResult, attack: str) -> str:
    """Return what an attack's success is a share of."""
    unit = candidate.findings[attack].unit
    return UNITS.get(unit, unit)


def choose(comparison: Comparison, limit: float, use: str, attacker: str) -> Choice:
    """Return the candidate that keeps most of a use within a limit, with the reason."""
    best_first = ranked(comparison, limit, use, attacker)
    if not best_first:
        return Choice(None, _NONE, _why_none(comparison, limit, use, attacker))
    best = best_first[0]
    measured = sum(one.linked(attacker) is not None for one in comparison.succeeded)
    reason = _reason(best, len(best_first), use, attacker, measured)
    return Choice(best, f"Of those tried, {best.name}", reason, _more(comparison, best, attacker))


def _reason(best: CandidateResult, number: int, use: str, attacker: str, measured: int) -> str:
    share, found = best.kept(use), best.linked(attacker)
    assert share is not None
    assert found is not None
    among = "the only setting" if number == 1 else f"the most of {number} settings"
    text = (
        f"it keeps {percent(share.value)} of the {KEEP[use]}, {among} within the limit ({measured} can be "
        f"measured on this question); the best attack ({found.attack}) links {percent(found.success)} of "
        f"{unit_of(best, found.attack)} (95 % interval {span(found.low, found.high)})."
    )
    if share.value < LITTLE:
        text += " That is next to nothing for this use."
    broken = [label for label, one in best.findings.items() if one.holds is False]
    if broken:
        text += f" Mind that {listed(broken)} broke the bound that is stated for it."
    return text


def _more(comparison: Comparison, best: CandidateResult, attacker: str) -> str:
    """Return what a release like this still reveals, what its methods do, and what the best attack does."""
    found = best.linked(attacker)
    assert found is not None
    does = " ".join(comparison.methods[name] for name in best.methods if name in comparison.methods)
    summary = next((one["summary"] for one in comparison.attacks if one["label"] == found.attack), "")
    but = _reservations(comparison, best, found.attack)
    parts = [f"But: {'; '.join(but)}." if but else "", f"What it does: {does}" if does else ""]
    parts.append(f"What {found.attack} does: {summary}" if summary else "")
    return " ".join(part for part in parts if part).replace("`", "")


def _reservations(comparison: Comparison, best: CandidateResult, attack: str) -> list[str]:
    """Return what a reader of the answer alone would miss."""
    lines = []
    worst = best.linked("any")
    if worst and worst.attack != attack:
        lines.append(
            f"{with_interval(worst.share)} of {unit_of(best, worst.attack)} for somebody who knows more "
            f"({worst.attack})"
        )
    lines += [
        f"{label} tells for {percent(one.success)} of pairs whether one person wrote both (50 % is chance; "
        "this is not counted as linked)"
        for label, one in best.findings.items()
        if one.game == "linkage" and one.success is not None
    ]
    unique = best.kept("shared_texts")
    if unique and unique.value < 1:
        lines.append(
            f"{percent(1 - unique.value)} of its texts were typed by one person only, and may name them"
        )
    log = comparison.log
    if log.sampled:
        lines.append(f"measured on {log.people:,} of {log.of_people:,} people")
    return [*lines, *(f"it does not protect against {line}" for line in best.not_protected[:1])]


def _why_none(comparison: Comparison, limit: float, use: str, attacker: str) -> str:
    """Return why nothing can be proposed, and how near the nearest candidate comes."""
    if fit := eligible(comparison, limit, attacker):
        names = listed([one.name for one in fit])
        return f"within the limit are only {names}, and none of them keeps any {KEEP[use]}."
    shares = [(found, one) for one in comparison.succeeded if (found := one.linked(attacker))]
    if not shares:
        return "no attack of this kind applies to any of them."
    found, nearest = min(shares, key=lambda pair: pair[0].high)
    return (
        f"the lowest is {nearest.name}, where {found.attack} links {percent(found.success)} of "
        f"{unit_of(nearest, found.attack)} and up to {percent(found.high)} by the interval."
    )


def steps(comparison: Comparison, use: str, attacker: str) -> list[tuple[float, Choice]]:
    """Return the answers for all limits: each holds from its limit up to the next."""
    ends = {found.high for one in comparison.succeeded if (found := one.linked(attacker))}
    return [(limit, choose(comparison, limit, use, attacker)) for limit in sorted({0.0, *ends})]


def not_linked(comparison: Comparison, attacker: str) -> list[tuple[str, list[str]]]:
    """Return the candidates without a linked share by the reason; a whole series by its name."""
    found: dict[str, list[CandidateResult]] = {}
    for one in comparison.succeeded:
        if one.linked(attacker) is None:
            together = one.labels in ("one person each", "shared") and attacker == "release"
            found.setdefault(_TOGETHER if together else one.why_not_linked, []).append(one)
    sizes = Counter(one.series for one in comparison.succeeded)
    named = []
    for reason, some in found.items():
        there = Counter(one.series for one in some)
        names = (one.series if there[one.series] == sizes[one.series] else one.name for one in some)
        named.append((reason, list(dict.fromkeys(names))))
    return named


def verdict_text(candidate: CandidateResult, judged: BoundVerdict) -> str:
    """Return the findings behind a verdict."""
    if judged.attack is None or judged.strongest is None:
        return judged.why
    found = candidate.findings[judged.attack]
    text = f"{judged.attack} {with_interval(found.share)}"
    if found.bound is not None:
        text += f"; bound {percent(found.bound)}"
    if judged.strongest != judged.attack:
        strongest = with_interval(candidate.findings[judged.strongest].share)
        text += f". Strongest: {judged.strongest} {strongest}, no bound for it"
    return text


# What stands out


def stands_out(comparison: Comparison) -> list[str]:
    """Return sentences that a reader should not miss; each is computed from the numbers."""
    parts = (_broken, _held, _audits, _withheld, _knowledge, _extremes, _texts)
    return [sentence for part in parts for sentence in part(comparison)]


Bounded = tuple[CandidateResult, str, Finding]


def _bounded(comparison: Comparison) -> dict[str, list[Bounded]]:
    """Return the findings with a bound by series."""
    found: dict[str, list[Bounded]] = {}
    for one in comparison.succeeded:
        for label, finding in one.findings.items():
            if finding.holds is not None:
                found.setdefault(one.series, []).append((one, label, finding))
    return found


def _broken(comparison: Comparison) -> Iterator[str]:
    """Yield the broken bounds by series, each with the attack that exceeds it most."""
    for entries in _bounded(comparison).values():
        broken = [entry for entry in entries if entry[2].holds is False]
        if not broken:
            continue
        one, label, worst = max(broken, key=lambda entry: _times(entry[2]))
        names = list(dict.fromkeys(entry[0].name for entry in broken if entry[0] is not one))
        others = f" The bound is broken for {listed(names)} as well." if names else ""
        factor = f", {_times(worst):.1f} times as many" if worst.bound else ""
        yield (
            f"A stated bound is broken: at most {percent(worst.bound)} of {unit_of(one, label)} should be "
            f"linked in {one.name}, but {label} links {with_interval(worst.share)}{factor}.{others}"
        )


def _times(finding: Finding) -> float:
    return 1 + excess(finding) / max(finding.bound or 0.0, 1e-9)


def _held(comparison: Comparison) -> Iterator[str]:
    """Yield the series in which no stated bound is broken."""
    held = {
        name: some for name, some in _bounded(comparison).items() if all(entry[2].holds for entry in some)
    }
    if held:
        settings = len({entry[0].name for some in held.values() for entry in some})
        yield (
            f"Stated bounds hold for {listed(list(held))}: all {sum(map(len, held.values()))} attacks that a "
            f"bound is stated for, on {settings} settings, stayed within it (up to the interval)."
        )


def _audits(comparison: Comparison) -> Iterator[str]:
    audits = [(one.name, promise.audit) for one in comparison.succeeded for promise in one.promises]
    broken = [name for name, audit in audits if audit == "broken"]
    if broken:
        yield f"The audit found that a guarantee does not hold in {listed(broken)}."
    if untested := [name for name, audit in audits if audit == "not checkable"]:
        yield f"Not every part of a guarantee could be tested in {listed(list(dict.fromkeys(untested)))}."
    if audits and all(audit == "kept" for _, audit in audits):
        yield (
            f"All {len(audits)} guarantees passed their audit. A guarantee states what a method does; that "
            "alone is no protection against an attack."
        )


def _withheld(comparison: Comparison) -> Iterator[str]:
    for one in comparison.succeeded:
        if reason := never_proposed(one):
            yield f"{one.name} is never proposed here: {reason}."


def _knowledge(comparison: Comparison) -> Iterator[str]:
    both = [
        (knowing.success - release.success, one, release, knowing)
        for one in comparison.succeeded
        if (release := one.linked("release")) and (knowing := one.linked("knowing"))
    ]
    if both:
        _, one, release, knowing = max(both, key=lambda entry: entry[0])
        if knowing.low > release.high:
            yield (
                f"What the attacker knows matters most for {one.name}: {percent(release.success)} linked "
                f"from the release alone, {percent(knowing.success)} by {knowing.attack}, which knows more."
            )


def _extremes(comparison: Comparison) -> Iterator[str]:
    known = [(found, one) for one in comparison.succeeded if (found := one.linked("any"))]
    if len(known) > 1:
        (most, worst), (least, best) = (pick(known, key=lambda pair: pair[0].success) for pick in (max, min))
        share = best.kept("terms")
        left = f"; that keeps {percent(share.value)} of the words" if share else ""
        yield (
            f"Most is linked in {worst.name} ({percent(most.success)} by {most.attack}), least in "
            f"{best.name} ({percent(least.success)} by {least.attack}){left}."
        )


def _texts(comparison: Comparison) -> Iterator[str]:
    """Yield how many releases consist mostly of texts that only one person typed."""
    unique = [(1 - found.value, one) for one in comparison.succeeded if (found := one.kept("shared_texts"))]
    many = [pair for pair in unique if pair[0] > 0.5]
    if many:
        value, one = max(many, key=lambda pair: pair[0])
        yield (
            f"In {len(many)} of {len(unique)} releases more than half of the records have a text that only "
            f"one person typed (most in {one.name}: {percent(value)}). Such a text can show by itself who "
            "wrote it."
        )


# For a terminal


def summary(comparison: Comparison, limit: float = 0.10) -> list[str]:
    """Return a comparison in a few lines: all candidates, what to use within a limit, and broken bounds."""
    lines = [*_table(comparison), "", f"If at most {100 * limit:g} % may be linked by {ATTACKER['any']}, use"]
    for use, word in KEEP.items():
        chosen = choose(comparison, limit, use, "any").candidate
        share, found = (chosen.kept(use), chosen.linked("any")) if chosen else (None, None)
        text = f"{chosen.name} (keeps {percent(share.value)}; linked {with_interval(found.share)})" if (
            chosen and share and found
        ) else "none of those tried"  # fmt: skip
        lines.append(f"  to keep {word}: {text}")
    return [*lines, *_broken(comparison)]


def _table(comparison: Comparison) -> list[str]:
    log = comparison.log
    sample = f", a sample of {log.of_people:,}" if log.sampled else ""
    width = max((len(one.name) for one in comparison.candidates), default=0) + 2
    head = f"{'':<{width}}{'linked from the release':>25}{'by who knows more':>19}{'records kept':>14}"
    lines = [f"{log.records:,} records of {log.people:,} people{sample}.", "", head]
    for one in comparison.candidates:
        release, knowing = (
            found.success if found else None for found in map(one.linked, ("release", "knowing"))
        )
        if one.failed:
            lines.append(f"{one.name:<{width}}  not run: {one.failed}")
        elif release is None and knowing is None:
            lines.append(f"{one.name:<{width}}  {one.why_not_linked}")
        else:
            records = one.kept("records")
            kept = percent(records.value if records else None)
            lines.append(f"{one.name:<{width}}{percent(release):>25}{percent(knowing):>19}{kept:>14}")
    return lines


def proposal(found: Mapping[str, Any]) -> list[str]:
    """Return the lines of a proposal, as `Proposal.as_dict` gives it, with its evidence and its limits."""
    chosen = found["proposed"]
    goal = f"at most {100 * found['max_linkage']:g} % linked by {ATTACKER[found['attacker']]}"
    if chosen is None:
        return [
            f"None of the {found['tried']} settings tried has {goal} and is still of use.",
            "Allow more, name a weaker attacker with `--attacker release`, or use a method that releases no",
            "labels or only counts: `frequent-only`, `threshold-dp`, `dp-histogram`.",
        ]
    linked = chosen["linked"]
    again = next(one for one in found["confirmed_on_other_people"] if one["name"] == chosen["name"])
    lines = [
        f"Proposed: {chosen['name']}",
        f"  It keeps {percent(chosen['keeps'])} of {found['keep']}, the most of {found['tried']} settings "
        f"tried with {goal}.",
        f"  The best attack on it, {linked['attack']}, links {percent(linked['success'])} "
        f"({span(linked['low'], linked['high'])}); on other people of the log, with other draws, "
        f"{percent(again['linked']['success'])}.",
        "",
        f"  {found['command']}",
        "",
        "  It does not protect against",
        *(f"  - {line}" for line in chosen["does_not_protect_against"]),
    ]
    others = [
        f"  - {one['name']}: keeps {percent(one['keeps'])}, linked {percent(one['linked']['success'])}"
        for one in found["runners_up"]
    ]
    return [*lines, *(["", "  Next best:", *others] if others else [])]
