"""The state machine over entries: the same entries always produce the same released lines, byte for byte."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.engines import state_codec
from querycloak.engines.codec import decode, encode
from querycloak.engines.live import OUT_OF_ORDER, LivePipeline
from querycloak.engines.pipeline import Pipeline, Stage, check_live
from querycloak.engines.record_store import RecordStore
from querycloak.errors import DataError, Refused, UsageError
from querycloak.kernels.arrays import grown
from querycloak.keys import derive
from querycloak.log import CANONICAL, Batch, IntArray
from querycloak.protector import ERASED
from querycloak.service.entries import Entry
from querycloak.service.ingest.pseudonyms import ErasedPseudonyms
from querycloak.service.stream.classify import QueryClassifier
from querycloak.service.stream.click_join import ClickJoiner

#: Why the service itself drops records, beside the reasons of its methods.
EXPIRED: Final = "waited longer than the retention time"
#: Records of several entries that are pushed together, about.
BATCH_ROWS: Final = 1 << 17
#: Unused texts in the dictionaries before a snapshot rebuilds them.
SPARE_TEXTS: Final = 100_000
_END_OF_TIME: Final = 1 << 62
_COUNTERS: Final = ("accepted", "released", "epoch", "at")


@dataclass(frozen=True)
class Output:
    """Released lines. `truth` maps each line to its original record and never leaves the process."""

    first: int
    frame: pl.DataFrame
    truth: pl.DataFrame = field(repr=False)

    def __len__(self) -> int:
        return self.frame.height

    def lines(self) -> bytes:
        """Return the records as JSON lines, each with its offset first."""
        buffer = io.BytesIO()
        self.frame.write_ndjson(buffer)
        return buffer.getvalue()


class StreamObserver:
    """Callbacks in the worker's thread and in the order of the stream; each does nothing by default."""

    def on_records(self, stream: Stream, rows: pl.DataFrame) -> None:
        """Records with their `row` and `_head` are about to be pushed."""

    def on_release(self, output: Output) -> None:
        """The pipeline has released records; sinks do not have them yet."""

    def on_delivery(self, output: Output) -> None:
        """All sinks have the released records."""

    def on_erasure(self, stream: Stream, label: str) -> None:
        """A user has been erased."""

    def on_epoch(self, stream: Stream) -> None:
        """A new epoch has started."""

    def on_setting(self, stream: Stream) -> None:
        """A setting has changed."""


