"""Ground truth of a release or trace: which original row each released row came from."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

import polars as pl

from querycloak.errors import DataError, UsageError
from querycloak.keys import write_private

_COLUMNS: Final = frozenset({"released_row", "original_row", "original_user", "released_after"})


def check_truth_path(path: Path | None) -> None:
    """Raise UsageError if a ground truth cannot be written there."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise UsageError("the truth cannot be written: it has no folder, or is one", hint="create the folder")


def write_truth(path: Path, truth: pl.DataFrame) -> None:
    """Write the ground truth as Parquet, mode 0600."""
    buffer = io.BytesIO()
    truth.write_parquet(buffer)
    try:
        write_private(path, buffer.getvalue())
    except OSError as error:
        raise UsageError(f"the truth cannot be written: {error.strerror}") from None


def read_truth(path: Path) -> pl.DataFrame:
    """Read the ground truth of a release or trace."""
    try:
        truth = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):
        raise DataError("the truth file cannot be read as Parquet") from None
    if missing := _COLUMNS - set(truth.columns):
        raise DataError(f"the truth file lacks {', '.join(sorted(missing))}")
    return truth
