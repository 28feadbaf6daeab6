"""Time of `protect` with `cap`, with reading and audit."""

from __future__ import annotations

import time

from querycloak import generate, protect


def measure(users: int = 2000) -> dict[str, float]:
    """Protect a synthetic log and return records and CPU seconds."""
    log = generate(users=users, seed=7)
    start = time.process_time()
    release = protect(log, "cap", n=10)
    return {"records": len(log), "released": len(release.log), "seconds": time.process_time() - start}


if __name__ == "__main__":
    print(measure())
