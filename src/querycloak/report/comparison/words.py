"""A comparison in plain words: which setting to use within a limit, why, and what stands out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from querycloak.report.comparison.axes import KEEP, kept
from querycloak.report.comparison.figures import listed, percent, span, unit_of, with_interval
from querycloak.report.comparison.linked import why_not_linked
from querycloak.report.comparison.result import Comparison

#: The limits that are answered in every report.
LIMITS: Final = (0.01, 0.05, 0.10, 0.20)
#: What a method says of a setting that is there for comparison only.
_NOT_TO_PUBLISH: Final = "not to be published"
#: Below this, what is kept is not worth a release.
LITTLE: Final = 0.05
ATTACKER: Final = {
    "release": "somebody who sees only the release",
    "knowing": "somebody who also knows things about people",
    "any": "any attacker tried here",
}
USE: Final = {
    "topics": "topics",
    "terms": "words",
    "sessions": "sessions",
    "clicks": "clicks",
}
_TOGETHER: Final = (
    "each label stands for one person or one group, so it is plain which records belong together; only "
    "somebody who knows things about people can say whose label it is"
)


@dataclass(frozen=True)
class Choice:
    """The answer to one question: the candidate that keeps most within a limit, or that there is none.

    `more` says what it still gives away, what its methods do, and what the attack does that links most of it.
    """

    limit: float
    use: str
    attacker: str
    candidate: dict[str, Any] | None
    headline: str
    reason: str
    more: str = ""

    @property
    def sentence(self) -> str:
        """Give the answer as one text."""
        return f"{self.headline}: {self.reason}"


def eligible(comparison: Comparison, limit: float, attacker: str) -> list[dict[str, Any]]:
    """Give the candidates of which at most so much is linked, even at the upper end of the interval."""
    return [
        one
        for one in comparison.worked
        if (found := one["linked"][attacker]) is not None
        and found["high"] <= limit
        and never_proposed(one) is None
    ]


def never_proposed(candidate: Mapping[str, Any]) -> str | None:
    """Say why a candidate must not be proposed whatever its numbers are; None if it may be."""
    if any(promise["audit"] == "broken" for promise in candidate["promises"]):
        return "its audit found a promise broken"
    leaves = [line for promise in candidate["promises"] for line in promise["does_not_protect_against"]]
    if any(_NOT_TO_PUBLISH in line for line in leaves):
        return "by its own words it is there for comparison, not to be published"
    return None


def choose(comparison: Comparison, limit: float, use: str, attacker: str) -> Choice:
    """Choose the candidate that keeps most of what is wanted within a limit; of equals, the least linked."""
    fit = eligible(comparison, limit, attacker)
    valued = [(found[0], one) for one in fit if (found := kept(one, KEEP[use])) and found[0] > 0]
    if not valued:
        headline, reason = _none(comparison, fit, use, attacker)
        return Choice(limit, use, attacker, None, headline, reason)
    ranked = sorted(valued, key=lambda pair: (-pair[0], pair[1]["linked"][attacker]["success"]))
    best = ranked[0][1]
    more = _more(comparison, best, attacker)
    measured = sum(one["linked"][attacker] is not None for one in comparison.worked)
    reason = _reason(ranked, use, attacker, measured)
    return Choice(limit, use, attacker, best, f"Of those tried, {best['name']}", reason, more)


def _reason(ranked: Sequence[tuple[float, dict[str, Any]]], use: str, attacker: str, measured: int) -> str:
    value, best = ranked[0]
    found = best["linked"][attacker]
    among = (
        "the only setting within the limit"
        if len(ranked) == 1
        else f"the most of {len(ranked)} settings within the limit"
    ) + f" ({measured} can be measured on this question)"
    text = (
        f"it keeps {percent(value)} of the {USE[use]}, {among}; the best attack ({found['attack']}) links "
        f"{percent(found['success'])} of {unit_of(best, found['attack'])} "
        f"(95 % interval {span(found['low'], found['high'])})."
    )
    if value < LITTLE:
        text += " That is next to nothing for this use."
    broken = [label for label, one in best["findings"].items() if one.get("holds") is False]
    if broken:
        text += f" Mind that {listed(broken)} broke the bound that is stated for it."
    return text


def _more(comparison: Comparison, best: Mapping[str, Any], attacker: str) -> str:
    """Say what a release like this still gives away, what its methods do, and what the best attack does."""
    attack = best["linked"][attacker]["attack"]
    about = comparison.data.get("methods", {})
    does = " ".join(about[method] for method in best["methods"] if method in about)
    summary = next((one["summary"] for one in comparison.data["attacks"] if one["label"] == attack), "")
    parts = [f"But: {'; '.join(but)}." if (but := _but(comparison, best, attacker)) else ""]
    parts += [f"What it does: {does}" if does else "", f"What {attack} does: {summary}" if summary else ""]
    return " ".join(part for part in parts if part).replace("`", "")


def _but(comparison: Comparison, best: Mapping[str, Any], attacker: str) -> list[str]:
    """Say what a reader of the answer alone would miss."""
    said = []
    worst = best["linked"]["any"]
    if worst and worst["attack"] != best["linked"][attacker]["attack"]:
        said.append(
            f"{percent(worst['success'])} ({span(worst['low'], worst['high'])}) of "
            f"{unit_of(best, worst['attack'])} for somebody who knows more ({worst['attack']})"
        )
    for label, one in best["findings"].items():
        if one["game"] == "linkage" and one["success"] is not None:
            said.append(
                f"{label} tells for {percent(one['success'])} of pairs whether one person wrote "
                f"both (50 % is "
                "chance; this is not counted as linked)"
            )
    rare = best["measures"].get("unique_texts", {}).get("value")
    if rare:
        said.append(f"{percent(rare)} of its texts were typed by one person only, and may name her")
    log = comparison.data["log"]
    if log["sampled"]:
        said.append(f"measured on {log['people']:,} of {log['of_people']:,} people, see “What size does”")
    leaves = [line for promise in best["promises"] for line in promise["does_not_protect_against"]]
    return [*said, *(f"it does not protect against {line}" for line in leaves[:1])]


def _none(
    comparison: Comparison, fit: Sequence[Mapping[str, Any]], use: str, attacker: str
) -> tuple[str, str]:
    """Say that nothing can be proposed, and how near the nearest comes."""
    if fit:
        names = listed([one["name"] for one in fit])
        return (
            "None of those tried",
            f"within the limit are only {names}, and none of them keeps any {USE[use]}.",
        )
    shares = [
        (one["linked"][attacker], one) for one in comparison.worked if one["linked"][attacker] is not None
    ]
    if not shares:
        return "None of those tried", "no attack of this kind applies to any of them."
    found, nearest = min(shares, key=lambda pair: pair[0]["high"])
    return (
        "None of those tried",
        f"the lowest is {nearest['name']}, where {found['attack']} links {percent(found['success'])} of "
        f"{unit_of(nearest, found['attack'])} and up to {percent(found['high'])} by the interval.",
    )


def steps(comparison: Comparison, use: str, attacker: str) -> list[tuple[float, Choice]]:
    """Give the answers for all limits: each holds from its limit up to the next."""
    ends = {
        one["linked"][attacker]["high"] for one in comparison.worked if one["linked"][attacker] is not None
    }
    return [(limit, choose(comparison, limit, use, attacker)) for limit in sorted({0.0, *ends})]


def apart(comparison: Comparison, attacker: str) -> list[tuple[str, list[str]]]:
    """Give the candidates without a linked share by the reason why, so that none goes missing.

    Where all settings of a line share the reason, the line is named.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for one in comparison.worked:
        if one["linked"][attacker] is None:
            labels = one["labels"] in ("one person each", "shared") and attacker == "release"
            found.setdefault(_TOGETHER if labels else why_not_linked(one), []).append(one)
    return [(reason, _by_line(comparison, some)) for reason, some in found.items()]


