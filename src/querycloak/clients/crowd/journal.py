"""What a peer says about itself: JSON lines with counts on standard error; no query, no name, no address."""

from __future__ import annotations

import json
import sys


def tell(event: str, **numbers: int | float | str) -> None:
    """Write one line; texts are words of this program only."""
    print(json.dumps({"event": event, **numbers}), file=sys.stderr, flush=True)
