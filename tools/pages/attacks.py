"""`attacks.md`: what each attack tries, what it gets to see, and what it takes."""

from __future__ import annotations

import inspect
from typing import Any

from pages.markdown import default, table
from pages.markdown import page as put_together
from querycloak.api import describe_attacks
from querycloak.registry import ATTACKS

GAMES = (
    ("attribution", "whose is a record?", "records named rightly"),
    ("linkage", "are two records of one person?", "see the attack's own details"),
    ("identification", "which label or records are a known person's?", "people found"),
    ("control", "none: the floor and the ceiling of every score", "records named rightly"),
)


def settings_table(settings: list[dict[str, Any]]) -> list[str]:
    """Put an attack's settings in a table, if it has any."""
    rows = [(f"`{s['name']}`", default(s["default"]), s["allowed"], s["help"]) for s in settings]
    return [table(("setting", "default", "allowed", "meaning"), rows)] if rows else []


def section(about: dict[str, Any]) -> list[str]:
    """Write one attack's section."""
    slow = "" if about["fast"] else " It runs only when it is named."
    return [
        f"## {about['name']}",
        inspect.getdoc(ATTACKS.get(about["name"])) or "",
        f"**Game**: {about['game']}. **Sees**: {', '.join(about['sees'])}.{slow}",
        *settings_table(about["settings"]),
    ]


def page() -> str:
    """Write the page."""
    built_in = [about for about in describe_attacks() if about["name"] in ATTACKS.built_in]
    rows = [
        (f"[`{a['name']}`](#{a['name']})", a["game"], ", ".join(a["sees"]), a["summary"]) for a in built_in
    ]
    return put_together(
        "# Attacks",
        "`querycloak attacks` prints the same. How to run them: "
        "[attack your own release](../how-to/attack-your-own-release.md).",
        table(("name", "game", "sees", "in words"), rows),
        "## Games",
        table(("game", "question", "success is the share of"), GAMES),
        *(part for about in built_in for part in section(about)),
    )
