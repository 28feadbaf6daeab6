"""A log as a DataFrame: its columns, row numbers, bad rows by reason, and categories of its queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from querycloak import text
from querycloak.errors import DataError, UsageError
from querycloak.formats import ReadOptions, validation
from querycloak.formats.columns import check_options, map_columns
from querycloak.log import CANONICAL
from querycloak.spark.transfer import batches, frames
from querycloak.text.taxonomy import Taxonomy

_TEXTS: Final = ("user", "query", "url", "category")
_WHERE: Final = "the DataFrame"
#: The reason why a row is bad; beside `row` the only column that `canonical` adds.
_BAD: Final = "_bad"


def canonical(log: DataFrame, mapping: Mapping[str, str], keep: Sequence[str]) -> DataFrame:
    """Return the wanted columns under their canonical names: texts, times in microseconds, `row`, and `_bad`.

    `row` must be a column of distinct whole numbers, or the log must come directly from one Parquet file,
    whose rows are numbered. All draws depend on it, so it must not change when Spark computes a part again.
    """
    names = [name for name in log.columns if name != "row"]
    options = ReadOptions(mapping=mapping, keep=keep, where=_WHERE)
    check_options(options)
    places = map_columns(names, options).sources
    check_names(places, [names[place] for place in places.values()], names)
    _check_own([name for name in places if name not in CANONICAL], log.isStreaming)
    kinds = dict(log.dtypes)
    known = {name: _Column(name, names[place], kinds[names[place]]) for name, place in places.items()}
    values = {name: one.value() for name, one in known.items()}
    return log.select(
        _numbers(log).alias("row"),
        *(value.alias(name) for name, value in values.items()),
        _fault(known, values, F.lit(None).cast("string")).alias(_BAD),
    )


def check_names(wanted: Iterable[str], sources: Iterable[str] = (), columns: Iterable[str] = ()) -> None:
    """Refuse columns that differ only in case: Spark takes them for one. `sources` are in `columns`."""
    used = {name.lower() for name in sources}
    for some in (["row", *wanted], [name for name in columns if name.lower() in used]):
        seen: dict[str, str] = {}
        for name in some:
            if (other := seen.setdefault(name.lower(), name)) != name:
                raise UsageError(
                    f"the columns `{other}` and `{name}` differ only in case, and Spark takes them for one",
                    hint="rename one of them",
                )


def _check_own(kept: Iterable[str], streaming: bool) -> None:
    """Refuse to keep columns with the name of an internal one; in a stream those begin with `_`."""
    for name in kept:
        if name.lower() == _BAD or (streaming and name.startswith("_")):
            raise UsageError(
                f"a column called `{name}` cannot be kept on Spark: the engine has such names itself",
                hint="rename it first, for example with `withColumnRenamed`",
            )


def neutral(log: DataFrame) -> tuple[DataFrame, dict[str, str]]:
    """Rename kept columns so that no name clashes; return the original names too."""
    kept = [name for name in log.columns if name != "row" and name not in CANONICAL]
    inside = {name: f"kept_{number}" for number, name in enumerate(kept)}
    renamed = log.toDF(*(inside.get(name, name) for name in log.columns))
    return renamed, {new: given for given, new in inside.items()}


@dataclass(frozen=True)
class _Column:
    """A wanted column: its name here, its name in the DataFrame, and Spark's name of its type."""

    name: str
    source: str
    kind: str

    @property
    def given(self) -> Column:
        return F.col(self.quoted)

    @property
    def quoted(self) -> str:
        """Its name in the DataFrame as SQL spells it."""
        return "`" + self.source.replace("`", "``") + "`"

    def value(self) -> Column:
        """Return the column in the type that a log has."""
        if self.name in _TEXTS:
            text = F.try_validate_utf8(self.given.cast("string"))
            return F.when(text != "", text)
        if self.name == "rank":
            return self._rank()
        if self.name == "time":
            return self._time()
        return F.try_validate_utf8(self.given) if self.kind == "string" else self.given

    def is_text(self) -> bool:
        """Whether it contains texts, whose bytes can be invalid."""
        return self.name in _TEXTS or self.kind == "string"

    def _rank(self) -> Column:
        if self.kind in ("float", "double"):
            return F.when(self.given == F.floor(self.given), self.given.try_cast("bigint"))
        text = F.regexp_replace(self.given.cast("string"), r"\.0$", "")
        return text.try_cast("bigint")

    def _time(self) -> Column:
        if self.kind == "timestamp":
            return F.unix_micros(self.given)
        if self.kind in ("timestamp_ntz", "date"):  # of no zone: taken for UTC, whatever the session's is
            local = f"CAST({self.quoted} AS timestamp_ntz)"
            return F.expr(f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01', {local})")
        raise DataError(
            f"the column `{self.source}` of the DataFrame is no time, but {self.kind.partition('<')[0]}",
            hint="make it a timestamp first, for example with `to_timestamp`",
        )


def _numbers(log: DataFrame) -> Column:
    if "row" in log.columns:
        if dict(log.dtypes)["row"] not in ("bigint", "int", "smallint", "tinyint"):
            raise DataError("the column `row` of the DataFrame holds no whole numbers")
        return F.col("row").cast("bigint")
    try:
        one_file = log.select("_metadata.row_index").schema is not None and len(log.inputFiles()) == 1
    except PySparkException:
        one_file = False
    if one_file:
        return F.col("_metadata.row_index").cast("bigint")
    raise DataError(
        "the DataFrame has no column `row`, and its rows have no numbers of their own",
        hint="add one number for each row and write it down once: one that Spark makes up anew each time "
        "would change the release",
    )


def _fault(known: Mapping[str, _Column], values: Mapping[str, Column], nothing: Column) -> Column:
    """Return the reason to exclude a row, or null: the same as for files, in the same order."""
    given = {name: one.given.cast("string") for name, one in known.items() if one.is_text()}
    texts = [values[name] for name in given]
    tests: list[tuple[str, Column]] = [
        (validation.NOT_UTF8, ~F.is_valid_utf8(text)) for text in given.values()
    ]
    tests += [(validation.NUL_BYTE, text.contains("\0")) for text in texts]
    tests.append((validation.QUERY_TOO_LONG, F.octet_length(values["query"]) > validation.QUERY_LIMIT))
    tests += [(validation.FIELD_TOO_LONG, F.octet_length(text) > validation.FIELD_LIMIT) for text in texts]
    tests += [(validation.NO_USER, values["user"].isNull()), (validation.NO_QUERY, values["query"].isNull())]
    if "time" in values:
        tests.append((validation.NO_TIME, values["time"].isNull()))
    if "rank" in values:
        filled = known["rank"].given.isNotNull() & (known["rank"].given.cast("string") != "")
        tests.append((validation.UNREADABLE_RANK, values["rank"].isNull() & filled))
    for reason, test in reversed(tests):
        nothing = F.when(test, F.lit(reason)).otherwise(nothing)
    return nothing


def check_numbers(log: DataFrame) -> None:
    """Refuse rows of the same number: what is drawn for one would be drawn for the other."""
    doubtful = F.col("row").isNull() | (F.col("count") > 1)
    if log.groupBy("row").count().filter(doubtful).limit(1).count():
        raise DataError(
            "the DataFrame has rows without a number, or two with the same",
            hint="number all rows anew: after `explode` or a join several rows have the number of one",
        )


def left_out(log: DataFrame) -> dict[str, int]:
    """Count bad rows by reason, and the good ones under the empty reason."""
    counted = log.groupBy(F.coalesce(_BAD, F.lit("")).alias("reason")).count().collect()
    return {str(row["reason"]): int(row["count"]) for row in counted}


def of_log(names: Sequence[str]) -> tuple[str, ...]:
    """Order the columns of a log: canonical ones, then the kept ones."""
    own = [name for name in names if name not in ("row", _BAD)]
    return (*(n for n in CANONICAL if n in own), *(n for n in own if n not in CANONICAL))


def classify(log: DataFrame, classifier: str = "lexical", taxonomy: str | None = None) -> DataFrame:
    """Add a category (a path from general to specific) and a confidence to each record of a table or stream.

    The result is that of `querycloak.classify`, row for row. Each worker reads `taxonomy`, so all of them
    must have access to it.
    """
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
