"""`settings.md`: every setting of every method in one table, and the environment."""

from __future__ import annotations

from pages.markdown import default, table
from pages.markdown import page as put_together
from querycloak.api import describe_methods
from querycloak.registry import METHODS

ENVIRONMENT = (
    ("XDG_STATE_HOME", "where the ledger lies when `--source` is given without `--state`"),
    ("CREDENTIALS_DIRECTORY", "set by systemd: where the [live service](service.md) finds its credentials"),
    ("QUERYCLOAK_DEBUG", "when set, an unforeseen error shows its traceback, which may hold data"),
    ("TMPDIR", "the folder for temporary files, which hold records; else `/var/tmp`"),
    ("QUERYCLOAK_SPARK_LOG", "a level such as `error`: shows what Spark itself says, which may hold data"),
    ("NO_COLOR", "when set, progress has no colours"),
    ("QUERYCLOAK_KAFKA_JARS", "where the jars of the tests' Kafka broker lie"),
    ("XDG_CACHE_HOME", "where those jars lie otherwise, under `querycloak/kafka`; `~/.cache` unless set"),
    ("JAVA_HOME", "the Java that runs that broker; unless set, the one on the path"),
)

HOW = """\
On the command line: `-s NAME=VALUE`, or `-s METHOD.NAME=VALUE` where two methods of a release have
the same setting. In Python: `qc.protect(log, "frequent-only", k=5)`, or
`**{"rules.labels": "fresh"}` for the longer form. `yes`, `true`, `on` and `1` mean yes; `no`,
`false`, `off` and `0` mean no. A value out of bounds is refused before anything is read
(error [`parameter`](errors.md#parameter)); an unknown name is answered with the nearest one."""


def page() -> str:
    """Write the page."""
    rows = [
        (
            f"[`{m['name']}`](methods.md#{m['name']})",
            f"`{s['name']}`",
            default(s["default"]),
            s["allowed"],
            s["help"],
        )
        for m in describe_methods()
        if m["name"] in METHODS.built_in
        for s in m["settings"]
    ]
    return put_together(
        "# Settings",
        HOW,
        table(("method", "setting", "default", "allowed", "meaning"), rows),
        "## Environment",
        table(("variable", "meaning"), [(f"`{name}`", meaning) for name, meaning in ENVIRONMENT]),
    )
