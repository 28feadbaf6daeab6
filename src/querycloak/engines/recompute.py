"""Makes a release once more from the original and the secret, and compares: the strictest check there is."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from querycloak import io, keys
from querycloak.dictionary import Texts
from querycloak.engines import local
from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.engines.request import Reading, Request
from querycloak.errors import DataError, UsageError
from querycloak.guarantees import rows_text
from querycloak.registry import METHODS

if TYPE_CHECKING:
    from querycloak.engines.verify import Question, Verification

CHECK = "the secret gives the same records under the same labels"


def check(question: Question, stages: list[Stage], document: dict[str, Any], result: Verification) -> None:
    """Recompute every label; say which rows differ, or why it cannot be done."""
    secret = keys.Secret.from_file(question.secret_file)  # type: ignore[arg-type]
    source, earlier = document["release"]["source"] or "", _earlier(document)
    if not keys.is_named_by(secret, source, earlier, document["release"]["id"]):
        raise UsageError("this is not the secret that the release was made with", hint="look for its file")
    if any(METHODS.get(stage.method).own_noise for stage in stages):
        reason = "its noise is the operating system's, which no secret can repeat"
        result.add("release", CHECK, "not checkable", reason)
        return
    if earlier and any(_began_earlier(stage) for stage in stages):
        reason = "what it did depends on earlier releases, and their book has gone on since"
        result.add("release", CHECK, "not checkable", reason)
        return
    key = keys.release_key(secret, source, document["release"]["id"])
    try:
        fault = _difference(_made_again(question, stages, key), question, document)
    except (
        UsageError,
        DataError,
    ) as reason:  # a file that the method reads is elsewhere: a certificate has no folders
        result.add("release", CHECK, "not checkable", reason.message)
        return
    result.add("release", CHECK, "broken" if fault else "kept", fault)


def _began_earlier(stage: Stage) -> bool:
    """Say whether a second release takes anything over: groups do, and budgets that drop people."""
    method = METHODS.get(stage.method)
    if method.book_name:
        return bool(getattr(stage.settings, "overspent", "refuse") == "drop" and stage.settings.budget)
    return bool(method.keeps_book)


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
    """Write what was made again as the release was written, read both, and compare every column."""
    layout = io.Layout.from_dict(document["release"]["layout"])
    with tempfile.TemporaryDirectory() as folder:  # mode 0700
        path = Path(folder, question.release.name)
        with io.Writer(path, layout, private=True) as writer:
            for frame in made:
                writer.write(frame)
            writer.commit()
        again = io.read(str(path), layout=layout, required=()).frame
    shown = io.read(str(question.release), layout=layout, required=()).frame
    if again.height != shown.height or again.columns != shown.columns:
        return f"the release has {shown.height:,} rows, and the secret makes {again.height:,}"
    other = pl.Series([False]).new_from_index(0, shown.height)
    for name in shown.columns:
        other = other | shown[name].ne_missing(again[name])
    rows = other.arg_true().to_list()
    return f"{rows_text(rows, len(rows))} differ from what the secret makes" if rows else ""
