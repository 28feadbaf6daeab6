"""A comparison as tables: every number for programs (CSV), and the ones that matter for paper (Markdown)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any, Final

from querycloak.report import as_markdown
from querycloak.report.comparison.axes import AXES, KEEP, USES, kept, why_not_kept
from querycloak.report.comparison.figures import kept_text, listed, megabytes, percent, seconds, with_interval
from querycloak.report.comparison.linked import ATTACKERS, why_not_linked
from querycloak.report.comparison.promises import GAMES, audit_of, table
from querycloak.report.comparison.result import Comparison
from querycloak.report.comparison.words import ATTACKER, LIMITS, USE, apart, choose, stands_out
from querycloak.report.document import Bullets, Document, Section, Table, Words

COLUMNS: Final = ("candidate", "line", "kind", "name", "value", "low", "high", "bound", "holds", "note")
Row = dict[str, Any]


def csv_text(comparison: Comparison) -> str:
    """Write every number, one to a line.

    `kind` says what it is: `linked` and `kept` (what tables and pictures show), `attack`, `people` (how an
    attack falls on people), `measure` (as it was taken), `cost`, `half` (the same on half of the people).
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for one in comparison.candidates:
        about = {"candidate": one["name"], "line": one["line"]}
        rows = [{"kind": "failed", "note": one["failed"]}] if one["failed"] else _rows(one)
        writer.writerows(about | row for row in rows)
    lines = {one["name"]: one["line"] for one in comparison.candidates}
    for one in comparison.data["half_the_people"]:
        about = {"candidate": one["name"], "line": lines.get(one["name"], "")}
        if not one["failed"]:
            halves = (row | {"kind": "half", "name": f"{row['kind']}.{row['name']}"} for row in _shown(one))
            writer.writerows(about | row for row in halves)
    for one in comparison.data["not_run"]:
        writer.writerow({"candidate": one["method"], "kind": "not run", "note": one["why"]})
    return out.getvalue()


def _rows(one: Mapping[str, Any]) -> Iterator[Row]:
    yield from _shown(one)
    for label, found in one["findings"].items():
        note = found["not_applicable"] or f"share of {found['n']} {found['unit']}s"
        yield {"kind": "attack", "name": label, "value": found["success"], "note": note} | {
            name: found.get(name) for name in ("low", "high", "bound", "holds")
        }
        for name in ("median_user", "worst_decile_user"):
            if found.get(name) is not None:
                yield {"kind": "people", "name": f"{label}.{name}", "value": found[name]}
    for name, found in one["measures"].items():
        yield {
            "kind": "measure",
            "name": name,
            "value": found["value"],
            "note": found.get("not_applicable", ""),
        } | {end: found.get(end) for end in ("low", "high")}
    yield from ({"kind": "cost", "name": name, "value": value} for name, value in one["cost"].items())


def _shown(one: Mapping[str, Any]) -> Iterator[Row]:
    """Give what pictures and tables of candidates show."""
    for attacker in ATTACKERS:
        found = one["linked"][attacker]
        if found is None:
            yield {"kind": "linked", "name": attacker, "note": why_not_linked(one)}
            continue
        bound = one["findings"][found["attack"]]
        yield {
            "kind": "linked",
            "name": attacker,
            "value": found["success"],
            "low": found["low"],
            "high": found["high"],
            "bound": bound["bound"],
            "holds": bound["holds"],
            "note": found["attack"],
        }
    for axis in AXES.values():
        share = kept(one, axis)
        if share is None:
            yield {"kind": "kept", "name": axis.name, "note": why_not_kept(one, axis)}
        else:
            yield {
                "kind": "kept",
                "name": axis.name,
                **dict(zip(("value", "low", "high"), share, strict=True)),
            }


