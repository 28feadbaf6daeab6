"""Time of `protect` with `cap`, with reading and audit."""

from __future__ import annotations

from benchmarks.common import timed
from querycloak import generate, protect


def measure(scale: float) -> dict[str, float]:
    """Protect a synthetic log and return records and seconds; scale 1 has 2,000 users."""
    log = generate(users=int(2000 * scale), seed=7)
    release, seconds = timed(lambda: protect(log, "cap", n=10))
    return {"records": len(log), "released": len(release.log)} | seconds
