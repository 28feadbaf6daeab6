"""Classification as a function over columns: a worker loads the classifier once, and asks it once a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from querycloak import text
from querycloak.errors import DataError
from querycloak.spark.arrow import batches, frames
from querycloak.spark.session import check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from querycloak.text.taxonomy import Taxonomy


def classify(log: DataFrame, classifier: str = "lexical", taxonomy: str | None = None) -> DataFrame:
    """Give each record a category, a path from general to specific, and a confidence: a table or a stream.

    The answer is that of `querycloak.classify`, row for row. `taxonomy` is read by each worker: so it must
    lie where all of them find it.
    """
    check()
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType

    if "query" not in log.columns:
        raise DataError("the DataFrame has no column `query`, so it cannot be classified")
    _classifier(classifier, taxonomy)  # a wrong name is told here, not by a worker
    others = [field for field in log.schema.fields if field.name not in ("category", "confidence")]
    answer = [StructField("category", StringType()), StructField("confidence", DoubleType())]
    schema = StructType([*others, *answer])
    asked = log.select(*(f"`{field.name}`" for field in others))
    return asked.mapInArrow(partial(_classified, classifier, taxonomy, schema), schema)


@cache
def _classifier(name: str, taxonomy: str | None) -> tuple[Any, Taxonomy | None]:
    """Load a classifier; a worker does this once."""
    from querycloak.text.classify import make

    tree = text.load_taxonomy(taxonomy) if taxonomy else None
    return text.Remote(tree, url=name) if "://" in name else make(name, tree), tree


def _classified(name: str, taxonomy: str | None, schema: StructType, rows: Iterable[Any]) -> Iterator[Any]:
    """Answer piece by piece, each distinct query of a piece once."""
    classifier, tree = _classifier(name, taxonomy)
    for frame in frames(rows):
        yield from batches(text.classify_log(frame, classifier=classifier, taxonomy=tree), schema)
