"""Settings that every method which reads what queries mean, or has an ε, declares in the same words."""

from __future__ import annotations

from typing import Any

from querycloak.settings import setting


def epsilon_setting(default: float) -> Any:
    """Declare `epsilon`."""
    return setting(
        default, kind=float, at_least=0.001, at_most=1000, help="what a history may spend; less protects more"
    )


def budget_setting() -> Any:
    """Declare `budget`."""
    return setting(
        0.0,
        kind=float,
        at_least=0,
        at_most=1e6,
        help="what a person may spend in all releases of a source; 0: no limit",
    )


def topics_setting() -> Any:
    """Declare `topics`."""
    return setting(
        "categories",
        kind=str,
        help="`categories`, `paper-4`, `paper-19`, or concepts such as `disease.n.01,sport.n.01`",
    )


def root_setting() -> Any:
    """Declare `root`."""
    return setting("", kind=str, help="only concepts at and below this one, as `abstraction.n.06`")


def taxonomy_setting() -> Any:
    """Declare `taxonomy`."""
    return setting("", kind=str, help="a taxonomy file instead of WordNet")


def mapper_setting() -> Any:
    """Declare `mapper`."""
    return setting(
        "lexical",
        kind=str,
        choices=("lexical", "linguistic"),
        help="find phrases by words, or by a parser (extra `nlp`)",
    )
