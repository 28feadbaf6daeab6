"""The log that all candidates get: read once, sampled by people, with categories, in a private file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from querycloak import io, topics
from querycloak.engines.request import Progress
from querycloak.errors import DataError
from querycloak.log import CANONICAL, Log, Skipped

#: Rows that are read at once while people are drawn.
_PIECE = 2_000_000
_DRAW = "_draw"


@dataclass
class Prepared:
    """What is known about the log of a comparison; nothing of it names anybody."""

    records: int = 0
    people: int = 0
    of_records: int = 0
    of_people: int = 0
    sampled: bool = False
    categories: str = "given"
    classified: float = 0.0
    columns: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    fingerprint: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return asdict(self)


def prepare(
    log: str | Log,
    target: Path,
    *,
    sample: int,
    seed: int,
    progress: Progress,
    format: str | None = None,  # noqa: A002 - the option's name
    mapping: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Prepared:
    """Write the log that candidates get to `target`, and say what it is.

    People are drawn by a keyed hash of their ids, so that all records of whoever is drawn are there, and a
    log of any size is read piece by piece.
    """
    about = Prepared()
    options: dict[str, Any] = {"format": format, "mapping": mapping, "strict": strict}
    pieces = [log] if isinstance(log, Log) else io.pieces(log, rows=_PIECE, **options)
    drawing, kept, skipped = _Drawing(sample, seed), list[pl.DataFrame](), Skipped()
    for piece in pieces:
        kept = [drawing.few(frame) for frame in [*kept, drawing.numbered(piece.frame)]]
        about.of_records += piece.frame.height
        skipped.merge(piece.skipped)
        progress("read", about.of_records, None)
    if not about.of_records:
        raise DataError("the log has no records to compare on")
    about.of_people, about.skipped = len(drawing.people), dict(skipped.counts)
    about.sampled = 0 < sample < about.of_people
    frame = _with_categories(pl.concat(kept, how="diagonal_relaxed").drop(_DRAW), about, progress)
    about.records, about.people = frame.height, frame["user"].n_unique()
    about.columns = [name for name in CANONICAL if name in frame.columns]
    layout = io.layout_for(str(target)).adding(["category"])
    io.write(frame.select(about.columns), str(target), layout, private=True)
    about.fingerprint = hashlib.sha256(target.read_bytes()).hexdigest()
    return about


class _Drawing:
    """Draws people while a log is read: those with the smallest numbers so far stay."""

    def __init__(self, sample: int, seed: int) -> None:
        self._sample, self._key = sample, hashlib.sha256(f"people {seed}".encode()).digest()
        self.people: dict[str, int] = {}

    def numbered(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Give every record its person's number; the same person has the same in every piece."""
        for user in frame["user"].unique().to_list():
            if user not in self.people:
                digest = hashlib.blake2b(user.encode(), key=self._key, digest_size=8).digest()
                self.people[user] = int.from_bytes(digest, "big") >> 1
        numbers = pl.DataFrame(
            {"user": list(self.people), _DRAW: list(self.people.values())},
            schema={"user": pl.String, _DRAW: pl.Int64},
        )
        return frame.join(numbers, on="user", how="left", maintain_order="left")

    def few(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Keep the records of those who are drawn so far: whoever is drawn in the end was so all along."""
        if not 0 < self._sample < len(self.people):
            return frame
        numbers = np.fromiter(self.people.values(), np.int64, len(self.people))
        return frame.filter(pl.col(_DRAW) <= int(np.partition(numbers, self._sample - 1)[self._sample - 1]))


def _with_categories(frame: pl.DataFrame, about: Prepared, progress: Progress) -> pl.DataFrame:
    """Classify a log that has no categories; most methods and attacks live by them."""
    if "category" not in frame.columns or frame["category"].null_count() == frame.height:
        progress("classify", 0, None)
        frame, about.categories = topics.classify_log(frame), "by `querycloak classify`"
    about.classified = round(1 - frame["category"].null_count() / frame.height, 4)
    return frame
