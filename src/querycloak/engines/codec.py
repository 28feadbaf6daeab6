"""Records as integers for methods, and back: texts become codes, released batches become columns."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from querycloak.dictionary import Dictionaries
from querycloak.engines.pipeline import Pipeline
from querycloak.engines.record_store import RecordStore
from querycloak.kernels.order import searches
from querycloak.log import CANONICAL, COLUMN_BIT, NO_TIME, Batch, IntArray
from querycloak.protector import Labels, Protector

#: Pieces below this many rows are encoded faster than threads are started.
SMALL: Final = 1 << 14
_TEXT: Final = ("user", "query", "url", "category")


@dataclass(frozen=True)
class Released:
    """Released records: the columns of the release, and the private ground truth about each row."""

    frame: pl.DataFrame
    truth: pl.DataFrame


def encode_and_register(piece: pl.DataFrame, pipeline: Pipeline, read: int) -> Batch:
    """Encode the searches of a piece, and register their users with the pipeline."""
    batch = encode(piece, pipeline, read)
    if "user" in pipeline.reads:
        pipeline.register_users(batch.user)
    return batch


def encode(piece: pl.DataFrame, pipeline: Pipeline, read: int) -> Batch:
    """Return the searches of a piece as integers, in replay order, with the columns that methods read."""
    row, place, head = (piece[name].to_numpy() for name in ("row", "_place", "_head"))
    firsts, sizes = searches(place, head, row) if row.size else (row, row)
    columns = {"row": row[firsts], "seq": read + sizes}
    names = (pipeline.reads | {"time"}) & set(piece.columns)  # the order of release goes by time

    def codes(name: str) -> IntArray:
        found: IntArray = encode_column(piece[name], name, pipeline.texts)[firsts]
        return found

    if piece.height < SMALL:
        columns |= {name: codes(name) for name in names}
    else:
        with ThreadPoolExecutor() as pool:  # each column has a dictionary of its own
            columns |= dict(zip(names, pool.map(codes, names), strict=True))
    return Batch.of(columns, pipeline.texts)


def encode_column(column: pl.Series, name: str, texts: Dictionaries) -> IntArray:
    """Return a column of a log as integers."""
    if name == "time":
        return column.to_physical().fill_null(NO_TIME).to_numpy()
    if name == "rank":
        return column.fill_null(-1).to_numpy()
    codes: IntArray = getattr(texts, name).encode(column)
    return codes


def decode(pipeline: Pipeline, batch: Batch, store: RecordStore) -> Released:
    """Return released records with the truth: rewritten columns from the batch, the others from the input.

    Records that a method created (their row is negative) have only what is in the batch.
    """
    made = batch.row < 0
    if not made.any():
        return decode_originals(pipeline, batch, store)[0]
    real, which = decode_originals(pipeline, batch[~made], store)
    fresh = _created(pipeline, batch[made], real)
    place = np.flatnonzero(~made)
    order = np.argsort(np.concatenate([place[which], np.flatnonzero(made)]), kind="stable")
    frame, truth = (
        pl.concat([a, b])[order] for a, b in ((real.frame, fresh.frame), (real.truth, fresh.truth))
    )
    return Released(frame, truth)


def decode_originals(
    pipeline: Pipeline, batch: Batch, store: RecordStore
) -> tuple[Released, IntArray | slice]:
    """Decode records that come from the input; also return which element of the batch each row belongs to."""
    source, which = store.take(batch.row)
    batch = batch if isinstance(which, slice) else batch[which]
    columns = [name for name in source.columns if name != "row"]
    truth = _truth(pipeline, source, batch)
    frame = source.select(columns).with_columns(
        decode_column(batch, name) for name in sorted(pipeline.rewrites & set(columns))
    )
    store.remove(batch.row)
    return Released(empty_cells(frame, batch, pipeline.empties), truth), which


def _created(pipeline: Pipeline, batch: Batch, like: Released) -> Released:
    """Decode created records; columns that the batch does not have are empty."""
    known: dict[str, pl.Series] = {n: decode_column(batch, n) for n in CANONICAL if n in like.frame.columns}
    nothing = pl.Series([None]).new_from_index(0, len(batch))
    frame = pl.DataFrame(
        {name: known.get(name, nothing).cast(kind) for name, kind in like.frame.schema.items()}
    )
    people = pipeline.users_of_labels(batch.user)
    told = {"original_user": people, "released_after": pl.Series(batch.seq), "label_user": people}
    told["original_label"] = pipeline.texts.user.decode(batch.user)
    told["made_up"] = pl.Series([True]).new_from_index(0, len(batch))
    truth = pl.DataFrame(
        {name: told.get(name, nothing).cast(kind) for name, kind in like.truth.schema.items()}
    )
    return Released(empty_cells(frame, batch, pipeline.empties), truth)


def _truth(pipeline: Pipeline, source: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Return the origin of each released row; under fresh labels also the user of each label."""
    known = {"original_row": source["row"], "original_user": source["user"], "released_after": batch.seq}
    fresh = any(one.fresh_labels for one in pipeline.traits)
    if fresh and not any(one.labels is Labels.PARTS for one in pipeline.traits):
        known["original_label"] = pipeline.labels_of_users(source["user"])
        known["label_user"] = pipeline.users_of_labels(batch.user)
    if any(one.creates_rows for one in pipeline.traits):
        known["made_up"] = pl.Series([False]).new_from_index(0, len(batch))
    for stage in pipeline:
        if type(stage).truth_columns is not Protector.truth_columns:
            known |= stage.truth_columns(pipeline.texts.user.encode(source["user"]))
    return pl.DataFrame(known)


def decode_column(batch: Batch, name: str) -> pl.Series:
    """Return one column of a batch as it is released."""
    values = getattr(batch, name)
    if name in _TEXT:
        found: pl.Series = getattr(batch.texts, name).decode(values)
        return found.alias(name)
    series = pl.Series(name, values)
    if name == "time":
        return series.set(series == NO_TIME, None).cast(pl.Datetime("us", "UTC"))
    return series.set(series < 0, None)


def empty_cells(frame: pl.DataFrame, batch: Batch, empties: frozenset[str]) -> pl.DataFrame:
    """Empty columns and single cells that may not be released."""
    bits = int(np.bitwise_or.reduce(batch.blank)) if len(batch) else 0
    changed = []
    for name in CANONICAL:
        if name not in frame.columns:
            continue
        if name in empties:
            changed.append(pl.lit(None, frame.schema[name]).alias(name))
        elif bits & COLUMN_BIT[name]:
            stays = pl.Series((batch.blank & COLUMN_BIT[name]) == 0)
            changed.append(pl.when(stays).then(pl.col(name)).alias(name))
    return frame.with_columns(changed) if changed else frame
