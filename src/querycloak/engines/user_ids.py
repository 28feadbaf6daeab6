"""One spelling for each user id: ids that differ in white space or Unicode form only belong to one user."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import Final

import polars as pl

from querycloak.formats.validation import NO_USER
from querycloak.log import Log, Skipped

#: A character that another spelling can have: all but visible ASCII, and the sign of an address.
_DOUBTFUL: Final = r"[^!-?A-~]"


def spelling(user: str) -> str:
    """Return the spelling that stands for an id: NFKC, trimmed; without case, if it is an address."""
    plain = unicodedata.normalize("NFKC", user).strip()
    return unicodedata.normalize("NFKC", plain.casefold()) if "@" in plain else plain


class UserIds:
    """Replaces spellings of user ids by one for each user, and holds the ids of the rows that had another."""

    def __init__(self) -> None:
        self._changed: list[pl.DataFrame] = []  # `row` and `raw_user`

    def apply(self, log: Log) -> Log:
        """Return the log with one spelling for each user; a row whose id is blank has no user."""
        frame = log.frame
        if frame.schema.get("user") != pl.String:
            return log
        doubtful = frame["user"].str.contains(_DOUBTFUL).fill_null(False)
        if not doubtful.any():
            return log
        found = frame.lazy().filter(doubtful).select("row", raw_user="user").collect()
        names = found["raw_user"].unique()
        spelled = pl.DataFrame({"raw_user": names, "user": [spelling(name) for name in names.to_list()]})
        spelled = spelled.filter(pl.col("user") != pl.col("raw_user"))
        if spelled.is_empty():
            return log
        changed = found.join(spelled, on="raw_user", maintain_order="left")
        blank = changed.filter(user="")["row"]
        known = changed.filter(pl.col("user") != "")
        self._changed.append(known.select("row", "raw_user"))
        old, new = spelled["raw_user"], spelled["user"]
        frame = frame.with_columns(pl.col("user").replace(old, new))
        if not blank.len():
            return replace(log, frame=frame)
        skipped = Skipped()
        skipped.merge(log.skipped)
        skipped.add(NO_USER, blank)
        return replace(log, frame=frame.filter(pl.col("user") != ""), skipped=skipped)

    def joined(self, log: pl.LazyFrame) -> int:
        """Return how many ids were joined with another one; `log` has `row` and `user`."""
        if not self._changed:
            return 0
        raw = pl.concat(self._changed).lazy()
        both = log.select("row", "user").join(raw, on="row", how="left")
        changed = both.drop_nulls("raw_user").select("user").unique()
        ids = both.join(changed, on="user", how="semi").with_columns(pl.coalesce("raw_user", "user"))
        counts = ids.select(pl.struct("raw_user", "user").n_unique() - pl.col("user").n_unique())
        return int(counts.collect().item())

    def add_raw(self, truth: pl.DataFrame) -> pl.DataFrame:
        """Return the ground truth with the ids as the log has them, if any has another spelling."""
        if not self._changed:
            return truth
        raw = pl.concat(self._changed).rename({"row": "original_row"})
        found = truth.join(raw, on="original_row", how="left", maintain_order="left")
        return found.with_columns(pl.coalesce("raw_user", "original_user").alias("raw_user"))
