"""A comparison in a notebook: the table of candidates, small."""

from __future__ import annotations

from querycloak.report.comparison.axes import KEEP, kept
from querycloak.report.comparison.figures import kept_text, with_interval
from querycloak.report.comparison.result import Comparison
from querycloak.report.comparison.words import USE
from querycloak.report.html import tag


def table(comparison: Comparison) -> str:
    """Give the table as HTML; everything in it is escaped."""
    head = [
        "candidate",
        "linked, sees the release only",
        "linked, knows more",
        *(f"{USE[use]} kept" for use in KEEP),
    ]
    rows = []
    for one in comparison.candidates:
        if one["failed"]:
            rows.append(
                tag(
                    "tr", tag("th", one["name"], scope="row"), tag("td", one["failed"], colspan=len(head) - 1)
                )
            )
            continue
        cells = [with_interval(one["linked"][attacker]) for attacker in ("release", "knowing")]
        cells += [kept_text(kept(one, KEEP[use])) for use in KEEP]
        rows.append(tag("tr", tag("th", one["name"], scope="row"), *(tag("td", cell) for cell in cells)))
    log = comparison.data["log"]
    caption = tag(
        "caption", f"{len(comparison.candidates)} candidates on {log['people']:,} people; 95 % intervals"
    )
    top = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head)))
    return str(tag("table", caption, top, tag("tbody", *rows)))
