"""The page of a comparison: one file that opens anywhere, with a picture to explore and all numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from querycloak.errors import MissingExtra
from querycloak.report.comparison import sections
from querycloak.report.comparison.axes import KEEP
from querycloak.report.comparison.figures import listed
from querycloak.report.comparison.frontier import ATTACKER, AXIS, frontier
from querycloak.report.comparison.result import Comparison
from querycloak.report.comparison.sections import section
from querycloak.report.comparison.static import svg, symbol
from querycloak.report.comparison.tables import what_this_is
from querycloak.report.comparison.words import ATTACKER as WHO
from querycloak.report.comparison.words import USE, apart, choose, stands_out, steps
from querycloak.report.html import Html, join, page, tag

TITLE: Final = "Which protection keeps what, and what can still be linked"
#: Where the slider stops, in percent, and where it stands at first.
STOPS: Final = (0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
START: Final = STOPS.index(10)
_MENU: Final = (
    ("answer", "Answer"),
    ("frontier", "Picture"),
    ("settings", "All settings"),
    ("promises", "Promises"),
    ("methods", "Methods"),
    ("people", "People"),
    ("size", "Size"),
    ("missing", "Not run"),
    ("reading", "How to read"),
)


def html(comparison: Comparison) -> str:
    """Make the page. It asks nothing of any network; without scripts it has a still picture and tables."""
    data = frontier(comparison)
    body = (
        _top(comparison),
        section("answer", "Which setting should I use?", _question(comparison), _all_answers(comparison)),
        section(
            "standing-out",
            "What stands out",
            tag("ul", *(tag("li", line) for line in stands_out(comparison))),
        ),
        section("frontier", "What is kept against what is linked", _picture(comparison, data)),
        section("settings", "All settings", _settings(), sections.candidates(comparison)),
        section("promises", "Promises against attacks", _about_promises(), sections.promises(comparison)),
        section(
            "methods", "What each method keeps, and does not protect against", sections.methods(comparison)
        ),
        section("people", "Those who fare worst", _about_people(), sections.people(comparison)),
        section("size", "What size does", sections.size(comparison)),
        section("missing", "What was not run, and why", sections.missing(comparison)),
        section("reading", "How to read this page", sections.glossary(), sections.attacks(comparison)),
        section("again", "How to make it again", *_again(comparison)),
        section(
            "caveats", "What this page does not say", tag("ul", *(tag("li", one) for one in sections.CAVEATS))
        ),
        _data("frontier-data", data),
        _data("answers-data", _answers(comparison)),
    )
    return page(TITLE, *body, styles=[_file("page.css")], scripts=[_plotly(), _file("page.js")])


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingExtra("report", "the page of a comparison") from None
    return _harmless(str(get_plotlyjs()))


def _harmless(script: str) -> str:
    """Let a script hold no text that would end it; within its strings the meaning stays."""
    return script.replace("</script", "<\\/script").replace("</SCRIPT", "<\\/SCRIPT")


def _file(name: str) -> str:
    return files("querycloak.report.comparison").joinpath(name).read_text("utf-8")


def _data(name: str, value: Any) -> Html:
    """Put values into the page as data that no browser runs."""
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return Html(f'<script type="application/json" id="{name}">{content}</script>')


def _answers(comparison: Comparison) -> dict[str, Any]:
    """Give every answer that the slider can ask for: each holds from its limit on."""
    return {
        attacker: {
            use: [
                [limit, one.headline, one.reason, one.more] for limit, one in steps(comparison, use, attacker)
            ]
            for use in KEEP
        }
        for attacker in WHO
    }


def _top(comparison: Comparison) -> Html:
    data, log = comparison.data, comparison.data["log"]
    methods = {method for one in comparison.candidates for method in one["methods"]}
    whole = f"of {log['of_people']:,} people" if log["sampled"] else "people, all there are"
    cards = (
        (f"{log['people']:,}", f"{whole}, {log['records']:,} records"),
        (f"{len(comparison.candidates)}", f"settings of {len(methods)} methods"),
        (
            f"{len(data['attacks'])}",
            f"attacks tried, {data['repeats']} run{'s' if data['repeats'] > 1 else ''}",
        ),
        (data["preset"] or "own choice", f"plan; seed {data['seed']}, QueryCloak {data['version']}"),
    )
    facts = tag(
        "div", *(tag("div", tag("b", number), tag("span", what)) for number, what in cards), class_="facts"
    )
    menu = tag("nav", *(tag("a", title, href=f"#{name}") for name, title in _MENU), aria_label="Sections")
    return join([tag("h1", TITLE), tag("p", what_this_is(comparison), class_="lede"), facts, menu])


def _select(name: str, label: str, choices: Mapping[str, str], chosen: str) -> Html:
    options = (
        tag("option", title, value=value, selected=value == chosen) for value, title in choices.items()
    )
    return tag("label", tag("span", label), tag("select", *options, id=name))


def _slider(name: str, label: str) -> Html:
    bar = tag(
        "input",
        type="range",
        id=name,
        min=0,
        max=len(STOPS) - 1,
        step=1,
        value=START,
        data_stops=json.dumps(STOPS),
    )
    shown = tag("output", f"{STOPS[START]:g} %", for_=name, id=f"{name}-shown")
    return tag(
        "label", tag("span", label, " ", shown), Html(str(bar).removesuffix("</input>")), class_="slide"
    )


def _question(comparison: Comparison) -> Html:
    first = choose(comparison, STOPS[START] / 100, AXIS, ATTACKER)
    asked = tag(
        "div",
        _slider("limit", "At most this share may be linked:"),
        _select("who", "by", WHO, ATTACKER),
        _select("use", "and I want to keep", USE, AXIS),
        class_="controls live-only",
    )
    said = tag(
        "div",
        tag("p", tag("strong", first.headline), ": ", first.reason, id="answer-text"),
        tag("p", first.more, id="answer-more", class_="small"),
        class_="answer" if first.candidate else "answer none",
        id="answer-box",
        aria_live="polite",
    )
    still = f"If at most {STOPS[START]:g} % may be linked by {WHO[ATTACKER]}, to keep {USE[AXIS]}:"
    how = (
        "Only settings whose upper end of the interval is within the limit count; of these, the one that "
        "keeps most is named. Shares are of records or of people, whichever the attack guesses. Attacks on "
        "pairs (link-pairs) and on meanings (bayes-concept) answer other questions and do not "
        "count as linked. "
        "Attacks are a lower bound; the words are explained under “How to read this page”."
    )
    aside = "; ".join(f"{listed(names)} ({reason})" for reason, names in apart(comparison, "any"))
    without = (
        tag("p", f"Without a linked share, and so never named here: {aside}.", class_="small")
        if aside
        else ""
    )
    return tag(
        "div",
        tag("p", still, id="asked-text", class_="soft"),
        asked,
        said,
        tag("p", how, class_="small"),
        without,
        class_="card",
    )


def _all_answers(comparison: Comparison) -> Html:
    return tag(
        "details", tag("summary", "All answers as tables: 1, 5, 10 and 20 %"), sections.answers(comparison)
    )


def _picture(comparison: Comparison, data: Mapping[str, Any]) -> Html:
    axes = {one["name"]: one["title"] for one in data["axes"]}
    kinds = {one["name"]: one["title"] for one in data["attackers"]}
    controls = tag(
        "div",
        _select("axis", "Across: what is kept", axes, AXIS),
        _select("attacker", "Upwards: what is linked", kinds, ATTACKER),
        _select(
            "scale", "Upward scale", {"root": "more room for small shares", "even": "even steps"}, "root"
        ),
        _slider("limit-too", "Limit:"),
        class_="controls",
    )
    boxes = [_box(place, line) for place, line in enumerate(data["lines"])]
    buttons = tag(
        "div",
        tag("button", "All", type="button", id="all"),
        tag("button", "None", type="button", id="none"),
        class_="buttons",
    )
    lines = tag("fieldset", tag("legend", "Methods shown"), buttons, *boxes, class_="lines")
    saves = tag(
        "div",
        tag("button", "Download as PNG", type="button", id="save-png"),
        tag("button", "Download as SVG", type="button", id="save-svg"),
        class_="buttons",
    )
    plot = tag(
        "div",
        id="plot",
        role="img",
        aria_label="What is kept against what is linked; the table below has the numbers.",
    )
    live = tag(
        "div",
        controls,
        tag("div", plot, lines, class_="plot-and-lines"),
        tag("p", id="picture-note", class_="small", aria_live="polite"),
        saves,
        class_="live-only",
        id="live",
    )
    said = (
        "Each marker is one setting; a line joins the settings of one method. Further right keeps more, "
        "further down "
        "links less: the best place is the lower right corner. Bars are 95 % intervals. A dashed line is the "
        "bound "
        "that a method states."
    )
    still = tag("figure", Html(svg(comparison)), id="still")
    off = tag("p", "Without scripts this is a still picture; the tables have all numbers.", id="without")
    return join([tag("p", said), off, live, still])


def _box(place: int, line: Mapping[str, str]) -> Html:
    icon = tag(
        "svg",
        tag("line", x1=0, x2=26, y1=8, y2=8, stroke="currentColor", stroke_width=2),
        Html(str(symbol(line["shape"], 13, 8, "currentColor")).replace('stroke="#ffffff"', 'stroke="none"')),
        width=26, height=16, viewBox="0 0 26 16", aria_hidden="true",
        style=f"--light:{line['colour']};--dark:{line['dark']}", class_="icon",
    )  # fmt: skip
    check = Html(f'<input type="checkbox" checked data-line="{place}">')
    return tag("label", check, icon, tag("span", line["name"]))


def _settings() -> Html:
    say = (
        "One row for each setting (the table scrolls); shares with their 95 % intervals. Press a "
        "head to sort by "
        "it. A dash "
        "means that the "
        "question does not arise; point at it for the reason. “Texts not unique” is about privacy: texts "
        "that only one "
        "person typed may tell by themselves who wrote them."
    )
    seek = tag(
        "label",
        tag("span", "Show only settings whose name has"),
        Html('<input type="search" id="seek">'),
        class_="controls live-only",
    )
    return join([tag("p", say), seek])


def _about_promises() -> Html:
    return tag(
        "p",
        "A method promises something about its release, and an audit checks that on the release itself: kept "
        "means that it does what it says, not that it is safe. Some methods also state a bound "
        "for attackers. "
        "Each attack plays one of three games. They are near to the three questions of European authorities "
        "(singling out, linkability, inference; Opinion 05/2014), and are not the legal tests. ",
        tag("b", "Holds"), " means that the interval reaches down to the bound, ",
        tag("b", "broken"), " that even its lower end is above, ",
        tag("b", "no bound stated"), " that the method says nothing about this game, ",
        tag("b", "open by design"), " that the release itself keeps a person's records together.",
    )  # fmt: skip


def _about_people() -> Html:
    return tag(
        "p",
        "A share over all hides that some are easier to find than others. For each person one can ask how "
        "many of her records the best attack puts to her, or, where whole labels are guessed, "
        "whether hers is "
        "found (a fraction, if several labels fit equally well). The last two columns say how much "
        "that is, at "
        "least, for the worse-off half and for the worst-off tenth. The average is over records "
        "where records "
        "are guessed: so a few who search much may carry it. Nobody is named.",
    )


def _again(comparison: Comparison) -> list[Html]:
    names = [tag("code", f"comparison.{kind}") for kind in ("json", "csv", "md")]
    return [
        tag(
            "p",
            "The same log, plan and seed give the same numbers, but for noise that no seed reaches "
            "(threshold-dp, dp-histogram):",
        ),
        tag("pre", tag("code", sections.command(comparison)), tabindex="0"),
        tag(
            "p",
            "The numbers of this page are also in ",
            names[0],
            ", ",
            names[1],
            " and ",
            names[2],
            " beside it.",
        ),
    ]
