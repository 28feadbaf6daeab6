"""`methods.md`: guarantee, limits, settings and checks of each method."""

from __future__ import annotations

from typing import Any

from pages.markdown import bullets, default, table
from pages.markdown import page as put_together
from querycloak.api import describe_methods
from querycloak.audits.lineage import LINEAGE
from querycloak.guarantee import Guarantee
from querycloak.protector import Protector
from querycloak.registry import METHODS

_NO_KEY = b"\0" * 32


def columns(names: frozenset[str]) -> str:
    """List columns in the order of a record."""
    order = ("user", "query", "time", "rank", "url", "category")
    return ", ".join(f"`{name}`" for name in order if name in names) or "none"


def facts(method: type[Protector]) -> list[str]:
    """Say what a method does with the columns, and what it is exempt from."""
    own = method.traits(method.Settings())
    lines = [
        f"Needs the columns {columns(own.requires)}; reads {columns(own.reads)}.",
        f"Writes anew: {columns(own.rewrites)}. Leaves empty: {columns(own.empties)}.",
    ]
    reasons = (f"Exempt from `{check}`: {why}." for check, why in method.exempt.items())
    return [*lines, *reasons]


def promise_of(method: type[Protector]) -> Guarantee:
    """Return the guarantee of a method with the default settings."""
    return method.promise(method.Settings())


def audits(promise: Guarantee) -> str:
    """List what the audit tests."""
    rows = [
        (audit.check, "original and truth" if audit.needs_truth else "the release alone")
        for audit in promise.audits
    ]
    return table(("check", "needs"), rows)


def settings_table(settings: list[dict[str, Any]]) -> str:
    """Put a method's settings in a table."""
    rows = [(f"`{s['name']}`", default(s["default"]), s["allowed"], s["help"]) for s in settings]
    return table(("setting", "default", "allowed", "meaning"), rows)


def section(about: dict[str, Any]) -> list[str]:
    """Write one method's section."""
    method = METHODS.get(about["name"])
    promise = promise_of(method)
    return [
        f"## {about['name']}",
        about["summary"],
        f"**Guarantee.** {about['promise'][0].upper()}{about['promise'][1:]}",
        "**Limits**",
        bullets(promise.does_not_protect_against),
        "**Settings**",
        settings_table(about["settings"]),
        "**Audit**, as with the defaults",
        audits(promise),
        bullets(facts(method)),
        f"More: [how `{about['name']}` works](../explanation/{about['name']}.md).",
    ]


def page() -> str:
    """Write the page."""
    built_in = [about for about in describe_methods() if about["name"] in METHODS.built_in]
    rows = [(f"[`{m['name']}`](#{m['name']})", m["promise"]) for m in built_in]
    return put_together(
        "# Methods",
        "`querycloak methods` prints the same. Several methods run one after the other: "
        "[compose methods](../how-to/compose-methods.md).",
        table(("name", "guarantee"), rows),
        *(part for about in built_in for part in section(about)),
        "## Every release",
        "Whatever the method, the audit also checks the release as a whole:",
        audits(Guarantee("", (), LINEAGE)),
        "It also checks [every cell](../explanation/guarantees-and-audits.md#every-cell) of each column.",
    )
