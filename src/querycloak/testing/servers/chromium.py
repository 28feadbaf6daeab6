"""The installed Chromium for Playwright, kept from calling home."""

from __future__ import annotations

from typing import Any

from querycloak import environment
from querycloak.errors import UsageError

_ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",  # it cannot be set up by root, or in most containers; tests open only pages of our own
    # Names other than this machine's are not found: what a page tries to load from elsewhere fails at once.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
)


def launch_arguments() -> dict[str, Any]:
    """Give the arguments of `playwright.chromium.launch`."""
    found = environment.chromium()
    if found is None:
        raise UsageError("Chromium is not on this machine", hint=environment.how_to_get("Chromium"))
    return {"executable_path": str(found), "args": list(_ARGUMENTS)}
