"""Releases that the tests of the stronger attacks share, made by the naive twins; each drawn once."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl

from querycloak.attacks.base import AttackerView, Attribution
from querycloak.attacks.finding import Finding
from querycloak.attacks.run import attack
from querycloak.registry import ATTACKS
from tests.reference.naive_swap import NaiveRelease, release
from tests.support import logs

K = 10


@cache
def log(users: int = 600, seed: int = 11) -> pl.DataFrame:
    """A made-up log; its seed is none that any attack was tuned on."""
    return logs.made_up(users, seed=seed, categories=True).frame


@cache
def made(method: str, k: int = K, level: int = 1) -> NaiveRelease:
    """The made-up log, protected by a naive twin."""
    return release(log(), method, k=k, level=level)


@cache
def found(attacking: str, method: str, k: int = K, level: int = 1) -> Finding:
    """What an attack reaches on a naive release."""
    case = made(method, k, level)
    return attack(case.release, case.certificate, case.original, case.truth, [attacking])[0]


def guess(
    attacking: str, frame: pl.DataFrame, certificate: Any, knowledge: Any = None, **settings: Any
) -> Any:
    """Run an attack on a table, with no runner in between."""
    kind = ATTACKS.get(attacking)
    return kind(kind.Settings(**settings)).guess(AttackerView(frame, certificate, knowledge or {}))


def hits(guesses: Attribution, case: NaiveRelease) -> pl.Series:
    """Say which rows were guessed right."""
    return (guesses.guess == case.author).fill_null(False)


def table(users: list[str | None], queries: list[str | None], **columns: Any) -> pl.DataFrame:
    """A release of a few rows."""
    made_up = {"user": pl.Series(users, dtype=pl.String), "query": pl.Series(queries, dtype=pl.String)}
    return pl.DataFrame(made_up | columns).with_row_index("released_row").cast({"released_row": pl.Int64})


SWAP = {"methods": [{"method": "swap", "settings": {"k": 2, "level": 1}}]}
COHORT = {"methods": [{"method": "cohort", "settings": {"k": 2}}]}