class Stream:
    """State of one source: pipeline, held records, positions.

    Records are numbered here, in the order of entries; all draws are keyed by these numbers.
    """

    def __init__(
        self,
        stages: list[Stage],
        secret: bytes,
        classifier: QueryClassifier | None = None,
        click_wait: int = 0,
        observers: list[StreamObserver] | None = None,
    ) -> None:
        self._stages, self._secret, self._classifier = stages, secret, classifier
        self.observers = [] if observers is None else observers
        self.clicks = ClickJoiner(click_wait)
        self.erased = ErasedPseudonyms(secret)
        self.accepted = self.released = self.epoch = self.at = 0
        self.dropped: Counter[str] = Counter()
        self.profiles_to_delete: list[str] = []  # labels of erased users
        self.read: dict[str, int] = {}  # positions in the source, by file or partition
        self.refusal: Refused | None = None  # of the last entry
        self.last_result: dict[str, int] = {}  # of the last erasure
        self._outputs: list[Output] = []  # of the entries that are being applied
        self._begin_epoch()
        check_live(stages)
        for stage in stages:
            if stage.traits.fresh_labels:
                raise UsageError(
                    f"`{stage.method}`: the service replaces users by pseudonyms itself, anew in each epoch",
                    hint="leave out `labels=fresh`",
                )
        self.pipeline.check_ready()

    def _begin_epoch(self) -> None:
        """Start with new keys, no users and no records."""
        key = derive(self._secret, "stream", str(self.epoch))
        self.live = LivePipeline(self._stages, key, spare_texts=SPARE_TEXTS)
        self._released_of = np.zeros(0, np.int64)  # records released by code of the user

    @property
    def pipeline(self) -> Pipeline:
        """Methods of this epoch."""
        return self.live.pipeline

    @property
    def records(self) -> RecordStore:
        """Records that are numbered and neither released nor dropped."""
        return self.live.store

    @property
    def held(self) -> int:
        """Number of held records, those that are held for their clicks included."""
        return self.records.count + self.clicks.held

    @property
    def dropped_total(self) -> int:
        """Number of dropped records."""
        return self.accepted - self.released - self.records.count

    def stages_in_force(self) -> list[Stage]:
        """Return the methods with their present settings."""
        return [Stage(stage.name, stage.current_settings()) for stage in self.pipeline]

    def apply(self, entries: Sequence[Entry]) -> Output:
        """Apply entries in order; return the released lines. Entries of records are pushed together."""
        frames: list[pl.DataFrame] = []
        for entry in entries:
            self.at = max(self.at, entry.at)
            self.read |= entry.facts.get("read", {})
            if entry.kind == "records" and entry.frame is not None:
                at = pl.Series("_at", np.full(entry.frame.height, entry.at))
                frames.append(entry.frame.hstack([at]))
                continue
            self._push_all(frames)
            self.refusal = None
            try:
                self._apply_other(entry)
            except Refused as error:  # it changes nothing, now and in every replay
                self.refusal = error
        self._push_all(frames)
        outputs, self._outputs = self._outputs, []
        if not outputs:
            return Output(self.released + 1, pl.DataFrame(), pl.DataFrame())
        truth = pl.concat([one.truth for one in outputs], how="diagonal_relaxed")
        return Output(outputs[0].first, pl.concat([one.frame for one in outputs]), truth)

    def _push_all(self, frames: list[pl.DataFrame]) -> None:
        """Push the records of entries and empty the list.

        About `BATCH_ROWS` rows are pushed together, never a part of an entry: a search is within its entry.
        """
        while frames:
            rows = np.cumsum([frame.height for frame in frames])
            size = int(np.searchsorted(rows, BATCH_ROWS)) + 1
            self._push(pl.concat(frames[:size]))
            del frames[:size]

    def _push(self, frame: pl.DataFrame) -> None:
        """Push accepted records in order of arrival, which is in `_at`."""
        distance = frame["rows_since_head"].to_numpy()
        if ((distance < 0) | (distance > np.arange(frame.height))).any():
            raise DataError("a batch of records does not begin with the first row of a search")
        frame = self.erased.rename(frame, self.epoch)
        if self._classifier is not None:
            frame = self._classifier.fill(frame)
        read, self.accepted = self.accepted, self.accepted + frame.height
        row = np.arange(read, self.accepted)
        head = row if self.pipeline.per_row else row - distance
        numbers = [pl.Series("row", row), pl.Series("_head", head)]
        rows = pl.DataFrame([*(frame[name] for name in (*CANONICAL, "_at")), *numbers])
        for observer in self.observers:
            observer.on_records(self, rows)
        self.records.add(rows)
        places = rows.hstack([pl.Series("_place", row)])
        released, late = self.live.push(encode(places, self.pipeline, read))
        if late.size:
            self.dropped[OUT_OF_ORDER] += int(late.size)
        self._release(released)

    def _release(self, batch: Batch) -> None:
        """Add released records to the output as numbered lines, and remove dropped ones."""
        if not len(batch):
            self.live.settle()
            return
        decoded = decode(self.pipeline, batch, self.records)
        self.live.settle()
        codes = self.pipeline.texts.user.encode(decoded.truth["original_user"].drop_nulls())
        self._released_of = grown(self._released_of, int(codes.max(initial=-1)) + 1)
        np.add.at(self._released_of, codes, 1)
        first, self.released = self.released + 1, self.released + decoded.frame.height
        offset = pl.Series("offset", np.arange(first, self.released + 1))
        columns = (decoded.frame[name] for name in CANONICAL)
        output = Output(first, pl.DataFrame([offset, *columns]), decoded.truth)
        self._outputs.append(output)
        for observer in self.observers:
            observer.on_release(output)

    def _apply_other(self, entry: Entry) -> None:
        if entry.frame is not None:
            add = self.clicks.add_queries if entry.kind == "queries" else self.clicks.add_events
            add(entry.frame, entry.at)
            self._push_joined(entry.at)
        elif entry.kind == "tick":
            self._push_joined(entry.at)
            expired = self._expired(entry.at, int(entry.facts.get("retention", 0)))
            if expired.size:
                self.pipeline.discard(expired, EXPIRED)
                self.live.settle()
        elif entry.kind == "erasure":
            self._erase(str(entry.facts["user"]), entry.facts.get("before", ()))
        elif entry.kind == "setting":
            self.change(str(entry.facts["name"]), entry.facts["value"])
        else:
            assert entry.kind == "epoch", entry.kind
            self._rotate()

    def _push_joined(self, at: int) -> None:
        due = self.clicks.due(at)
        if due.height:
            self._push(due)

    def is_due(self, now: int, retention: int) -> bool:
        """Whether a tick at this time would release or drop a record; times in microseconds."""
        joined_at = self.clicks.next_due()
        return (joined_at is not None and joined_at <= now) or bool(self._expired(now, retention).size)

    def _expired(self, now: int, retention: int) -> IntArray:
        return self.records.older_than(now - retention) if retention else np.empty(0, np.int64)

    # Epochs and settings

    def _rotate(self) -> None:
        """End the epoch: release or drop held records, then start with other keys and pseudonyms."""
        self.last_result = {}
        self._push_joined(_END_OF_TIME)
        self._release(self.pipeline.close_at(self.accepted))
        self.dropped.update(self._dropped_by_methods())
        self.epoch += 1
        self._begin_epoch()
        for observer in self.observers:
            observer.on_epoch(self)

    def change(self, name: str, value: Any) -> None:
        """Change a setting of a method that allows it while it runs (`Traits.live_settings`)."""
        self.last_result = {}
        for stage, own in zip(self.pipeline, self.pipeline.traits, strict=True):
            if name in own.live_settings:
                stage.change_setting(name, value)
                for observer in self.observers:
                    observer.on_setting(self)
                return
        raise Refused(
            f"`{name}` cannot be changed while the service runs", hint="restart the service with it"
        )

    def _dropped_by_methods(self) -> Counter[str]:
        return Counter(
            {f"{m}: {r}": n for m, reasons in self.pipeline.dropped().items() for r, n in reasons.items()}
        )

    def reasons(self) -> dict[str, int]:
        """Return the number of dropped searches by reason."""
        return dict(self.dropped + self.clicks.dropped + self._dropped_by_methods())

    # Users

    def _erase(self, pseudonym: str, before: Sequence[str]) -> None:
        """Erase a user: held records are deleted, and the user's label is never used again.

        `before` are the user's pseudonyms of earlier epochs; profiles of all their labels are deleted too.
        """
        label = self.erased.current(pseudonym, self.epoch)
        heads = self._searches_of(label)
        waiting = self.clicks.erase(label)
        held = self.records.take(heads)[0].height + waiting
        self.last_result = {"held": held, "released": self._released_by(label)}
        self.pipeline.erase(self.pipeline.texts.user.intern([label]), heads)
        self.accepted += waiting  # numbered only to be dropped
        self.dropped[ERASED] += waiting
        self.profiles_to_delete += [label, *self.erased.all_labels(before)]
        self.erased.erase(pseudonym)
        for observer in self.observers:
            observer.on_erasure(self, label)
        if self._classifier is not None:
            self._classifier.clear_cache()
        self.live.settle()

    def records_of(self, pseudonym: str) -> tuple[pl.DataFrame, int]:
        """Return the held records of a user, and the number of released ones."""
        label = self.erased.current(pseudonym, self.epoch)
        waiting = self.clicks.held_by(label).select(CANONICAL)
        heads = self._searches_of(label)
        held = self.records.take(heads)[0].select(CANONICAL) if heads.size else waiting.clear()
        return pl.concat([held, waiting]), self._released_by(label)

    def _searches_of(self, label: str) -> IntArray:
        """Return the numbers of a user's held searches; no other column of other users is copied."""
        held = self.records.columns("user", "_head")
        if held is None:
            return np.empty(0, np.int64)
        return held.filter(pl.col("user") == label)["_head"].unique().sort().to_numpy()

    def _released_by(self, label: str) -> int:
        code = self.pipeline.texts.user.find(label)
        return int(self._released_of[code]) if 0 <= code < self._released_of.size else 0

    def snapshot(self) -> dict[str, Any]:
        """Return the state by name. It holds raw records, so protect it like the log."""
        own: dict[str, Any] = {f"own/{name}": getattr(self, name) for name in _COUNTERS}
        own |= {"own/dropped": dict(self.dropped), "own/erased": self.erased.times_erased}
        own |= {"own/read": self.read, "own/profiles_to_delete": self.profiles_to_delete}
        own |= {f"clicks/{name}": part for name, part in self.clicks.snapshot().items()}
        own |= {"own/newest": self.live.newest, "own/released_of": self._released_of}
        return own | self.live.dump()

    def restore(self, parts: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        own = state_codec.with_prefix("own/", parts)
        for name in _COUNTERS:
            setattr(self, name, int(own[name]))
        self._begin_epoch()
        self.dropped, self.erased.times_erased = Counter(own["dropped"]), dict(own["erased"])
        self.live.newest, self._released_of = int(own["newest"]), own["released_of"]
        self.read, self.profiles_to_delete = dict(own["read"]), list(own["profiles_to_delete"])
        self.clicks.restore(state_codec.with_prefix("clicks/", parts))
        self.live.load(parts)
