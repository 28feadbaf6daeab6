"""A log as a DataFrame: which columns it must have, which rows are bad, and what each is counted under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from querycloak.errors import DataError
from querycloak.io import reasons
from querycloak.io.columns import check_options, plan
from querycloak.io.table import Options
from querycloak.log import CANONICAL

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TEXTS: Final = ("user", "query", "url", "category")
_WHERE: Final = "the DataFrame"


def canonical(log: DataFrame, mapping: Mapping[str, str], keep: Sequence[str]) -> DataFrame:
    """Give the wanted columns under their own names: texts, times in microseconds, `row`, and `_bad`.

    `row` must be a column of different whole numbers, or the log must come straight from one Parquet file:
    its rows are numbered. Every draw goes by it; so it may not change when Spark computes a part again.
    """
    from pyspark.sql import functions as F

    names = [name for name in log.columns if name != "row"]
    options = Options(mapping=mapping, keep=keep)
    check_options(options)
    places = plan(names, options, _WHERE).sources
    kinds = dict(log.dtypes)
    known = {name: _Column(name, names[place], kinds[names[place]]) for name, place in places.items()}
    values = {name: one.value() for name, one in known.items()}
    return log.select(
        _numbers(log).alias("row"),
        *(value.alias(name) for name, value in values.items()),
        _fault(known, values, F.lit(None).cast("string")).alias("_bad"),
    )


@dataclass(frozen=True)
class _Column:
    """A wanted column: its name here, its name in the DataFrame, and Spark's name of its type."""

    name: str
    source: str
    kind: str

    @property
    def given(self) -> Column:
        from pyspark.sql import functions as F

        return F.col(f"`{self.source}`")

    def value(self) -> Column:
        """Give it in the type that a log has."""
        from pyspark.sql import functions as F

        if self.name in _TEXTS:
            text = self.given.cast("string")
            return F.when(text != "", text)
        if self.name == "rank":
            return self._rank()
        return self._time() if self.name == "time" else self.given

    def _rank(self) -> Column:
        from pyspark.sql import functions as F

        if self.kind in ("float", "double"):
            return F.when(self.given == F.floor(self.given), self.given.try_cast("bigint"))
        text = F.regexp_replace(self.given.cast("string"), r"\.0$", "")
        return text.try_cast("bigint")

    def _time(self) -> Column:
        from pyspark.sql import functions as F

        if self.kind == "timestamp":
            return F.unix_micros(self.given)
        if self.kind in ("timestamp_ntz", "date"):  # of no zone: taken for UTC, whatever the session's is
            local = f"CAST(`{self.source}` AS timestamp_ntz)"
            return F.expr(f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01', {local})")
        raise DataError(
            f"the column `{self.source}` of the DataFrame has the type {self.kind}, which is no time",
            hint="make it a timestamp first, for example with `to_timestamp`",
        )


def _numbers(log: DataFrame) -> Column:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

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
    """Give the reason to leave a row out, or nothing: the same as for files, in the same order."""
    from pyspark.sql import functions as F

    texts = [values[name] for name, one in known.items() if name in _TEXTS or one.kind == "string"]
    tests: list[tuple[str, Column]] = [(reasons.NUL_BYTE, text.contains("\0")) for text in texts]
    tests.append((reasons.QUERY_TOO_LONG, F.octet_length(values["query"]) > reasons.QUERY_LIMIT))
    tests += [(reasons.FIELD_TOO_LONG, F.octet_length(text) > reasons.FIELD_LIMIT) for text in texts]
    tests += [(reasons.NO_USER, values["user"].isNull()), (reasons.NO_QUERY, values["query"].isNull())]
    if "time" in values:
        tests.append((reasons.NO_TIME, values["time"].isNull()))
    if "rank" in values:
        filled = known["rank"].given.isNotNull() & (known["rank"].given.cast("string") != "")
        tests.append((reasons.UNREADABLE_RANK, values["rank"].isNull() & filled))
    for reason, test in reversed(tests):
        nothing = F.when(test, F.lit(reason)).otherwise(nothing)
    return nothing


def check_numbers(log: DataFrame) -> None:
    """Refuse rows of the same number: what is drawn for one would be drawn for the other."""
    from pyspark.sql import functions as F

    none = log.filter(F.col("row").isNull()).limit(1).count()
    if none or log.groupBy("row").count().filter("count > 1").limit(1).count():
        raise DataError(
            "the column `row` has rows without a number, or two with the same", hint="number all rows anew"
        )


def left_out(log: DataFrame) -> dict[str, int]:
    """Count bad rows by reason, and the good ones under the empty reason."""
    from pyspark.sql import functions as F

    counted = log.groupBy(F.coalesce("_bad", F.lit("")).alias("reason")).count().collect()
    return {str(row["reason"]): int(row["count"]) for row in counted}


def of_log(names: Sequence[str]) -> tuple[str, ...]:
    """Order the columns of a log: canonical ones, then the kept ones."""
    own = [name for name in names if name != "row" and not name.startswith("_")]
    return (*(n for n in CANONICAL if n in own), *(n for n in own if n not in CANONICAL))
