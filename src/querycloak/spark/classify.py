"""Classification of a DataFrame: each worker loads the classifier once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from querycloak import text
from querycloak.errors import DataError
from querycloak.spark.session import check
from querycloak.spark.transfer import batches, frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from querycloak.text.taxonomy import Taxonomy


def classify(log: DataFrame, classifier: str = "lexical", taxonomy: str | None = None) -> DataFrame:
    """Add a category (a path from general to specific) and a confidence to each record of a table or stream.

    The result is that of `querycloak.classify`, row for row. Each worker reads `taxonomy`, so all of them
    must have access to it.
    """
    check()
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType

    if "query" not in log.columns:
        raise DataError("the DataFrame has no column `query`, so it cannot be classified")
    _classifier(classifier, taxonomy)  # an unknown name is reported here, not by a worker
    others = [field for field in log.schema.fields if field.name not in ("category", "confidence")]
    answer = [StructField("category", StringType()), StructField("confidence", DoubleType())]
    schema = StructType([*others, *answer])
    asked = log.select(*(f"`{field.name}`" for field in others))
    return asked.mapInArrow(partial(_classified, classifier, taxonomy, schema), schema)


@cache
def _classifier(name: str, taxonomy: str | None) -> tuple[Any, Taxonomy | None]:
    """Load a classifier; a worker does this once."""
    tree = text.load_taxonomy(taxonomy) if taxonomy else None
    return text.RemoteClassifier(tree, url=name) if "://" in name else text.make(name, tree), tree


def _classified(name: str, taxonomy: str | None, schema: StructType, rows: Iterable[Any]) -> Iterator[Any]:
    """Classify piece by piece, each distinct query of a piece once."""
    classifier, tree = _classifier(name, taxonomy)
    for frame in frames(rows):
        yield from batches(text.classify_log(frame, classifier=classifier, taxonomy=tree), schema)
