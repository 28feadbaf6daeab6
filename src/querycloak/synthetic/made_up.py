"""Writes a made-up log to a file, piece by piece, with the marketing data that goes with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from querycloak import formats
from querycloak.synthetic.marketing import marketing as marketing_data
from querycloak.synthetic.whole import pieces

#: People made up at a time: enough to be fast, little enough for any number of them.
PIECE_USERS = 50_000


def write_log(
    users: int,
    output: str,
    *,
    seed: int = 0,
    days: int = 92,
    categories: bool = False,
    marketing: str | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> dict[str, Any]:
    """Make up a log and write it; a `.tsv` gets AOL's own layout. Say how many records it has."""
    columns = ["user", "query", "time", "rank", "url", *(["category"] if categories else [])]
    records, queries = 0, []
    with formats.Writer(output, _layout(output, columns, categories)) as writer:
        for piece in pieces(users, seed, piece_users=PIECE_USERS, days=days, categories=categories):
            writer.write(piece.frame)
            records += piece.frame.height
            if marketing:
                queries.append(piece.frame.select("user", "query"))
            if progress:
                progress("generate", records, None)
        if marketing:
            marketing_data(pl.concat(queries), seed).write_csv(marketing)
        writer.commit()
    return {"users": users, "records": records, "output": output, "marketing": marketing}


def _layout(output: str, columns: list[str], categories: bool) -> formats.Layout:
    chosen = formats.Layout.for_output(output, columns=columns)
    if chosen.format == "tsv" and not categories:
        return formats.Layout.default("aol", columns, chosen.compression)
    return chosen
