"""Made-up logs, each made once per process: nothing changes a log or its frame, so tests share them."""

from __future__ import annotations

from functools import cache
from typing import Any

import querycloak as qc


def made_up(users: int, seed: int = 0, categories: bool = False, **options: Any) -> qc.Log:
    """Return `qc.generate(...)`, made once per process."""
    return _made(users, seed, categories, tuple(sorted(options.items())))


@cache
def _made(users: int, seed: int, categories: bool, options: tuple[tuple[str, Any], ...]) -> qc.Log:
    return qc.generate(users, seed, categories=categories, **dict(options))
