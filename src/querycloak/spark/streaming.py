"""Methods as a streaming query of Spark: records in, what may be shown out, for as long as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from querycloak import keys
from querycloak.engines.pipeline import Stage, parse_stages
from querycloak.engines.source import check_columns
from querycloak.errors import DataError, UsageError
from querycloak.spark import rows
from querycloak.spark.batch import distributable
from querycloak.spark.session import check
from querycloak.spark.worker import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STORE: Final = "spark.sql.streaming.stateStore.providerClass"


def protect_stream(
    records: DataFrame,
    *methods: str,
    lanes: int = 8,
    seed: int | None = None,
    secret_file: str | Path | None = None,
    source: str = "",
    mapping: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    ids: bool = False,
    **settings: Any,
) -> DataFrame:
    """Run methods one after the other over a streaming DataFrame; give what leaves, as another one.

    `records` has the columns of a log and `row`: a whole number that is a record's own, whenever the source
    is read again (see `from_kafka`). Records of one micro-batch are taken in the order of `time`, then `row`.
    A query that is to carry on after a restart needs the same secret: so one must be named.

    Work is split into `lanes`, for good. Settings go by name (`k=5`); where two methods have the same one,
    pass `{"method.name": value}` as `**`. `ids=True` adds a column `id`: a released record's own, the same
    whenever it is written again, so that readers behind a sink that may write twice can tell.
    """
    check()
    from querycloak.spark.operators import stream

    _check_store(records)
    log = log_of(records, mapping or {}, keep)
    plan = plan_of(methods, log.columns, lanes, seed, secret_file, source, settings)
    return stream(log, plan, ids)


def plan_of(
    methods: Sequence[str],
    columns: Sequence[str],
    lanes: int,
    seed: int | None,
    secret_file: str | Path | None,
    source: str,
    settings: Mapping[str, Any],
) -> Plan:
    """Put together what all workers must know; refuse what a stream cannot do."""
    chosen = {name: ("yes" if v else "no") if isinstance(v, bool) else str(v) for name, v in settings.items()}
    stages = parse_stages(list(methods), chosen)
    check_columns(stages, list(columns))
    if lanes < 1:
        raise UsageError(f"`lanes` must be at least 1; got {lanes}")
    key = _key(seed, secret_file, source)
    plan = Plan(tuple(stages), key, rows.of_log(columns), rows=0, parts=lanes)
    _check_live(plan)
    return plan


def _key(seed: int | None, secret_file: str | Path | None, source: str) -> bytes:
    """Make the key of the stream: the same for a secret and a source. A seed's is the local engine's."""
    if seed is None and secret_file is None:
        raise UsageError(
            "a stream must find the same secret again after a restart, and none was named",
            hint="give `secret_file`: it is made if it is not there",
        )
    secret = keys.Secret.choose(seed, Path(secret_file) if secret_file is not None else None)
    name = keys.release_id(secret, source, 0) if seed is not None else "stream"
    return keys.release_key(secret, source, name)


def log_of(records: DataFrame, mapping: Mapping[str, str], keep: Sequence[str]) -> DataFrame:
    """Take the wanted columns as a log has them."""
    if not records.isStreaming:
        raise UsageError("the DataFrame is no stream", hint="use `querycloak.spark.protect` for a table")
    if "row" not in records.columns:
        raise DataError(
            "the stream has no column `row` with a number that is each record's own",
            hint="`querycloak.spark.from_kafka` makes one of a message's partition and offset",
        )
    return rows.canonical(records, mapping, keep)


def _check_store(records: DataFrame) -> None:
    """Refuse a session whose state Spark keeps where lanes cannot be: it would say so much later."""
    if "RocksDB" not in (records.sparkSession.conf.get(_STORE, "") or ""):
        raise UsageError(
            "lanes are kept in RocksDB, and this session keeps its state elsewhere",
            hint=f"start it with `querycloak.spark.start_session`, or set `{_STORE}` to "
            "`org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider`",
        )


def _check_live(plan: Plan) -> None:
    """Refuse methods that cannot be split, that wait for an end, or that stand in a wrong order."""
    for stage in plan.stages:
        _check_stage(stage)
    distributable(plan.stages, plan.key)
    plan.whole().check_ready()


def _check_stage(stage: Stage) -> None:
    own = stage.traits
    if own.needs_whole_log or own.is_table or own.creates_rows:
        raise UsageError(
            f"`{stage.method}` needs the whole log, and a stream never ends",
            hint="use it on the nightly file, with `querycloak protect`",
        )
    if own.system_noise:
        raise UsageError(
            f"`{stage.method}` draws its noise anew at each attempt, and Spark may need several",
            hint="use it on the nightly file, with `querycloak protect`",
        )
    if own.budget is not None and own.budget.when_spent == "refuse":
        raise UsageError(
            f"`{stage.method}` would stop the stream when somebody's budget is spent",
            hint="use `overspent=drop`",
        )
