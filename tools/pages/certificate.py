"""`certificate.md`: every field of the certificate's schema, and what it means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from pages.markdown import page as put_together
from pages.markdown import table

#: What each field means; a field of the schema without a meaning fails the generator.
MEANING = {
    "schema": "the version of this format",
    "tool": "what made the release",
    "tool.name": "always `querycloak`",
    "tool.version": "its version",
    "release": "the file that is certified",
    "release.id": "a name for the release, drawn from its secret",
    "release.source": "what `--source` said, or null",
    "release.sha256": "the SHA-256 of the released file's bytes",
    "release.layout": "format, columns and times of the file, so that `verify` reads it as it was written",
    "release.table": "only for a table of counts: its rows are no records",
    "release.stream": "only for lines of a live service: which lines, and when they left",
    "release.stream.number": "the number of the certificate, from 1",
    "release.stream.first": "the offset of the first line",
    "release.stream.last": "the offset of the last line; the SHA-256 is over exactly these lines",
    "release.stream.from": "when the period began, in seconds since 1970",
    "release.stream.to": "when it ended",
    "methods": "one entry for each method, in the order in which they ran",
    "methods[].method": "its name",
    "methods[].settings": "every setting, defaults included",
    "methods[].promise": "the guarantee in words, with these settings: its sentences, joined",
    "methods[].sentences": "each sentence of the guarantee, from version 2 on",
    "methods[].sentences[].text": "the sentence",
    "methods[].sentences[].checks": "names of the checks that test it, in `methods[].checks` or `lineage`",
    "methods[].sentences[].audit": "its verdict: the verdict on these checks together",
    "methods[].does_not_protect_against": "limits: what the guarantee does not cover",
    "methods[].facts": "further figures of a method; totals over releases are null without `--source`",
    "methods[].audit": "verdict on the whole guarantee, on the final release",
    "methods[].checks": "every check of the method",
    "methods[].checks[].check": "its name",
    "methods[].checks[].verdict": "its verdict",
    "methods[].checks[].detail": "why, or what the check detects: counts and row numbers, no query or user",
    "lineage": "checks of every release: origin of the rows, and every cell of each column",
    "lineage[].check": "its name",
    "lineage[].verdict": "its verdict",
    "lineage[].detail": "why, by counts and row numbers of the release",
    "audit": "verdict on all checks together; see below",
    "randomness": "where the secret came from",
    "randomness.secret": "its origin; the secret itself is never written",
    "randomness.noise": "only when a method drew its noise from elsewhere: no secret can repeat that",
    "randomness.reproducible": "whether the same secret can be had again, and gives the same release",
    "randomness.publishable": "false when made with `--seed`: anyone can recompute what hangs on the secret",
    "ledger": "the place of the release in its source's ledger, or null without `--source`",
    "ledger.head": "the keyed hash of the ledger's entry for this release; see `verify --ledger`",
    "ledger.entry": "the number of that entry",
    "ledger.earlier_releases_of_source": "how many releases of the same source came before",
    "findings": "measured attacks; empty as long as there are none",
    "signature": "only with `--sign`: a signature over everything else",
    "signature.algorithm": "always `ed25519`",
    "signature.public_key": "the key that signed; compare it with one that you trust",
    "signature.value": "the signature, base64",
}

VERDICTS = (
    ("`kept`", "passed", "the check was made and found no fault"),
    ("`broken`", "failed", "it found a fault: `protect` and `verify` end with status 4"),
    ("`not checkable`", "not tested", "the check could not be made with the evidence at hand"),
    ("`not applicable`", "not applicable", "the check does not concern this release"),
)

PRIVATE = (
    ("schema", "the version of this format"),
    ("created", "when, UTC"),
    ("input_sha256", "the SHA-256 of the input file; null for standard input"),
    ("rows_read", "data rows of the input"),
    ("skipped", "bad rows by reason"),
    ("joined_users", "user ids that were joined with another spelling of the same user"),
    ("released", "rows of the release; lines, if it is a table of counts"),
    ("withheld", "good rows that are not in it; of a table of counts, all"),
    ("reasons", "searches that each method withheld, by reason"),
)

TRUTH = (
    ("released_row", "a row of the release, from 0"),
    ("original_row", "the data row of the input it came from, from 0, bad rows counted too"),
    ("original_user", "who asked"),
    ("released_after", "how many input rows had been read when it was let go"),
)

#: Columns that only some releases' truth has.
RARE_TRUTH = (
    ("made_up", "with methods that make up records: whether this row is one of them"),
    ("raw_user", "if some user is written in several ways: the id of who asked as the log has it"),
)
MORE_TRUTH = (
    ("original_label", "with fresh labels: the label that stands for who asked"),
    ("label_user", "with fresh labels: the user for whom the label of the row stands"),
    ("cohort", "with `cohort`, one for each user: the number of the cohort of who asked"),
    ("cohort_size", "with `cohort`: how many seats it has, those of earlier releases included"),
)


def schema() -> dict[str, Any]:
    """Read the schema that `verify` checks against."""
    return dict(json.loads(files("querycloak.schemas").joinpath("certificate-2.json").read_text("utf-8")))


def kind_of(part: dict[str, Any]) -> str:
    """Say in words what values a field takes."""
    if "const" in part:
        return f"`{str(part['const']).lower() if part['const'] is True else part['const']}`"
    if "enum" in part:
        return ", ".join(f"`{value}`" for value in part["enum"])
    kind = part.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def resolved(part: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference to a definition of the same schema."""
    name = part.get("$ref", "").removeprefix("#/definitions/")
    return dict(whole["definitions"][name]) if name else part


