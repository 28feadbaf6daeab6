"""The page for a searcher: what a stranger could conclude from one history, and what helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from querycloak.report.document import (
    Bars,
    Block,
    Bullets,
    Document,
    Facts,
    Note,
    Section,
    Table,
    Words,
    plural,
    shown,
)
from querycloak.shown import percent

Counts = Mapping[str, Any]

ADVICE = (
    "Leave names, numbers and addresses out of searches: no tool can hide what the words themselves say.",
    "`querycloak obfuscate --live` sends fakes beside your searches, so that topics and hours say less.",
    "`querycloak crowd peer` lets friends send your searches and you theirs: no account holds them all.",
    "Ask for deletion where the history is kept, and switch off that more is kept.",
    "Keep this page and the exported file to yourself: they tell what you just read.",
)


def page(found: Mapping[str, Any]) -> Document:
    """Put the page together from what `engines.own` counted, with queries only if it gave them."""
    sections = [
        Section("What a stranger could conclude", [Bullets(conclusions(found))]),
        _topics(found["topics"], found["searches"]),
        _time(found["time"]),
        _personal(found["personal"], found["searches"]),
        _habits(found["habits"]),
        _singled_out(found["singled_out"]),
        *_shown(found.get("shown")),
        Section("What helps", [Bullets(ADVICE)]),
    ]
    return Document("What your search history says about you", _summary(found), sections)


def _summary(found: Counts) -> list[Block]:
    time = found["time"]
    span = f"{time['first_day']} to {time['last_day']}" if time else "the file has no times"
    facts = [
        ("Searches", f"{found['searches']:,}, of them {found['distinct']:,} different"),
        ("Span", span),
        ("Left out", _left_out(found["skipped"])),
    ]
    text = "All of this was worked out on this machine; nothing was sent anywhere."
    return [Words(text), Facts(facts)]


def _left_out(skipped: Counts) -> str:
    return ", ".join(f"{count:,} ({shown(reason)})" for reason, count in skipped.items()) or "nothing"


def conclusions(found: Counts) -> list[str]:
    """List what the counts suggest to somebody who does not know the person."""
    topics, time, personal, habits = (found[name] for name in ("topics", "time", "personal", "habits"))
    told = [f"{name} ({count:,})" for name, count in list(topics["general"].items())[:3]]
    lines = [f"You care about {', '.join(told)}."] if told else []
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
            f"{_searches(habits['searches'])} are only {_queries(habits['queries'])} again and again: habits "
            "by which you can be recognised."
        )
    if habits["names"]:
        lines.append(f"{habits['names']:,} of these hold a person's name: yours, or that of somebody close.")
    return lines or ["Little: there is not enough here to conclude anything."]


def _searches(count: int) -> str:
    return "1 search" if count == 1 else f"{count:,} searches"


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count:,} queries"


def _topics(topics: Counts, searches: int) -> Section:
    blocks: list[Block] = [
        Words(f"The classifier is sure of {topics['told']:,} of {searches:,} searches; it errs at times."),
        Bars("Searches by topic", ("topic", "searches"), topics["general"]),
    ]
    if topics["unusual"]:
        rows = [
            (shown(t["topic"]), f"{t['searches']:,}", f"{t['made_up_people']:,}") for t in topics["unusual"]
        ]
        head = ("narrow topic", "searches", "made-up people with it")
        blocks.append(Table("Narrow topics that few others have", head, rows, frozenset({1, 2})))
    if topics["sensitive"]:
        blocks.append(Bars("Searches on sensitive matters", ("matter", "searches"), topics["sensitive"]))
    return Section("Topics", blocks)


def _time(time: Counts | None) -> Section:
    if time is None:
        return Section("Hours and days", [Words("The file has no times, so it says nothing about your day.")])
    when = f"{_searches(time['with_time'])} have a time, on {time['days_with_searches']:,} different days."
    hours = {f"{hour:02d}": count for hour, count in enumerate(time["by_hour"])}
    return Section(
        "Hours and days",
        [
            Words(f"{when} Hours are UTC."),
            Bars("Searches by hour of the day", ("hour", "searches"), hours),
            Bars("Searches by weekday", ("day", "searches"), time["by_weekday"]),
        ],
    )


def _personal(personal: Mapping[str, int], searches: int) -> Section:
    rows = [(why, f"{count:,}", percent(count / searches)) for why, count in personal.items()]
    table = Table("Searches that hold", ("what", "searches", "share"), rows, frozenset({1, 2}))
    text = (
        "Found by the patterns and lists of the method `rules`: they overlook some, and take some things "
        "for personal that are not."
    )
    return Section("Names, numbers, addresses", [Words(text), table])


def _habits(habits: Counts) -> Section:
    if not habits["queries"]:
        return Section("Habits", [Words("No query comes back three times or more.")])
    facts = [
        ("Queries asked three times or more", f"{habits['queries']:,}"),
        ("Searches that they make up", f"{habits['searches']:,}"),
        ("The most frequent one", f"{_searches(habits['most'])}"),
        ("With a person's name", f"{habits['names']:,}"),
    ]
    bits, note = habits["bits"], "How rare their words are needs the extra `learn`."
    if bits is not None:
        facts += [
            ("Bits of the middle one", f"{bits['median']:g}"),
            ("Bits of the rarest", f"{bits['most']:g}"),
            ("With 33 bits or more", f"{bits['above_33']:,}"),
        ]
        note = (
            "Bits say how rare a query is if its words came by chance, each as often as in English text. "
            "33 bits tell one person from eight billion. Words that go together are not that rare, so the "
            "true number is smaller."
        )
    return Section("Habits", [Facts(facts), Words(note)])


def _singled_out(found: Counts) -> Section:
    people = found["made_up_people"]
    rows = [(known, f"{left:,.1f}") for known, left in found["left_if_known"].items()]
    blocks: list[Block] = [
        Words(
            f"Compared with {people:,} made-up people, who search as people did in 2006. Nobody of them is "
            "real, so this is a yardstick, not a proof. Your history has "
            f"{plural(found['topics'], 'topic')} at the second level."
        )
    ]
    if rows:
        head = (
            "topics of yours that somebody knows",
            f"of {people:,} made-up people, this many have them all",
        )
        blocks.append(Table("Who is left beside you", head, rows, frozenset({1})))
    blocks.append(
        Words(
            "The queries themselves are not compared: made-up people do not use your words, so each would "
            "seem unique."
        )
    )
    return Section("How fast you are singled out", blocks)


def _shown(texts: Mapping[str, Mapping[str, list[str]]] | None) -> list[Section]:
    if not texts:
        return []
    blocks: list[Block] = [Note("warn", "These are your own searches. Do not pass this on.")]
    for part, listed in texts.items():
        for name, queries in listed.items():
            if queries:
                blocks += [
                    Words(f"{part.capitalize()}: {name}"),
                    Bullets([shown(query) for query in queries]),
                ]
    return [Section("The searches behind the counts", blocks)]
