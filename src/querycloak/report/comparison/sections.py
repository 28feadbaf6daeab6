"""The sections of the page of a comparison, each made of the same values as its tables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from querycloak.report.as_html import text
from querycloak.report.comparison.axes import AXES, KEEP, kept, why_not_kept
from querycloak.report.comparison.figures import (
    kept_text,
    listed,
    megabytes,
    percent,
    seconds,
    span,
    unit_of,
    with_interval,
)
from querycloak.report.comparison.frontier import settings_of
from querycloak.report.comparison.gaps import keeps, unprotected
from querycloak.report.comparison.linked import why_not_linked
from querycloak.report.comparison.promises import GAMES, audit_of
from querycloak.report.comparison.promises import table as judged
from querycloak.report.comparison.result import Comparison
from querycloak.report.comparison.tables import not_run
from querycloak.report.comparison.words import ATTACKER, LIMITS, USE, apart, choose
from querycloak.report.html import Html, join, table, tag

_SPACED: Final = re.compile(r"(?<=\d) %")
_MARKS: Final = {
    "holds": "good",
    "kept": "good",
    "broken": "bad",
    "no bound stated": "info",
    "open by design": "warn",
    "not applicable": "info",
    "not checkable": "warn",
}


def section(name: str, title: str, *content: Any) -> Html:
    """Make a section that can be linked to."""
    inner = _SPACED.sub("\u00a0%", join(content))  # a number and its sign stay on one line
    return tag("section", tag("h2", title, id=name), Html(inner), aria_labelledby=name)


def answers(comparison: Comparison) -> Html:
    """Answer for each limit, kind of attacker and use; and name what has no linked share apart."""
    parts = []
    for attacker in ("release", "knowing", "any"):
        head = ["At most", *(f"To keep {USE[use]}" for use in KEEP)]
        rows = [
            [
                f"{100 * limit:g} %",
                *(_answer(choose(comparison, limit, use, attacker).candidate, use, attacker) for use in KEEP),
            ]
            for limit in LIMITS
        ]
        parts.append(table(head, rows, caption=f"If at most so much may be linked by {ATTACKER[attacker]}"))
        aside = [text(f"{listed(names, 40)}: {reason}.") for reason, names in apart(comparison, attacker)]
        if aside:
            parts.append(tag("p", "Not among the answers, for want of a linked share:", class_="small"))
            parts.append(tag("ul", *(tag("li", one) for one in aside), class_="small"))
    return join(parts)


def _answer(candidate: Mapping[str, Any] | None, use: str, attacker: str) -> Html:
    if candidate is None:
        return tag("span", "none of those tried", class_="soft")
    share, found = kept(candidate, KEEP[use]), candidate["linked"][attacker]
    assert share is not None
    said = f"keeps {percent(share[0])}; linked {percent(found['success'])}, at most {percent(found['high'])}"
    return Html(f"{tag('strong', candidate['name'])}<br>{tag('span', said, class_='soft')}")


def candidates(comparison: Comparison) -> Html:
    """Make the table of candidates; every number carries its exact value, for sorting and for checks."""
    head = [
        ("Setting", None),
        ("Linked: sees the release only", "linked.release"),
        ("Linked: knows more", "linked.knowing"),
        *((_capital(axis.title), f"kept.{axis.name}") for axis in AXES.values()),
        ("Time to protect", "cost.protect_seconds"),
        ("Memory", "cost.peak_mb"),
    ]
    top = [
        tag(
            "th",
            tag("button", title, type="button"),
            scope="col",
            class_="number" if kind else None,
            data_kind=kind,
        )
        for title, kind in head
    ]
    rows = [_row(one, len(head)) for one in comparison.candidates]
    body = tag("table", tag("thead", tag("tr", *top)), tag("tbody", *rows), id="candidates-table")
    return tag("div", body, class_="wide pinned", role="region", tabindex="0", aria_label="Table of settings")


def _row(one: Mapping[str, Any], width: int) -> Html:
    name = tag("th", one["name"], scope="row", title=settings_of(one))
    if one["failed"]:
        return tag(
            "tr", name, tag("td", f"failed: {one['failed']}", colspan=width - 1), data_name=one["name"]
        )
    cells = []
    for attacker in ("release", "knowing"):
        found = one["linked"][attacker]
        why = found["attack"] if found else why_not_linked(one)
        cells.append(_number(found and found["success"], _stacked(one, found), why))
    for axis in AXES.values():
        share = kept(one, axis)
        cells.append(_number(share and share[0], kept_text(share), "" if share else why_not_kept(one, axis)))
    cost = one["cost"]
    cells.append(_number(cost["protect_seconds"], seconds(cost["protect_seconds"])))
    cells.append(_number(cost["peak_mb"], megabytes(cost["peak_mb"])))
    return tag("tr", name, *cells, data_name=one["name"])


def _number(value: float | None, content: Any, why: str = "") -> Html:
    return tag(
        "td", content, class_="number", data_value=None if value is None else repr(value), title=why or None
    )


def _stacked(one: Mapping[str, Any], found: Mapping[str, Any] | None) -> Any:
    if found is None:
        return "–"
    under = f"{span(found['low'], found['high'])} of {unit_of(one, found['attack'])}"
    return Html(f"{percent(found['success'])}<br>{tag('span', under, class_='soft')}")


def promises(comparison: Comparison) -> Html:
    """Make the table of promises against attacks, by game."""
    rows = []
    for one, games in judged(comparison):
        words = "; ".join(promise["words"] for promise in one["promises"])
        name = Html(f"{tag('span', one['name'])}<br>{tag('span', text(words), class_='soft words')}")
        cells = [
            Html(f"{_mark(game.verdict)}<br>{tag('span', text(game.text), class_='soft')}") for game in games
        ]
        rows.append([name, _mark(audit_of(one)), *cells])
    head = [
        "Setting and its promise",
        "Audit",
        *(Html(f"{game.test}<br>{tag('span', game.question, class_='soft')}") for game in GAMES),
    ]
    return table(head, rows, caption="Verdicts: what was measured against what is stated")


def _mark(word: str) -> Html:
    sign = {"good": "✓ ", "bad": "✗ ", "warn": "? "}.get(kind := _MARKS.get(word, "info"), "")
    return tag("span", f"{sign}{word}", class_=f"mark {kind}")


def methods(comparison: Comparison) -> Html:
    """Say for each method what it keeps and what it does not protect against."""
    cards = []
    for method, lines in unprotected(comparison).items():
        left = keeps(comparison, method)
        cards.append(
            tag(
                "article",
                tag("h3", method),
                tag("p", text(comparison.data.get("methods", {}).get(method, ""))),
                tag("p", tag("strong", "Keeps: "), left)
                if left
                else tag(
                    "p", tag("strong", "Keeps: "), "a table of counts; no records to measure by themselves"
                ),
                tag("p", tag("strong", "Does not protect against")),
                tag("ul", *(tag("li", text(line)) for line in lines)),
            )
        )
    return tag("div", *cards, class_="cards")


def people(comparison: Comparison) -> Html:
    """Show how the best attack falls on people: on the one in the middle, and on the worst-off tenth."""
    rows = []
    for one in comparison.worked:
        best = one["linked"]["any"]
        found = best and one["findings"][best["attack"]]
        if found and found["median_user"] is not None:
            rows.append(
                [
                    one["name"],
                    f"{best['attack']} ({unit_of(one, best['attack'])})",
                    percent(found["success"]),
                    percent(found["median_user"]),
                    percent(found["worst_decile_user"]),
                ]
            )
    head = [
        "Setting",
        "Best attack (share of)",
        "On average",
        "Half of the people: at least",
        "One in ten: at least",
    ]
    return table(head, rows, caption="The best attack on each setting, person by person", numbers={2, 3, 4})


def size(comparison: Comparison) -> Html:
    """Say what the sample's size does to the numbers."""
    small = [one for one in comparison.data["half_the_people"] if not one["failed"]]
    full = {one["name"]: one for one in comparison.worked}
    pairs = [(full[one["name"]], one) for one in small if one["name"] in full]
    log = comparison.data["log"]
    if not pairs:
        if log["sampled"]:
            return tag("p", "A sample was compared, but nothing was run on half of it.")
        return tag("p", "Nothing was sampled: all people of the log were compared.")
    uses = ("topics", "terms", "sessions")
    rows = [
        [
            whole["name"],
            *_change(whole["linked"]["any"], half["linked"]["any"]),
            *(_two(kept(half, use), kept(whole, use)) for use in uses),
        ]
        for whole, half in pairs
    ]
    few, many = f"{log['people'] // 2:,}", f"{log['people']:,}"
    both = [f"{_capital(AXES[use].title)}, {few} → {many}" for use in uses]
    head = ["Setting", f"Linked, {few} people", f"Linked, {many} people", "Change in points", *both]
    caption = "Half of the sample against all of it; best of all attacks"
    numbers = table(head, rows, caption=caption, numbers=range(1, len(head)))
    return join([tag("p", _size_words(pairs, log)), numbers])


