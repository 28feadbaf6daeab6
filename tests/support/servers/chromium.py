"""The installed Chromium for Playwright, kept from calling home."""

from __future__ import annotations

from typing import Any

from querycloak.errors import UsageError
from tests.support import programs

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
    found = programs.chromium()
    if found is None:
        raise UsageError("Chromium is not on this machine", hint=programs.how_to_install("Chromium"))
    return {"executable_path": str(found), "args": list(_ARGUMENTS)}
