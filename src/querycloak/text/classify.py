"""Categories for a log: classifiers by name, and the columns `category` and `confidence`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np
import polars as pl

from querycloak.errors import DataError, ParameterError
from querycloak.registry import Registry
from querycloak.text.classifier import WEAK_EVIDENCE, Classification, LexicalClassifier
from querycloak.text.senses import locked_cache
from querycloak.text.taxonomy import Taxonomy


class Classifier(Protocol):
    """A classifier of queries; plug-ins are called with a taxonomy or None, and the settings by name."""

    taxonomy: Taxonomy
    #: Whether clicked URLs can help.
    reads_urls: bool

    def classify(self, queries: pl.Series) -> Classification:
        """Return an answer for each query, which depends on that query alone."""
        ...

    def classify_urls(self, urls: pl.Series) -> Classification:
        """Return an answer for each URL; called only if `reads_urls`."""
        ...


CLASSIFIERS: Final = Registry(
    kind="classifier",
    group="querycloak.classifiers",
    built_in={
        "lexical": "querycloak.text.classifier:LexicalClassifier",
        "http": "querycloak.text.remote_classifier:RemoteClassifier",
    },
)

DEEPEST: Final = 13  # levels of a path in a log
PIECE: Final = 100_000  # distinct queries that are classified between two reports of progress

#: Called with the number of distinct queries that are classified, and of all.
Progress = Callable[[int, int], None]


@locked_cache(maxsize=4)
def default_classifier(taxonomy: Taxonomy | None = None) -> LexicalClassifier:
    """Return the lexical classifier of a taxonomy, built once."""
    return LexicalClassifier(taxonomy)


def make(name: str, taxonomy: Taxonomy | None = None, **settings: Any) -> Classifier:
    """Return the classifier with this name."""
    if name == "lexical" and not settings:
        return default_classifier(taxonomy)
    made: Classifier = CLASSIFIERS.get(name)(taxonomy, **settings)
    return made


def categories(term: str, n: int, taxonomy: Taxonomy | None = None) -> list[str]:
    """Return the n best category paths of one term, the best first; fewer if there are no more."""
    if n < 1:
        raise ParameterError("`n` must be at least 1")
    classifier = default_classifier(taxonomy)
    best = int(classifier.classify(pl.Series([term], dtype=pl.String)).category[0])
    nodes, scores = classifier.scores(term)
    distinct, where = np.unique(nodes, return_inverse=True)
    total = np.bincount(where, scores, distinct.size)
    ranked = distinct[np.lexsort((distinct, -total))].tolist()
    ordered = dict.fromkeys([best, *ranked] if best >= 0 else ranked)
    return [classifier.taxonomy.path(node) for node in ordered][:n]


def classify_log(
    frame: pl.DataFrame,
    classifier: str | Classifier = "lexical",
    taxonomy: Taxonomy | None = None,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Return a log with `category` and `confidence`, in place of any that it had; rows keep their order.

    Each distinct query is classified once. A clicked URL is read only where the query alone has no known
    phrase. Raise ParameterError if a classifier is given together with another taxonomy than its own.
    """
    if "query" not in frame.columns:
        raise DataError("the log has no column `query`, so it cannot be classified")
    chosen = make(classifier, taxonomy) if isinstance(classifier, str) else classifier
    if taxonomy is not None and chosen.taxonomy is not taxonomy:
        raise ParameterError("the classifier has another taxonomy than the one that is given")
    bare = frame.drop("category", "confidence", strict=False)
    found = _by_distinct(bare["query"], chosen.classify, progress)
    if "url" in bare.columns and chosen.reads_urls:
        asked = bare.select(pl.col("query", "url").is_not_null()).select(pl.all_horizontal("query", "url"))
        weak = np.flatnonzero(np.isin(found.evidence, WEAK_EVIDENCE) & asked.to_series().to_numpy())
        second = _by_distinct(bare["url"].gather(weak), chosen.classify_urls)
        better = second.evidence > 0  # the clicked URL has a known phrase
        found.category[weak[better]] = second.category[better]
        found.confidence[weak[better]] = second.confidence[better]
    distinct, where = np.unique(found.category, return_inverse=True)
    tree = chosen.taxonomy
    paths = [tree.path(int(tree.at_level(node, DEEPEST))) if node >= 0 else None for node in distinct]
    return bare.with_columns(
        category=pl.Series(paths, dtype=pl.String).gather(where),
        confidence=pl.Series(found.confidence, dtype=pl.Float64),
    )


def _by_distinct(
    column: pl.Series, classify: Callable[[pl.Series], Classification], progress: Progress | None = None
) -> Classification:
    """Return the answer for each text, where each distinct one is classified once; null has none."""
    texts = column.cast(pl.String).to_frame("text")
    asked = texts.drop_nulls().unique(maintain_order=True)
    pieces, done = [Classification.empty(1)], 0  # the first is for null
    for piece in asked.iter_slices(PIECE):
        pieces.append(classify(piece.to_series()))
        done += piece.height
        if progress:
            progress(done, asked.height)
    numbers = asked.with_row_index("number", offset=1)
    joined = texts.join(numbers, on="text", how="left", maintain_order="left")
    return Classification.concat(pieces).take(joined["number"].fill_null(0).to_numpy())
