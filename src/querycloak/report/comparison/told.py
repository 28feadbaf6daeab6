"""A comparison and a proposal in a few lines, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from querycloak.report.comparison.linked import why_not_linked
from querycloak.report.comparison.result import Comparison
from querycloak.shown import percent

_ATTACKER: Final = {
    "release": "who sees only the release",
    "knowing": "who also knows things about people",
    "any": "whoever does best",
}


def in_short(comparison: Comparison) -> list[str]:
    """Tell each candidate's linked shares and what it releases."""
    log = comparison.data["log"]
    sample = f", a sample of {log['of_people']:,}" if log["sampled"] else ""
    names = [one["name"] for one in comparison.candidates]
    width = max(map(len, names), default=0) + 2
    head = f"{'':<{width}}{'linked from the release':>25}{'by who knows more':>19}{'records kept':>14}"
    lines = [f"{log['records']:,} records of {log['people']:,} people{sample}.", "", head]
    for one in comparison.candidates:
        if one["failed"]:
            lines.append(f"{one['name']:<{width}}  not run: {one['failed']}")
            continue
        shares = [(one["linked"][who] or {}).get("success") for who in ("release", "knowing")]
        rate = one["measures"].get("release_rate", {}).get("value")
        if shares == [None, None]:
            lines.append(f"{one['name']:<{width}}  {why_not_linked(one)}")
            continue
        lines.append(
            f"{one['name']:<{width}}{percent(shares[0]):>25}{percent(shares[1]):>19}{percent(rate):>14}"
        )
    return lines


def proposed(found: Mapping[str, Any]) -> list[str]:
    """Tell a proposal with its evidence, and what it does not protect against."""
    chosen = found["proposed"]
    asked = f"at most {100 * found['max_linkage']:g} % linked by {_ATTACKER[found['attacker']]}"
    if chosen is None:
        return [
            f"Of {found['tried']} settings tried none keeps to {asked} and has anything measurable left.",
            "Allow more, name a weaker attacker with `--attacker release`, or take a method that releases no",
            "labels or only counts: `frequent-only`, `threshold-dp`, `dp-histogram`.",
        ]
    share = chosen["linked"]
    again = next(one for one in found["confirmed_on_other_people"] if one["name"] == chosen["name"])
    lines = [
        f"Proposed: {chosen['name']}",
        f"  It keeps {percent(chosen['keeps'])} of {found['keep']}, the most of {found['tried']} settings "
        f"tried with {asked}.",
        f"  The best attack on it, {share['attack']}, links {percent(share['success'])} "
        f"({percent(share['low'])} to {percent(share['high'])}); on other people of the log, "
        f"with other draws, {percent(again['linked']['success'])}.",
        "",
        f"  {found['command']}",
        "",
        "  It does not protect against",
        *(f"  - {line}" for line in chosen["does_not_protect_against"]),
    ]
    if found["runners_up"]:
        lines += ["", "  Next best:"]
        lines += [
            f"  - {one['name']}: keeps {percent(one['keeps'])}, linked {percent(one['linked']['success'])}"
            for one in found["runners_up"]
        ]
    return lines
