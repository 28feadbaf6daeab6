"""Classifies a log file into another, in one piece or several."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import polars as pl

from querycloak import formats, text
from querycloak.engines.source import Progress, silent
from querycloak.files import check_outputs
from querycloak.log import Skipped

#: Rows that are classified together; each distinct query of a piece is looked at once.
PIECE_ROWS = 5_000_000


def classify_file(
    log: str,
    output: str,
    *,
    taxonomy: str | None = None,
    classifier: str = "lexical",
    progress: Progress = silent,
    **reading: Any,
) -> dict[str, Any]:
    """Write a log with a category and a confidence for every record; return the shares that were answered.

    `reading` are options of `formats.pieces`: `format`, `mapping`, `keep`, `strict`.
    """
    check_outputs([output], [log, taxonomy])
    tree = text.load_taxonomy(taxonomy) if taxonomy else None
    chosen = text.RemoteClassifier(tree, url=classifier) if "://" in classifier else classifier
    skipped, records, answered, confident = Skipped(), 0, 0, 0
    writer: Any = None
    with ExitStack() as cleanup:
        for piece in formats.pieces(log, rows=PIECE_ROWS, **reading):
            frame = text.classify_log(piece.frame, classifier=chosen, taxonomy=tree)
            if writer is None:
                like = formats.Layout.for_output(output, like=piece.layout)
                layout = like.adding(["category", "confidence"])  # behind the input's own
                writer = cleanup.enter_context(formats.Writer(output, layout, never_replace=[log, taxonomy]))
            writer.write(frame)
            skipped.merge(piece.skipped)
            records += frame.height
            answered += frame.height - frame["category"].null_count()
            confident += frame.filter(pl.col("confidence") >= text.CONFIDENT).height
            progress("classify", records, None)
        formats.ReadOptions().check_usable(log, records + skipped.total, skipped)
        if writer is not None:
            writer.commit()
    shares = {"answered": answered / max(records, 1), "confident": confident / max(records, 1)}
    return {"records": records, **shares, "skipped": dict(skipped.counts)}
