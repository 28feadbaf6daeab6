"""The page for a searcher: what a stranger could conclude from one search history, and what helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from querycloak.formatting import percent, plural
from querycloak.report import render
from querycloak.report.numbers import printable

Counts = Mapping[str, Any]


def page(found: Counts) -> str:
    """Return the page as Markdown, from the counts of `engines.own`; queries only if they are among them."""
    time, topics, habits = found["time"], found["topics"], found["habits"]
    shown = found.get("shown") or {}
    return render.markdown(
        "own_history.md.j2",
        facts=_facts(found),
        conclusions=conclusions(found),
        searches=found["searches"],
        topics=topics,
        unusual=[
            (printable(one["topic"]), f"{one['searches']:,}", f"{one['made_up_people']:,}")
            for one in topics["unusual"]
        ],
        time=time,
        hours={f"{hour:02d}": count for hour, count in enumerate(time["by_hour"])} if time else {},
        personal=[
            (why, f"{count:,}", percent(count / found["searches"]))
            for why, count in found["personal"].items()
        ],
        habits=habits,
        repeated=_repeated(habits),
        singled_out=found["singled_out"],
        left=[(known, f"{left:,.1f}") for known, left in found["singled_out"]["left_if_known"].items()],
        shown=[
            (f"{part.capitalize()}: {name}", [printable(query) for query in queries])
            for part, listed in shown.items()
            for name, queries in listed.items()
            if queries
        ],
    )


def _facts(found: Counts) -> list[tuple[str, str]]:
    time, skipped = found["time"], found["skipped"]
    left_out = ", ".join(f"{count:,} ({printable(reason)})" for reason, count in skipped.items())
    return [
        ("Searches", f"{found['searches']:,}, of them {found['distinct']:,} different"),
        ("Span", f"{time['first_day']} to {time['last_day']}" if time else "the file has no times"),
        ("Left out", left_out or "nothing"),
    ]


def conclusions(found: Counts) -> list[str]:
    """Return what the counts suggest to somebody who does not know the person."""
    topics, time, personal, habits = (found[name] for name in ("topics", "time", "personal", "habits"))
    most = [f"{name} ({count:,})" for name, count in list(topics["general"].items())[:3]]
    lines = [f"You care about {', '.join(most)}."] if most else []
    lines += [f"{_searches(count)} may tell about {name}." for name, count in topics["sensitive"].items()]
    if time and time["with_time"] >= 50 and time["quiet_share"] <= 0.05:
        lines.append(
            f"You seem to sleep, or to be away, between {time['quiet_from']:02d} and {time['quiet_to']:02d} "
            f"o'clock UTC: {percent(time['quiet_share'])} of your searches fall there."
        )
    if time and time["with_time"] >= 50:
        lines.append(
            f"{percent(time['office_hours_share'], 0)} of your searches fall on weekdays from 9 to 17 UTC."
        )
    lines += [f"{why.capitalize()} stands in {_searches(count)}." for why, count in personal.items() if count]
    if habits["queries"]:
        lines.append(
            f"{_searches(habits['searches'])} are only {plural(habits['queries'], 'query', 'queries')} again "
            "and again: habits by which you can be recognised."
        )
    if habits["names"]:
        lines.append(f"{habits['names']:,} of these hold a person's name: yours, or that of somebody close.")
    return lines or ["Little: there is not enough here to conclude anything."]


def _searches(count: int) -> str:
    return plural(count, "search", "searches")


def _repeated(habits: Counts) -> list[tuple[str, str]]:
    facts = [
        ("Queries asked three times or more", f"{habits['queries']:,}"),
        ("Searches that they make up", f"{habits['searches']:,}"),
        ("The most frequent one", _searches(habits["most"])),
        ("With a person's name", f"{habits['names']:,}"),
    ]
    if bits := habits["bits"]:
        facts += [
            ("Bits of the middle one", f"{bits['median']:g}"),
            ("Bits of the rarest", f"{bits['most']:g}"),
            ("With 33 bits or more", f"{bits['above_33']:,}"),
        ]
    return facts
