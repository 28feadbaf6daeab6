"""`python.md`: the public names, with signatures and what they do."""

from __future__ import annotations

import inspect
import re

import querycloak as qc
from pages.markdown import fenced, first_line, signature, table
from pages.markdown import page as put_together
from querycloak import attacks
from querycloak.attacks.finding import Finding
from querycloak.client import Client
from querycloak.knowledge import Knowledge
from querycloak.log import Batch
from querycloak.methods.shared.records import RecordBuffer
from querycloak.protector import AttackBound, Labels, Protector, Traits
from querycloak.testing.conformance import CHECKS

VERBS = (
    *("read", "write", "generate", "classify", "protect", "verify", "attack", "measure"),
    *("compare", "recommend"),
)
THINGS = ("Log", "Release")


def verb(name: str) -> list[str]:
    """Describe one verb."""
    part = getattr(qc, name)
    return [f"### qc.{name}", fenced(signature(part), "text"), inspect.getdoc(part) or ""]


def thing(name: str) -> list[str]:
    """Describe one class by its fields."""
    part = getattr(qc, name)
    rows = [
        (f"`{field}`", f"`{kind}`") for field, kind in part.__annotations__.items() if "ClassVar" not in kind
    ]
    return [f"### qc.{name}", inspect.getdoc(part) or "", table(("field", "type"), rows)]


def finding() -> list[str]:
    """Describe what `qc.attack` gives."""
    rows = [(f"`{field}`", f"`{kind}`") for field, kind in Finding.__annotations__.items()]
    return ["### Finding", inspect.getdoc(Finding) or "", table(("field", "type"), rows)]


def protocol() -> str:
    """List what a method implements."""
    names = (
        *("traits", "promise", "examples", "push", "advance", "close", "snapshot", "restore", "erase"),
        *("drop", "drop_erased", "label_of", "partition_key", "check_ready", "check_user_count", "facts"),
        *("truth_columns", "change_setting"),
    )
    rows = []
    for name in names:
        part = getattr(Protector, name)
        must = "yes" if getattr(part, "__isabstractmethod__", False) else "no"
        rows.append((f"`{name}`", must, first_line(inspect.getdoc(part))))
    return table(("method", "must be written", "what it does"), rows)


def declared(part: type) -> str:
    """List the fields of a dataclass with the comments before them."""
    rows, comment = [], list[str]()
    for line in inspect.getsource(part).splitlines():
        text = line.strip()
        field = re.fullmatch(r"(\w+): ([^=]+?)(?: = .*)?", text)
        if text.startswith("#: "):
            comment.append(text.removeprefix("#: "))
        elif field and field[1] in part.__annotations__:
            rows.append((f"`{field[1]}`", f"`{field[2]}`", " ".join(comment)))
            comment = []
    return table(("field", "type", ""), rows)


def meanings(part: type) -> str:
    """List the members of an enumeration with the comments before them."""
    rows, comment = [], ""
    for line in map(str.strip, inspect.getsource(part).splitlines()):
        name = re.match(r"([A-Z]+) = ", line)
        if line.startswith("#: "):
            comment = line.removeprefix("#: ")
        elif name:
            rows.append((f"`{part.__name__}.{name[1]}`", comment))
            comment = ""
    return table(("value", ""), rows)


def requests() -> str:
    """List what an attack can request."""
    kinds = [one for name in attacks.__all__ if issubclass(one := getattr(attacks, name), attacks.Request)]
    rows = [
        (f"`{signature(kind).rpartition(' -> ')[0]}`", f"`{kind.name}`", first_line(inspect.getdoc(kind)))
        for kind in kinds
        if kind is not attacks.Request
    ]
    return table(("request", "frame in `view.auxiliary`", "what the attacker knows"), rows)


def client() -> list[str]:
    """Describe the client of the service."""
    names = ("send", "released", "status", "profile", "erase", "export", "close")
    made = signature(Client).rpartition(" -> ")[0]
    rows = [(f"`{name}`", first_line(inspect.getdoc(getattr(Client, name)))) for name in names]
    return [fenced(made, "text"), table(("method", "what it does"), rows)]


def checks() -> str:
    """List the conformance checks."""
    return table(
        ("check", "what it asserts"), [(f"`{c.__name__}`", first_line(inspect.getdoc(c))) for c in CHECKS]
    )


def page() -> str:
    """Write the page."""
    return put_together(
        "# Python",
        "The verbs of the command line, in Python. `import querycloak as qc` loads nothing heavy; each name "
        "is loaded on first use.",
        "## Verbs",
        *(part for name in VERBS for part in verb(name)),
        "## Things",
        *(part for name in THINGS for part in thing(name)),
        *finding(),
        "## Rooms",
        "`qc.measures`: functions of plain values, see [measures](measures.md). `qc.text`: the taxonomy "
        "and the classifiers. `qc.errors`: every exception, see [errors](errors.md). `qc.testing`: for "
        "authors of methods.",
        "## A client of the live service",
        "`from querycloak.client import Client` needs the standard library alone; "
        "[how to use it](../how-to/serve.md#in-python).",
        *client(),
        "## For authors of methods",
        "`querycloak.protector.Protector` is the protocol: [write a plugin](../how-to/write-a-plugin.md).",
        protocol(),
        f"`querycloak.log.Batch` is what goes in and comes out. {first_line(inspect.getdoc(Batch))}",
        table(("column of a batch", ""), [(f"`{name}`", COLUMNS[name]) for name in Batch.COLUMNS]),
        "### Traits",
        inspect.getdoc(Traits) or "",
        declared(Traits),
        "### Labels",
        inspect.getdoc(Labels) or "",
        meanings(Labels),
        "### AttackBound",
        inspect.getdoc(AttackBound) or "",
        declared(AttackBound),
        "### Records that wait",
        f"`querycloak.methods.shared.records.RecordBuffer`. {inspect.getdoc(RecordBuffer)}",
        "## For authors of attacks",
        "`querycloak.attacks.Attack`: `requests()` and `guess(view)`. What the attacker knows:",
        requests(),
        meanings(Knowledge),
        "## Conformance checks",
        "`querycloak.testing.conformance.CHECKS`; `run_checks(Method, log, at)` runs all, "
        "`run_check(check, Method, log, at)` one.",
        checks(),
    )


COLUMNS = {
    "row": "the input row it came from; negative: made up by a method",
    "seq": "input rows read when it came in, or when it was let go",
    "user": "a code; `texts.user` spells it out",
    "query": "a code; `texts.query` spells it out",
    "time": "microseconds since 1970, UTC",
    "rank": "the rank of the click, or -1",
    "url": "a code; `texts.url` spells it out",
    "category": "a code; `texts.category` spells it out and cuts it to a level",
    "blank": "bits of columns that must leave empty",
}
