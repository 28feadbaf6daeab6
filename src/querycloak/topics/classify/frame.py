"""Fills the `category` and `confidence` columns of a log, classifying each distinct query once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from querycloak.errors import DataError
from querycloak.registry import Registry
from querycloak.topics.classify.result import HOW, UNKNOWN, Classified, Classifier
from querycloak.topics.classify.terms import shared
from querycloak.topics.taxonomy import Taxonomy, load

CLASSIFIERS = Registry(
    kind="classifier",
    group="querycloak.classifiers",
    built_in={
        "lexical": "querycloak.topics.classify.lexical:Lexical",
        "linguistic": "querycloak.topics.classify.linguistic:Linguistic",
        "http": "querycloak.topics.classify.http:Remote",
    },
)

DEEPEST = 13  # levels of a path that a log carries
PIECE = 100_000  # distinct queries classified between two reports of progress

_ANSWER = ("_node", "_sure", "_how")
_WEAK = [HOW.index(name) for name in ("none", "embedding", "letters")]

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
    """Ask again where the query alone was not known, with the address most often clicked for it.

    One address decides for all records of a query, so that the same query has the same category.
    """
    lost = pl.col("_how").is_in(_WEAK) & pl.col("_url").is_not_null()
    clicks = found.filter(lost).group_by("_query", "_url").agg(times=pl.len())
    most = clicks.sort("times", "_url", descending=[True, False]).unique("_query", keep="first")
    again = _ask(most.select("_query", "_url").sort("_query"), chosen).drop("_url")
    new = {name: f"{name}_again" for name in _ANSWER}
    joined = found.join(again.rename(new), on="_query", how="left", maintain_order="left")
    return joined.with_columns(pl.coalesce(f"{name}_again", name).alias(name) for name in _ANSWER).drop(
        new.values()
    )


def _spelt_out(found: pl.DataFrame, tree: Taxonomy) -> pl.DataFrame:
    """Write nodes as paths of at most DEEPEST levels."""
    nodes = found["_node"].fill_null(UNKNOWN).to_numpy()
    distinct, where = np.unique(nodes, return_inverse=True)
    cut = [int(tree.at_level(node, DEEPEST)) if node >= 0 else UNKNOWN for node in distinct]
    paths = pl.Series([tree.path(node) if node >= 0 else None for node in cut], dtype=pl.String)
    return found.with_columns(category=paths.gather(where), confidence=pl.col("_sure").fill_null(0.0))
