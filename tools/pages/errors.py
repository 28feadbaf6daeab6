"""`errors.md`: every error with its exit status, and every reason why a row was left out."""

from __future__ import annotations

import inspect

from pages.markdown import first_line, table
from pages.markdown import page as put_together
from querycloak import errors, formats

#: What a reader can do about each error; a code without advice fails the generator.
ADVICE = {
    "error": "The parent of all others. It is never raised itself.",
    "usage": "Read the hint. `querycloak COMMAND --help` lists what a command takes.",
    "parameter": "Choose a value that the [settings](settings.md) allow. All faults are told in one go.",
    "unknown-name": "Take the name that the hint suggests; `methods`, `attacks` and `measures` list them.",
    "refused": "The settings are valid, but the result would break a policy. The hint names the way out.",
    "data": "The message names the row or the column. `--map` and `--format` say what a file cannot.",
    "broken-promise": "Nothing was written. A method is at fault: report it, with settings, without data.",
    "gone": "Read on from the first line that is still kept; the hint names it.",
    "unavailable": "The parent of those below: the service waits, and tries again by itself.",
    "disk-full": "Make room on the disk: the service goes on by itself, and nothing is lost.",
    "store-unavailable": "Look at the database: the service tries again by itself, and nothing is lost.",
    "journal-full": "Make room on the disk, then send it again: the service goes on by itself.",
    "service-failed": "Read the reason in the log of the service; a supervisor such as systemd restarts it.",
    "journal-broken": "Look at the disk (the system's log names it), then start the service again.",
    "busy": "Wait as long as `Retry-After` says, then send the same again, with the same `Idempotency-Key`.",
    "too-large": "Send several smaller ones, or raise `body_bytes` of the [service](service.md).",
    "not-there": "Look at the address or the name; the [service](service.md) lists its routes.",
    "malformed": "Look at what sends it, and at what stands between it and the service: it is not HTTP.",
    "unknown-token": "Send `Authorization: Bearer TOKEN`; `querycloak serve --new-token` makes one.",
    "forbidden": "Use a token whose [role](service.md#roles) allows it; in a browser, use its own page.",
    "wrong-method": "The header `Allow` of the answer names the methods that the address takes.",
    "too-slow": "Send smaller bodies, or raise `body_seconds` of the [service](service.md).",
    "other-type": "Send `application/x-ndjson` or `application/json`, packed by gzip or not at all.",
    "misdirected": "Use the address that the service printed; for other names, set it up with tokens.",
    "head-too-large": "Send fewer or shorter headers, and put data into the body.",
    "missing-extra": "Install the extra that the hint names. `querycloak doctor` lists them all.",
}


def tree() -> list[type[errors.QueryCloakError]]:
    """List every error class, in the order of the file."""
    found = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.QueryCloakError)
    ]
    return sorted(found, key=lambda kind: inspect.getsourcelines(kind)[1])


def section(kind: type[errors.QueryCloakError]) -> list[str]:
    """Write one error's section."""
    parents = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
    return [
        f"### {kind.code}",
        f"`{kind.__name__}` (a {parents}). {first_line(kind.__doc__)}",
        ADVICE[kind.code],
    ]


def page() -> str:
    """Write the page."""
    kinds = tree()
    rows = [
        (f"[`{k.code}`](#{k.code})", f"`{k.__name__}`", k.exit_status, k.http_status, first_line(k.__doc__))
        for k in kinds
    ]
    reasons = [(f"`{reason}`", meaning) for reason, meaning in formats.REASONS.items()]
    return put_together(
        "# Errors and bad rows",
        "An error says what is wrong and where, then gives a hint. It never shows a query, a user or any "
        "cell of a log: it names the row and the column. Rows are data rows, counted from 0.",
        "## Errors",
        table(("code", "class", "exit status", "HTTP status", "meaning"), rows),
        "HTTP statuses are what the [live service](service.md) answers with.",
        *(part for kind in kinds for part in section(kind)),
        "## Bad rows",
        "A bad row is never passed on. It is counted by reason and reported by row number. A log without a "
        "usable row is refused (`data`, exit status 3); `protect` also refuses one with more than half of "
        "its rows bad, unless `--allow-bad` is given. With `--strict` the first bad row is an error.",
        table(("reason", "meaning"), reasons),
        "A row with several faults counts under one reason only.",
    )
