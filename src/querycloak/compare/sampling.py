"""The log of a comparison: read once, users sampled with all their records, classified, in a private file."""

from __future__ import annotations

import hashlib
import heapq
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from querycloak import formats, text
from querycloak.engines.source import Progress
from querycloak.formats import ReadOptions
from querycloak.log import CANONICAL, Log, Skipped

#: Rows that are read at once.
_PIECE = 2_000_000
_DRAW = "_draw"


@dataclass
class LogSample:
    """Figures about the log of a comparison and the sample of it; none names a user.

    `people` and `records` are those of the sample, `of_people` and `of_records` those of the whole log.
    """

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
        """Return plain values for `comparison.json`, without the fingerprint of the log."""
        return {name: value for name, value in asdict(self).items() if name != "fingerprint"}


def draw_sample(
    log: str | Log,
    target: Path,
    *,
    sample: int,
    seed: int,
    progress: Progress,
    reading: ReadOptions | None = None,
) -> LogSample:
    """Write the sampled log to `target` and return its figures; a `sample` of 0 is the whole log.

    Users are drawn by a keyed hash of their ids, with all their records. The log is read in pieces, so it
    may be larger than memory.
    """
    about, options = LogSample(), reading or ReadOptions()
    how = options.as_dict()
    pieces = [log] if isinstance(log, Log) else formats.pieces(log, rows=_PIECE, **how)
    drawing, skipped = _UserDraw(sample, seed), Skipped()
    for piece in pieces:
        drawing.add(piece.frame)
        about.of_records += piece.frame.height
        skipped.merge(piece.skipped)
        progress("read", about.of_records, None)
    options.check_usable(log, about.of_records + skipped.total, skipped)
    about.of_people, about.skipped = len(drawing.users), dict(skipped.counts)
    about.sampled = 0 < sample < about.of_people
    frame = _with_categories(drawing.records(), about, progress)
    about.records, about.people = frame.height, frame["user"].n_unique()
    about.columns = [name for name in CANONICAL if name in frame.columns]
    layout = formats.Layout.for_output(str(target)).adding(["category"])
    formats.write(frame.select(about.columns), str(target), layout, private=True)
    about.fingerprint = hashlib.sha256(target.read_bytes()).hexdigest()
    return about


class _UserDraw:
    """A draw of users from a log in pieces: those with the smallest keyed hashes so far, with their records.

    Pieces are restricted again only after their records have doubled, so the work is linear in the records.
    """

    def __init__(self, sample: int, seed: int) -> None:
        self._sample, self._key = sample, hashlib.sha256(f"people {seed}".encode()).digest()
        self._smallest: list[int] = []  # a heap of negated hashes: the largest hash first
        self._kept: list[pl.DataFrame] = []
        self._rows = self._rows_before = 0
        self.users: dict[str, int] = {}

    def add(self, frame: pl.DataFrame) -> None:
        """Take a piece of the log."""
        self._kept.append(self.restrict(self._numbered(frame)))
        self._rows += self._kept[-1].height
        if self._rows > 2 * self._rows_before:
            self._kept = [self.restrict(self._joined())]
            self._rows = self._rows_before = self._kept[0].height

    def records(self) -> pl.DataFrame:
        """Return the records of the users drawn, in the order of the log."""
        return self.restrict(self._joined()).drop(_DRAW)

    def restrict(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the records of users drawn so far; a user who is drawn in the end was so from the start."""
        if not 0 < self._sample < len(self.users):
            return frame
        return frame.filter(pl.col(_DRAW) <= -self._smallest[0])

    def _joined(self) -> pl.DataFrame:
        return pl.concat(self._kept, how="diagonal_relaxed")

    def _numbered(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the records with the hash of their user, which is the same in every piece."""
        users = frame["user"].unique().to_list()
        for user in users:
            if user not in self.users:
                digest = hashlib.blake2b(user.encode(), key=self._key, digest_size=8).digest()
                self.users[user] = int.from_bytes(digest, "big") >> 1
                self._draw(self.users[user])
        numbers = pl.DataFrame(
            {"user": users, _DRAW: [self.users[user] for user in users]},
            schema={"user": pl.String, _DRAW: pl.Int64},
        )
        return frame.join(numbers, on="user", how="left", maintain_order="left")

    def _draw(self, number: int) -> None:
        heapq.heappush(self._smallest, -number)
        if len(self._smallest) > max(self._sample, 0):
            heapq.heappop(self._smallest)


def _with_categories(frame: pl.DataFrame, about: LogSample, progress: Progress) -> pl.DataFrame:
    """Return the log with categories, which most methods and attacks need; classify it if it has none."""
    if "category" not in frame.columns or frame["category"].null_count() == frame.height:
        progress("classify", 0, None)
        frame, about.categories = text.classify_log(frame), "by `querycloak classify`"
    about.classified = round(1 - frame["category"].null_count() / frame.height, 4)
    return frame