def fields(part: dict[str, Any], whole: dict[str, Any], path: str = "") -> Iterator[tuple[str, str, str]]:
    """List every field below a part of the schema: its path, its kind, whether it must be there."""
    for name, given in part.get("properties", {}).items():
        below, here = resolved(given, whole), f"{path}.{name}" if path else name
        yield here, kind_of(below), "yes" if name in part.get("required", ()) else "no"
        yield from fields(below, whole, here)
        if "items" in below:
            yield from fields(below["items"], whole, f"{here}[]")


def page() -> str:
    """Write the page."""
    found = list(fields(schema(), schema()))
    if unlike := {path for path, _, _ in found} ^ set(MEANING):
        raise SystemExit(f"tools/pages/certificate.py: MEANING and the schema differ: {sorted(unlike)}")
    rows = [(f"`{path}`", kind, must, MEANING[path]) for path, kind, must in found]
    return put_together(
        "# Certificate and truth",
        "`protect -o OUT` writes `OUT.certificate.json`, the public part. It holds no query and no user, "
        "and it may travel with the release.",
        table(("field", "values", "required", "meaning"), rows),
        "## Verdicts",
        "`protect`, `verify` and reports print words; JSON keeps the older values.",
        table(("JSON", "printed", "meaning"), VERDICTS),
        "The verdict on several checks is `broken` if one is broken, else `not checkable` if one is not "
        "checkable, else `kept` if one is kept, else `not applicable`. A guarantee with an untested check "
        "has therefore not passed.",
        "## Versions",
        "This version writes `querycloak/certificate/2`. Version 1 has no `sentences`, and there a check "
        "that passed hid one that was not made. `verify`, `verify --diff` and `assess` read both; a newer "
        "version is refused.",
        "## The private part",
        "`OUT.certificate.private.json`, readable by its owner only (mode 0600). Exact counts can tell "
        "something about single people: do not publish it.",
        table(("field", "meaning"), [(f"`{name}`", meaning) for name, meaning in PRIVATE]),
        "## The truth file",
        "`protect --truth FILE` writes Parquet, mode 0600. With it, anyone can undo the release: it is for "
        "evaluation and audit, never for publication.",
        table(
            ("column", "meaning"),
            [(f"`{name}`", meaning) for name, meaning in TRUTH + MORE_TRUTH + RARE_TRUTH],
        ),
    )