def _change(whole: Mapping[str, Any] | None, half: Mapping[str, Any] | None) -> tuple[str, str, str]:
    if whole is None or half is None:
        return "–", "–", "–"
    return with_interval(half), with_interval(whole), _points(whole["success"] - half["success"])


def _points(change: float) -> str:
    return f"{100 * change:+.1f}".replace("-", "−")


def _two(half: tuple[float, float, float] | None, whole: tuple[float, float, float] | None) -> str:
    return "–" if half is None or whole is None else f"{percent(half[0])} → {percent(whole[0])}"


def _size_words(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], log: Mapping[str, Any]) -> str:
    changes = [
        whole["linked"]["any"]["success"] - half["linked"]["any"]["success"]
        for whole, half in pairs
        if whole["linked"]["any"] and half["linked"]["any"]
    ]
    start = (
        f"The log has {log['of_people']:,} people; {log['people']:,} were drawn. Intervals tell the luck of "
        "that draw. "
        "They do not tell how numbers move with the size of a crowd, so one setting of each line was run on "
        "half of the sample as well."
    )
    if not changes:
        return start
    down = sum(change < 0 for change in changes)
    return (
        f"{start} With twice as many people, the linked share fell in {down} of {len(changes)} settings; the "
        "middle "
        f"change is {_points(median(changes))} points, the largest {_points(max(changes, key=abs))}. Expect "
        "changes of this kind "
        "again each time the number of people doubles, until the whole log is reached."
    )


