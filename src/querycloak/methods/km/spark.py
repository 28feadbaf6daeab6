"""`km` on Spark: a window stands by itself, so that one worker can run the local method on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from querycloak.errors import Refused
from querycloak.methods.shared.sessions import DAY, MONDAY, NEVER, WEEK

if TYPE_CHECKING:
    from querycloak.methods.km import Km


def window(settings: Km.Settings) -> str:
    """Return the number of a row's window as an expression of SQL over `time`, in microseconds.

    It is that of `sessions.calendar`. Raise Refused if whole histories are to be protected.
    """
    if settings.window == "none":
        raise Refused(
            "on Spark `km` protects windows of time, and none was chosen",
            hint="use `-s window=week` or `window=day`, or run it on one machine, without `--engine spark`",
        )
    span, start = (DAY, 0) if settings.window == "day" else (WEEK, MONDAY)
    moment = f"(time + {start}L)"
    return f"coalesce(({moment} - pmod({moment}, {span}L)) div {span}L, {NEVER}L)"
