"""Fills the `category` and `confidence` columns of a log, classifying each distinct query once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from querycloak.errors import DataError
from querycloak.registry import Registry
from querycloak.text.classify.result import GUESSED, UNKNOWN, Classified, Classifier
from querycloak.text.classify.terms import shared
from querycloak.text.taxonomy import Taxonomy, load

CLASSIFIERS = Registry(
    kind="classifier",
    group="querycloak.classifiers",
    built_in={
        "lexical": "querycloak.text.classify.lexical:Lexical",
        "http": "querycloak.text.classify.http:Remote",
    },
)

DEEPEST = 13  # levels of a path that a log carries
PIECE = 100_000  # distinct queries classified between two reports of progress

_ANSWER = ("_node", "_sure", "_how")
_AGAIN = {name: f"{name}_again" for name in _ANSWER}

Progress = Callable[[int, int], None]
"""Told how many distinct searches are classified, and how many there are."""


def make(name: str, taxonomy: Taxonomy | None = None, **settings: Any) -> Classifier:
    """Make the classifier of that name; plugins take a taxonomy too."""
    if name == "lexical" and not settings:
        return shared(taxonomy)
    made: Classifier = CLASSIFIERS.get(name)(taxonomy, **settings)
    return made


def classify_log(
    frame: pl.DataFrame,
    classifier: str | Classifier = "lexical",
    taxonomy: Taxonomy | None = None,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Add `category` and `confidence` to a log, in place of any it had; rows keep their order.

    A clicked address is consulted only where the query alone is not known.
    """
    if "query" not in frame.columns:
        raise DataError("the log has no column `query`, so it cannot be classified")
    chosen = make(classifier, taxonomy) if isinstance(classifier, str) else classifier
    tree = taxonomy or getattr(chosen, "taxonomy", None) or load()
    bare = frame.drop("category", "confidence", strict=False)
    asked = bare.select(_texts(bare)).filter(pl.col("_query").is_not_null())
    by_query = _ask(asked.select("_query").unique(maintain_order=True), chosen, progress)
    found = bare.with_columns(_texts(bare)).join(by_query, on="_query", how="left", maintain_order="left")
    if "_url" in found.columns and getattr(chosen, "reads_urls", True):
        found = _by_url(found, chosen)
    return _spelt_out(found, tree).drop("_query", "_url", *_ANSWER, strict=False)


def _texts(frame: pl.DataFrame) -> list[pl.Expr]:
    """Give the columns that are read, as text and under names of their own."""
    return [
        pl.col(name).cast(pl.String).alias(f"_{name}") for name in ("query", "url") if name in frame.columns
    ]


def _ask(asked: pl.DataFrame, chosen: Classifier, progress: Progress | None = None) -> pl.DataFrame:
    """Classify distinct searches piece by piece, and put the answers beside them."""
    pieces = []
    for piece in asked.iter_slices(PIECE):
        urls = piece["_url"].to_list() if "_url" in piece.columns else None
        pieces.append(_beside(piece, chosen.classify(piece["_query"].to_list(), urls)))
        if progress:
            progress(sum(each.height for each in pieces), asked.height)
    return pl.concat(pieces) if pieces else _beside(asked, Classified.nothing(0))


def _beside(asked: pl.DataFrame, answer: Classified) -> pl.DataFrame:
    return asked.with_columns(
        _node=pl.Series(answer.category, dtype=pl.Int64),
        _sure=pl.Series(answer.confidence, dtype=pl.Float64),
        _how=pl.Series(answer.how, dtype=pl.Int8),
    )


def _by_url(found: pl.DataFrame, chosen: Classifier) -> pl.DataFrame:
    """Ask again, with the clicked address, where the query alone was not known."""
    lost = pl.col("_how").is_in(GUESSED) & pl.col("_url").is_not_null()
    keys = ["_url"] if hasattr(chosen, "by_address") else ["_query", "_url"]
    asked = found.filter(lost).select(keys).unique(maintain_order=True)
    again = (_ask(asked, chosen) if len(keys) > 1 else _ask_addresses(asked, chosen)).rename(_AGAIN)
    joined = found.join(again, on=keys, how="left", maintain_order="left")
    better = lost & (pl.col(_AGAIN["_how"]) > 0)
    chosen_columns = [pl.when(better).then(new).otherwise(old).alias(old) for old, new in _AGAIN.items()]
    return joined.with_columns(chosen_columns).drop(_AGAIN.values())


def _ask_addresses(asked: pl.DataFrame, chosen: Any) -> pl.DataFrame:
    """Ask for addresses alone, which saves classifiers that can from reading the queries again."""
    pieces = [_beside(piece, chosen.by_address(piece["_url"])) for piece in asked.iter_slices(PIECE)]
    return pl.concat(pieces) if pieces else _beside(asked, Classified.nothing(0))


def _spelt_out(found: pl.DataFrame, tree: Taxonomy) -> pl.DataFrame:
    """Write nodes as paths of at most DEEPEST levels."""
    nodes = found["_node"].fill_null(UNKNOWN).to_numpy()
    distinct, where = np.unique(nodes, return_inverse=True)
    cut = [int(tree.at_level(node, DEEPEST)) if node >= 0 else UNKNOWN for node in distinct]
    paths = pl.Series([tree.path(node) if node >= 0 else None for node in cut], dtype=pl.String)
    return found.with_columns(category=paths.gather(where), confidence=pl.col("_sure").fill_null(0.0))