def missing(comparison: Comparison) -> Html:
    """Name what has no numbers, and why."""
    lines = not_run(comparison)
    if not lines:
        return tag("p", "Every registered method was run, and every setting has numbers.")
    return tag("ul", *(tag("li", text(line)) for line in lines))


def attacks(comparison: Comparison) -> Html:
    """List the attacks: what each sees and does."""
    tests = {game.name: game.test for game in GAMES}
    rows = [
        [one["label"], tests.get(one["game"], "Control"), ", ".join(one["sees"]), text(one["summary"])]
        for one in comparison.data["attacks"]
    ]
    return table(["Attack", "Test", "Sees", "What it does"], rows, caption="The attacks that were run")


GLOSSARY: Final = (
    (
        "Setting",
        "One way to protect the log: a method (or several in a row) with values for its settings, "
        "such as `cohort k=10`.",
    ),
    (
        "Linked",
        "The attack put a record, or a whole label, to the right person. “10 % linked” means that "
        "it was right for one in ten.",
    ),
    (
        "Label",
        "What a released record carries in place of a user. It may stand for one person, for a "
        "group, or be mixed on purpose.",
    ),
    (
        "95 % interval",
        "Where the true share lies with 95 % certainty, given the people and records that "
        "were met. Limits are held against its upper end.",
    ),
    (
        "Bound",
        "The share that a method says no attacker of this kind should exceed, such as 1/k. Broken "
        "means: even the lower end of the interval is above it.",
    ),
    ("Sees only the release", "An attacker with the published file and nothing else."),
    (
        "Knows more",
        "An attacker who also knows things from elsewhere: a few searches of a person, a whole "
        "history, or how much people search.",
    ),
    (
        "Singling out, linkability, inference",
        "The names of the three questions that European authorities put to anonymised data (Article 29 "
        "Working Party, Opinion 05/2014). Here each stands for the game that is nearest to it, "
        "and is not the "
        "legal test: whose record is this (attribution); are these two records one person's "
        "(linkage; 50 % is "
        "chance); which label is somebody's whom I know, and so what else did she ask (identification). "
        "Whether attributes of people can be guessed was not tried.",
    ),
    (
        "Open by design",
        "The release keeps all records of a person, or of a session, together under one label. An attacker "
        "need not link them; whose they are is the question of identification.",
    ),
    (
        "Quick, full, seed",
        "Plans that come ready-made, and the number that all draws start from: the same plan, log and seed "
        "give the same numbers (but for the noise of threshold-dp and dp-histogram).",
    ),
    ("Audit", "After each release, the promise that its method made is checked on the release itself."),
    ("Kept", "How much of one use of the log is left, from 0 to 100 %. The table's heads say of what."),
)
CAVEATS: Final = (
    "Attacks are a lower bound: somebody may have a better attack, or know more, than what was tried here.",
    "Numbers are of this log. Another log, other people, another year may give others.",
    "A share over all people can hide a few who are much easier to find: see the section on people.",
    "No linked share at all (a dash) is not a low one: the question does not arise in that form, and the "
    "page says why.",
    "This page measures; it makes no legal claim. Whether a release is anonymous in the sense of a law is "
    "for people to decide.",
)


def glossary() -> Html:
    """Explain the words of the page, and of each axis."""
    kinds = [(_capital(axis.title), _capital(axis.about) + ".") for axis in AXES.values()]
    parts = (tag("dt", name) + tag("dd", text(about)) for name, about in (*GLOSSARY, *kinds))
    return tag("dl", *map(Html, parts), class_="glossary")


def command(comparison: Comparison) -> str:
    """Give the command that makes these numbers again."""
    data = comparison.data
    words = data.get("asked") or _as_told(comparison)
    return shlex.join(["querycloak", "compare", "LOG", *words, "--seed", str(data["seed"]), "-o", "DIR"])


def _as_told(comparison: Comparison) -> list[str]:
    """Give the words for a plan that no command line asked for."""
    words: list[str] = []
    for one in comparison.candidates:
        rest = one["name"].removeprefix(" + ".join(one["methods"])).split()
        words += ["-m", ":".join(["+".join(one["methods"]), *rest])]
    for attack in comparison.data["attacks"]:
        words += ["-a", ":".join(attack["label"].split())]
    for measure in comparison.data["measures"]:
        words += ["-u", measure["name"]]
    return words


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:]
