"""`service.md`: every setting, route and role of the live service, and the limits it holds requests to."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from pages.markdown import default, first_line, table
from pages.markdown import page as put_together
from querycloak.service.settings import PREFIX, RELOADABLE, ServiceSettings

if TYPE_CHECKING:
    from fastapi.routing import APIRoute

HOW = f"""\
`querycloak serve` runs without any of these. Each can stand in a TOML file (`--config FILE`), in the
environment (`{PREFIX}PORT=8485`) or on the command line (`-o port=8485`; some have a flag of their own,
see [`serve`](cli.md#querycloak-serve)). Flags win over the environment, which wins over the file. An
unknown name is refused with the nearest one, and all wrong values are reported together. In the file,
`methods = ["rules", "cohort"]` names the methods and the table `[settings]` holds theirs.

Keys, tokens and passwords are never values of a flag, where every user of the machine can read them:
name a file, or put an address with a password into the configuration file (mode 0600) or the environment.

On SIGHUP a running service reads its configuration, tokens and certificate again. It takes over the
settings marked below; for any other that has changed, a line in its log says that it needs a restart."""

SPOKEN = """\
The service speaks HTTP/1.1, with TLS 1.2 and 1.3 when it has a certificate. `/openapi.json` describes all
routes to programs; like `/healthz` and `/readyz` it needs no token, and holds nothing secret. Errors are
JSON: `{"error": {"code": …, "message": …, "hint": …}}`, with the codes of [errors](errors.md). Answers of
429 and 503 carry `Retry-After`. Tokens stand in the header `Authorization: Bearer TOKEN`, never in an
address; ids of people and labels stand in bodies, never in addresses."""

BROWSERS = """\
Without tokens, everybody who reaches the service may do everything. So then it listens on loopback only,
answers to the names `127.0.0.1`, `localhost` and `[::1]` only (421 otherwise), and refuses changes that a
web page from elsewhere asks for (403)."""


def settings() -> str:
    """List all settings."""
    rows = [
        (
            f"`{one['name']}`",
            default(one["default"]),
            one["allowed"],
            one["help"],
            "yes" if one["name"] in RELOADABLE else "",
        )
        for one in ServiceSettings.declarations()
    ]
    return table(("setting", "default", "allowed", "meaning", "on SIGHUP"), rows)


def right(route: APIRoute) -> str:
    """Say which right a route asks for."""
    calls = [one.call for one in route.dependant.dependencies if inspect.isfunction(one.call)]
    acts = [inspect.getclosurevars(call).nonlocals.get("right") for call in calls]
    return next((f"`{act}`" for act in acts if act), "none")


def routes() -> str:
    """List all routes that the OpenAPI description holds."""
    from querycloak.service.web.routes import router

    rows = [
        (f"`{' '.join(route.methods)} {route.path}`", right(route), first_line(route.endpoint.__doc__))
        for route in router.routes
    ]
    return table(("route", "right", "what it does"), rows)


def roles() -> str:
    """List all roles."""
    from querycloak.service.web.auth import ROLES

    rows = [(f"`{role}`", ", ".join(f"`{act}`" for act in sorted(acts))) for role, acts in ROLES.items()]
    return table(("role", "rights"), rows)


def limits() -> str:
    """List the limits that are not settings."""
    from querycloak.service.ingest import parse
    from querycloak.service.web import bodies, connection_limits, middleware

    rows = [
        ("address of a request", f"{connection_limits.ADDRESS_BYTES:,} bytes", "431"),
        ("all headers together", f"{connection_limits.HEAD_BYTES:,} bytes", "431"),
        ("number of headers", connection_limits.HEADERS, "431"),
        ("`Idempotency-Key`", f"{middleware.KEY_BYTES} bytes", "422"),
        ("a body that names a user or a label", f"{bodies.SMALL:,} bytes", "413"),
        ("bodies of records in progress, together", f"{bodies.TOTAL_BYTES:,} bytes", "429"),
        ("skipped rows that an answer lists for each reason", parse.LISTED, "`skipped_total` counts all"),
    ]
    return table(("what", "at most", "else"), rows)


def page() -> str:
    """Write the page."""
    return put_together(
        "# The live service",
        "How to run it: [serve](../how-to/serve.md). What it promises about crashes: "
        "[durability](../explanation/durability.md).",
        "## Settings",
        HOW,
        settings(),
        "## Routes",
        SPOKEN,
        routes(),
        "## Roles",
        roles(),
        BROWSERS,
        "## Limits",
        "Beside `body_bytes`, `body_seconds`, `head_seconds`, `connections`, `rate` and `backlog`:",
        limits(),
    )