def _by_line(comparison: Comparison, some: Sequence[Mapping[str, Any]]) -> list[str]:
    sizes = Counter(one["line"] for one in comparison.worked)
    there = Counter(one["line"] for one in some)
    names = (one["line"] if there[one["line"]] == sizes[one["line"]] else one["name"] for one in some)
    return list(dict.fromkeys(names))


# What stands out


def stands_out(comparison: Comparison) -> list[str]:
    """Say in a few sentences what a reader should not miss; each is computed from the numbers."""
    told = (_broken, _held, _audits, _withheld, _knowledge, _ends, _texts)
    return [sentence for part in told for sentence in part(comparison)]


def _bounded(comparison: Comparison) -> Iterator[tuple[dict[str, Any], str, dict[str, Any]]]:
    for one in comparison.worked:
        for label, found in one["findings"].items():
            if found.get("holds") is not None:
                yield one, label, found


def _broken(comparison: Comparison) -> Iterator[str]:
    """Tell broken bounds by line, each with the attack that exceeds it most."""
    lines: dict[str, list[tuple[dict[str, Any], str, dict[str, Any]]]] = {}
    for each in _bounded(comparison):
        if each[2]["holds"] is False:
            lines.setdefault(each[0]["line"], []).append(each)
    for found in lines.values():
        one, label, worst = max(found, key=lambda each: each[2]["success"] / max(each[2]["bound"], 1e-9))
        names = list(dict.fromkeys(each[0]["name"] for each in found if each[0] is not one))
        others = f" The bound is broken for {listed(names)} as well." if names else ""
        times = worst["success"] / worst["bound"] if worst["bound"] else None
        factor = f", {times:.1f} times as many" if times else ""
        yield (
            f"A stated bound is broken: at most {percent(worst['bound'])} of {unit_of(one, label)} should be "
            "linked "
            f"in {one['name']}, but {label} links {with_interval(worst)}{factor}.{others}"
        )


