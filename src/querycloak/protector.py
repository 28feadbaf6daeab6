"""The one protocol: a method takes a log piece by piece and hands back only what may be shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak import settings as declared
from querycloak.dictionary import Dictionary, Texts
from querycloak.guarantees import Guarantee
from querycloak.keys import derive
from querycloak.log import Batch, IntArray

State = dict[str, npt.NDArray[Any]]

#: Why records of people who asked to be forgotten are dropped, and others' that waited under their labels.
ERASED: Final = "erased on request"
UNDER_ERASED_LABEL: Final = "waited under the label of somebody erased"


class Protector(ABC):
    """Takes a log piece by piece; hands back only what may already be shown.

    Time is read from the records; there is no clock. Randomness is drawn from `key` by record id, so
    cutting, splitting by `partition_key`, restarting or replaying a log changes nothing. What is not
    handed back is either still held or was dropped, and `drop` says why.
    """

    name: ClassVar[str]
    Settings: ClassVar[type[declared.Settings]]
    #: Columns that a batch must carry; the engine leaves the others empty.
    reads: frozenset[str] = frozenset({"user", "query"})
    #: Columns without which the method cannot work at all.
    needs: ClassVar[frozenset[str]] = frozenset({"user", "query"})
    #: Columns whose released value comes from the batch that the method hands back.
    rewrites: frozenset[str] = frozenset()
    #: Columns of the input that may not leave as they are; they stay in the release, empty.
    empties: frozenset[str] = frozenset()
    #: Whether records may wait in it, so that they leave out of the order of their times.
    holds: ClassVar[bool] = True
    #: Whether records must come in the order of their times.
    wants_order: ClassVar[bool] = False
    #: Whether what it lets go at one moment must stay in the order in which it hands it back.
    orders: ClassVar[bool] = False
    #: Whether each row is an element of its own, instead of each search with all of its clicks.
    per_row: bool = False
    #: Whether it must know whose each record is, so that no other method may move or empty labels.
    wants_people: bool = False
    #: Whether a person may go by several labels, so that no label is hers alone.
    has_parts: bool = False
    #: Whether a second release of a source without the first one's book would tell on people.
    keeps_book: ClassVar[bool] = False
    #: The book's name, if methods share it: the budget that people have spent.
    book_name: ClassVar[str] = ""
    #: Columns that its promise is about: a later method may empty them, but not change them.
    stands_on: ClassVar[frozenset[str]] = frozenset()
    #: Whether its result is a table of counts (see `counts`) instead of records; then nothing comes after it.
    table: bool = False
    #: Whether it gives anything before the log has ended; a live one never does.
    streams: bool = True
    #: Whether it makes up records, with negative rows: they come from no row of the original.
    makes_rows: ClassVar[bool] = False
    #: Whether it puts other words in the place of those that were asked, so that nothing holds for them.
    rewords: ClassVar[bool] = False
    #: Whether it draws noise from the operating system, which no seed and no secret can repeat.
    own_noise: ClassVar[bool] = False
    #: Whether what becomes of a record depends on its own person's records alone, whoever else is there.
    each_alone: ClassVar[bool] = False
    #: Whether its promise is about one person more or less, so that methods before it must be `each_alone`.
    wants_alone: bool = False
    #: Whether people can be erased from it while it runs.
    erases: bool = True
    #: Arrays of a snapshot that hold codes of texts, each with the column whose codes they are: `query`,
    #: `url` or `category`. A snapshot need not have all of them. Codes of users are for good.
    coded: ClassVar[Mapping[str, str]] = {
        "held_query": "query",
        "held_url": "url",
        "held_category": "category",
    }
    #: The optional part of the package without which it cannot run (`dp`), if any.
    extra: ClassVar[str] = ""
    #: Conformance checks that this method cannot pass by its nature, each with the reason.
    exempt: ClassVar[dict[str, str]] = {}

    def __init__(self, settings: declared.Settings, key: bytes, texts: Texts) -> None:
        self.settings = settings
        self.key = key
        self.texts = texts
        self.dropped: Counter[str] = Counter()
        self.explanation = {}
        self._dropped_rows: list[IntArray] = []

    @classmethod
    def needs_for(cls, settings: declared.Settings) -> frozenset[str]:
        """Say which columns these settings cannot do without."""
        return cls.needs

    @classmethod
    def examples(cls) -> list[declared.Settings]:
        """Name the settings that the conformance suite tries."""
        return [cls.Settings()]

    def partition_key(self, batch: Batch) -> IntArray | None:
        """Say which elements must stay together when work is split; None: they all must.

        The same text has the same key in every process (see `key_of_text`), so that workers agree.
        """
        return None

    def key_of_text(self, known: Dictionary, codes: IntArray) -> IntArray:
        """Give each code's text as a number for `partition_key`; no text gives 0."""
        keys = np.zeros(codes.size, np.int64)
        some = codes >= 0
        prints = known.fingerprints(codes[some], derive(self.key, "partition"))
        keys[some] = (prints >> np.uint64(1)).astype(np.int64)
        return keys

    @abstractmethod
    def promise(self) -> Guarantee:
        """Say what an independent audit can test."""

    @abstractmethod
    def push(self, batch: Batch) -> Batch:
        """Take records in; hand back what is safe now, each with the `seq` of its release."""

    def advance(self, watermark: int) -> Batch:
        """Note that event time has moved on although no record came."""
        return Batch.empty(self.texts)

    @abstractmethod
    def close(self) -> Batch:
        """End the input: hand back or drop what is held."""

    @abstractmethod
    def snapshot(self) -> State:
        """Give all state as arrays, to carry on elsewhere. It holds raw records: guard it."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Carry on from a snapshot."""

    def erase(self, users: IntArray, rows: IntArray) -> None:  # noqa: B027 - some methods hold nothing
        """Forget people: drop what is held of theirs, and keep the promise without them.

        `users` are their codes as this method sees them: behind a method that gives labels, the labels that
        stand for them. `rows` are the input rows of their records that have not left the pipeline: behind
        `swap`, these carry others' labels. So a record goes if it is theirs, or waits under their label.
        Nothing leaves by an erasure. An erased code never returns: who comes back gets another id.
        """

    def counts(self) -> pl.DataFrame:
        """Give the result of a `table` method, after `close`: some of `user, query, category`, and `count`.

        Asking twice gives the same table, never fresh noise.
        """
        raise NotImplementedError(f"`{self.name}` gives records")

    def prepare(self) -> None:  # noqa: B027 - most methods need nothing beside the package
        """Say that an optional part is missing, before a long log is read for nothing."""

    def check_people(self, people: int) -> None:  # noqa: B027 - most methods work for any number
        """Refuse settings that so many people cannot meet, and say what would work."""

    #: Why the method did what it did, for `--explain`; names nothing that fewer than its k people share.
    explanation: dict[str, Any]

    def tally(self) -> State:
        """Give what `facts` counts, as arrays: those of several workers are put together end to end."""
        return {}

    def facts(self, tally: State | None = None) -> dict[str, Any]:
        """Give what the certificate states about this very release, beside the promise.

        With a tally it is about what several workers did together.
        """
        return {}

    def book(self) -> pl.DataFrame | None:
        """Give what must be kept over releases of one source, if anything must."""
        return None

    @classmethod
    def merge_books(cls, books: list[pl.DataFrame]) -> pl.DataFrame:
        """Put together the books of workers that began with the same one, each with its own people."""
        return pl.concat(books).unique(maintain_order=True)

    def miss_book(self) -> None:  # noqa: B027 - only budgets are shared between methods
        """Carry on knowing that earlier releases left a book which is not here."""

    def open_book(self, book: pl.DataFrame) -> IntArray:
        """Carry on with what earlier releases of the source left behind; give the people in it."""
        return np.empty(0, np.int64)

    def label_of(self, users: IntArray) -> IntArray:
        """Give the label that stands for each user: evaluation needs it, no release shows it."""
        return users

    def drop(self, rows: IntArray, reason: str) -> None:
        """Record that these rows will never be shown."""
        if rows.size:
            self.dropped[reason] += int(rows.size)
            self._dropped_rows.append(rows)

    def forget(self, held: Batch, users: IntArray, rows: IntArray) -> npt.NDArray[np.bool_]:
        """Drop what `erase` must drop of held records; say which of them stay."""
        own = np.isin(held.row, rows)
        labelled = np.isin(held.user, users) & ~own
        self.drop(held.row[own], ERASED)
        self.drop(held.row[labelled], UNDER_ERASED_LABEL)
        return ~(own | labelled)

    def drain_dropped(self) -> IntArray:
        """Hand over the rows dropped since the last call, so that the engine can forget them."""
        rows, self._dropped_rows = self._dropped_rows, []
        return np.concatenate(rows) if rows else np.empty(0, np.int64)

    def _snapshot_dropped(self) -> State:
        reasons = sorted(self.dropped)
        return {
            "dropped_reasons": np.array(reasons, dtype=np.str_),
            "dropped_counts": np.array([self.dropped[r] for r in reasons], dtype=np.int64),
        }

    def _restore_dropped(self, state: State) -> None:
        reasons, counts = state["dropped_reasons"].tolist(), state["dropped_counts"].tolist()
        self.dropped = Counter(dict(zip(reasons, counts, strict=True)))


def protect(method: Protector, pieces: Iterable[Batch]) -> Batch:
    """Run a method to the end. A file is a stream with one piece."""
    released = Batch.empty(method.texts)
    for piece in pieces:
        released += method.push(piece)
    return released + method.close()
