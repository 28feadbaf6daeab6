"""Categories for a log: classifiers by name, and the columns `category` and `confidence`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import Any, Final, Protocol

import numpy as np
import polars as pl

from querycloak.errors import DataError, ParameterError
from querycloak.registry import Registry
from querycloak.text.classifier import WEAK_EVIDENCE, Classification, LexicalClassifier
from querycloak.text.lexicon import UNKNOWN
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
_ANSWER: Final = ("_node", "_confidence", "_evidence")
_SECOND: Final = {name: f"{name}_second" for name in _ANSWER}
_making = Lock()

#: Called with the number of distinct queries that are classified, and of all.
Progress = Callable[[int, int], None]


def default_classifier(taxonomy: Taxonomy | None = None) -> LexicalClassifier:
    """Return the lexical classifier of a taxonomy, built once."""
    with _making:
        return _lexical(taxonomy)


_lexical = lru_cache(maxsize=4)(LexicalClassifier)


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
    asked = (
        bare.select(pl.col("query").cast(pl.String).alias("_query")).drop_nulls().unique(maintain_order=True)
    )
    by_query = _answers(asked, chosen.classify, progress)
    found = bare.with_columns(
        pl.col(name).cast(pl.String).alias(f"_{name}") for name in ("query", "url") if name in bare.columns
    ).join(by_query, on="_query", how="left", maintain_order="left")
    if "_url" in found.columns and chosen.reads_urls:
        found = _by_url(found, chosen)
    return _with_paths(found, chosen.taxonomy).drop("_query", "_url", *_ANSWER, strict=False)


def _answers(
    asked: pl.DataFrame, classify: Callable[[pl.Series], Classification], progress: Progress | None = None
) -> pl.DataFrame:
    """Return a column of distinct texts with the answers beside it."""
    pieces = []
    for piece in asked.iter_slices(PIECE):
        pieces.append(_beside(piece, classify(piece.to_series())))
        if progress:
            progress(sum(each.height for each in pieces), asked.height)
    return pl.concat(pieces) if pieces else _beside(asked, Classification.empty(0))


def _beside(asked: pl.DataFrame, answer: Classification) -> pl.DataFrame:
    return asked.with_columns(
        _node=pl.Series(answer.category, dtype=pl.Int64),
        _confidence=pl.Series(answer.confidence, dtype=pl.Float64),
        _evidence=pl.Series(answer.evidence, dtype=pl.Int8),
    )


def _by_url(found: pl.DataFrame, chosen: Classifier) -> pl.DataFrame:
    """Replace answers without a known phrase by those of the clicked URL, where it has one."""
    weak = pl.col("_evidence").is_in([int(kind) for kind in WEAK_EVIDENCE]) & pl.col("_url").is_not_null()
    urls = found.filter(weak).select("_url").unique(maintain_order=True)
    second = _answers(urls, chosen.classify_urls).rename(_SECOND)
    joined = found.join(second, on="_url", how="left", maintain_order="left")
    better = weak & (pl.col(_SECOND["_evidence"]) > 0)
    columns = [pl.when(better).then(new).otherwise(old).alias(old) for old, new in _SECOND.items()]
    return joined.with_columns(columns).drop(_SECOND.values())


def _with_paths(found: pl.DataFrame, tree: Taxonomy) -> pl.DataFrame:
    """Return nodes as paths of at most DEEPEST levels."""
    nodes = found["_node"].fill_null(UNKNOWN).to_numpy()
    distinct, where = np.unique(nodes, return_inverse=True)
    cut = [int(tree.at_level(node, DEEPEST)) if node >= 0 else UNKNOWN for node in distinct]
    paths = pl.Series([tree.path(node) if node >= 0 else None for node in cut], dtype=pl.String)
    return found.with_columns(category=paths.gather(where), confidence=pl.col("_confidence").fill_null(0.0))