def markdown(comparison: Comparison) -> str:
    """Write the report as Markdown."""
    sections = [
        Section("Which setting should I use?", [*_answers(comparison)]),
        Section("What stands out", [Bullets(stands_out(comparison))]),
        Section("Candidates", [_candidates(comparison)]),
        Section("Promises against attacks", [Words(_GAMES), _promises(comparison)]),
        Section("Not run", [Bullets(not_run(comparison) or ["Everything that was asked for ran."])]),
    ]
    return as_markdown.render(
        Document("Comparison of protections", [Words(what_this_is(comparison))], sections)
    )


_GAMES: Final = "Each game is a question, and one of three legal tests in other words. " + " ".join(
    f"{game.test}: {game.question}" for game in GAMES
)


def what_this_is(comparison: Comparison) -> str:
    """Say in one paragraph what was compared on what."""
    data, log = comparison.data, comparison.data["log"]
    methods = {method for one in comparison.candidates for method in one["methods"]}
    text = (
        f"{len(comparison.candidates)} ways to protect one search log, made of {len(methods)} methods. Each "
        "was run on "
        f"the log, attacked in {len(data['attacks'])} ways, and measured for what it keeps: so one sees what "
        "each "
        "way leaves to work with, and how much of it an attacker still puts to the right person. The log "
        "has "
        f"{log['of_records']:,} records of {log['of_people']:,} people."
    )
    if log["sampled"]:
        text += (
            f" Compared was a sample: {log['people']:,} people drawn at random, with all of their "
            f"{log['records']:,} records."
        )
    if skipped := sum(log["skipped"].values()):
        text += f" {skipped:,} lines of the log could not be read and were left out."
    return text


def not_run(comparison: Comparison) -> list[str]:
    """Say what has no numbers, and why."""
    failed = [f"{one['name']}: {one['failed']}" for one in comparison.candidates if one["failed"]]
    return failed + [f"{one['method']}: {one['why']}" for one in comparison.data["not_run"]]


def _answers(comparison: Comparison) -> Iterator[Table | Words]:
    for attacker in ("release", "knowing"):
        rows = []
        for limit in LIMITS:
            found = [choose(comparison, limit, use, attacker) for use in KEEP]
            rows.append([f"{100 * limit:g} %", *(answer(one.candidate, one.use, attacker) for one in found)])
        yield Table(
            f"If at most so much may be linked by {ATTACKER[attacker]}, use …",
            ["at most", *(f"to keep {USE[use]}" for use in KEEP)],
            rows,
        )
        yield from (
            Words(f"Apart: {listed(names)}: {reason}.") for reason, names in apart(comparison, attacker)
        )


def answer(candidate: Mapping[str, Any] | None, use: str, attacker: str) -> str:
    """Write the answer to one question for a cell."""
    if candidate is None:
        return "none of those tried"
    found, share = candidate["linked"][attacker], kept(candidate, KEEP[use])
    assert share is not None
    return f"{candidate['name']} (keeps {percent(share[0])}; linked {with_interval(found)})"


def _candidates(comparison: Comparison) -> Table:
    head = [
        "candidate",
        "linked, sees the release only",
        "linked, knows more",
        *(axis.title for axis in USES),
        "time",
        "memory",
    ]
    rows = [
        [
            one["name"],
            with_interval(one["linked"]["release"]),
            with_interval(one["linked"]["knowing"]),
            *(kept_text(kept(one, axis)) for axis in USES),
            seconds(one["cost"]["protect_seconds"]),
            megabytes(one["cost"]["peak_mb"]),
        ]
        for one in comparison.worked
    ]
    caption = "Shares with 95 % intervals in brackets; time to protect, and the most memory of the whole run"
    return Table(caption, head, rows)


def _promises(comparison: Comparison) -> Table:
    rows = [
        [one["name"], audit_of(one), *(f"{judged.verdict}: {judged.text}" for judged in row)]
        for one, row in table(comparison)
    ]
    return Table(
        "Measured success against stated bounds", ["candidate", "audit", *(game.test for game in GAMES)], rows
    )