def _held(comparison: Comparison) -> Iterator[str]:
    """Tell the lines on which no stated bound is broken."""
    lines: dict[str, list[tuple[dict[str, Any], str, dict[str, Any]]]] = {}
    for each in _bounded(comparison):
        lines.setdefault(each[0]["line"], []).append(each)
    held = {line: found for line, found in lines.items() if all(each[2]["holds"] for each in found)}
    if held:
        settings = len({each[0]["name"] for found in held.values() for each in found})
        count = sum(map(len, held.values()))
        yield (
            f"Stated bounds hold for {listed(list(held))}: all {count} attacks that a bound is stated for, "
            "on "
            f"{settings} settings, stayed within it (up to the interval)."
        )


def _audits(comparison: Comparison) -> Iterator[str]:
    audits = [(one["name"], promise["audit"]) for one in comparison.worked for promise in one["promises"]]
    broken = [name for name, audit in audits if audit == "broken"]
    if broken:
        yield f"The audit found a promise broken in {listed(broken)}."
    if audits and all(audit == "kept" for _, audit in audits):
        yield (
            f"All {len(audits)} promises passed their audit. A promise that is kept says what a method does; "
            "it is not yet protection against an attack."
        )


def _withheld(comparison: Comparison) -> Iterator[str]:
    for one in comparison.worked:
        if reason := never_proposed(one):
            yield f"{one['name']} is never proposed here: {reason}."


def _knowledge(comparison: Comparison) -> Iterator[str]:
    both = [one for one in comparison.worked if one["linked"]["release"] and one["linked"]["knowing"]]
    if both:
        one = max(
            both, key=lambda each: each["linked"]["knowing"]["success"] - each["linked"]["release"]["success"]
        )
        release, knowing = one["linked"]["release"], one["linked"]["knowing"]
        if knowing["low"] > release["high"]:
            yield (
                f"What the attacker knows matters most for {one['name']}: {percent(release['success'])} "
                "linked from "
                f"the release alone, {percent(knowing['success'])} by {knowing['attack']}, which knows more."
            )


def _ends(comparison: Comparison) -> Iterator[str]:
    known = [(one["linked"]["any"], one) for one in comparison.worked if one["linked"]["any"]]
    if len(known) > 1:
        (most, worst), (least, best) = (
            pick(known, key=lambda pair: pair[0]["success"]) for pick in (max, min)
        )
        value = kept(best, "terms")
        left = f"; that keeps {percent(value[0])} of the words" if value else ""
        yield (
            f"Most is linked in {worst['name']} ({percent(most['success'])} by {most['attack']}), least in "
            f"{best['name']} ({percent(least['success'])} by {least['attack']}){left}."
        )


def _texts(comparison: Comparison) -> Iterator[str]:
    """Say how many releases are full of texts that only one person typed: no label protects those."""
    unique = [(1 - found[0], one) for one in comparison.worked if (found := kept(one, "shared_texts"))]
    many = [pair for pair in unique if pair[0] > 0.5]
    if many:
        value, one = max(many, key=lambda pair: pair[0])
        yield (
            f"In {len(many)} of {len(unique)} releases more than half of the records have a text that only "
            "one "
            f"person typed (most in {one['name']}: {percent(value)}). Such a text can tell by itself whose "
            "it is."
        )


def in_short(comparison: Comparison, limit: float = 0.10) -> list[str]:
    """Tell a comparison in a few lines: what to use within a limit, and which bounds are broken."""
    lines = [f"If at most {100 * limit:g} % may be linked by {ATTACKER['any']}, use"]
    for use in KEEP:
        chosen = choose(comparison, limit, use, "any").candidate
        share = None if chosen is None else kept(chosen, KEEP[use])
        if chosen is None or share is None:
            lines.append(f"  to keep {USE[use]}: none of those tried")
            continue
        found = with_interval(chosen["linked"]["any"])
        lines.append(f"  to keep {USE[use]}: {chosen['name']} (keeps {percent(share[0])}; linked {found})")
    return [*lines, *_broken(comparison)]
