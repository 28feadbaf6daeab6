"""Makes a release once more from the original and the secret, and compares: the strictest check there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

from querycloak import io, keys
from querycloak.dictionary import Texts
from querycloak.engines import local
from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.engines.request import Reading, Request
from querycloak.errors import UsageError
from querycloak.guarantees import rows_text
from querycloak.registry import METHODS

if TYPE_CHECKING:
    from querycloak.engines.verify import Question, Verification

CHECK = "the secret gives the same records under the same labels"


def check(question: Question, stages: list[Stage], document: dict[str, Any], result: Verification) -> None:
    """Recompute every label; say which rows differ, or why it cannot be done."""
    secret = keys.Secret.from_file(question.secret_file)  # type: ignore[arg-type]
    source, earlier = document["release"]["source"] or "", _earlier(document)
    if keys.release_name(secret, source, earlier) != document["release"]["id"]:
        raise UsageError("this is not the secret that the release was made with", hint="look for its file")
    if earlier and any(METHODS.get(stage.method).keeps_book for stage in stages):
        reason = "its cohorts began in an earlier release, and the book has gone on since"
        result.add("release", CHECK, "not checkable", reason)
        return
    key = keys.release_key(secret, source, document["release"]["id"])
    fault = _difference(_made_again(question, stages, key), question, document)
    result.add("release", CHECK, "broken" if fault else "kept", fault)


def _earlier(document: dict[str, Any]) -> int:
    entry = document.get("ledger") or {}
    return int(entry.get("earlier_releases_of_source", 0))


def _made_again(question: Question, stages: list[Stage], key: bytes) -> Iterator[pl.DataFrame]:
    request = Request(
        str(question.original),
        str(question.release),
        stages,
        format=question.format,
        mapping=question.mapping,
    )
    reading = Reading(request, key)
    try:
        for part in local.run(Pipeline(stages, key, Texts()), reading.pieces()):
            yield part.frame
    finally:
        reading.close()


def _difference(made: Iterator[pl.DataFrame], question: Question, document: dict[str, Any]) -> str:
    layout = io.Layout.from_dict(document["release"]["layout"])
    shown = io.read(str(question.release), layout=layout, required=()).frame
    again = pl.concat(list(made))
    if again.height != shown.height:
        return f"the release has {shown.height:,} rows, and the secret makes {again.height:,}"
    names = [n for n in ("user", "query", "category") if n in shown.columns and n in again.columns]
    other = pl.Series([False]).new_from_index(0, shown.height)
    for name in names:
        other = other | shown[name].ne_missing(again[name])
    rows = other.arg_true().to_list()
    return f"{rows_text(rows, len(rows))} differ from what the secret makes" if rows else ""
