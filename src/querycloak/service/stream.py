"""A pipeline over an endless log: the same entries in, the same released lines out, byte for byte."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.engines import state_codec
from querycloak.engines.codec import decode, encode
from querycloak.engines.live import OUT_OF_ORDER, LivePipeline
from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.engines.record_store import RecordStore
from querycloak.errors import Refused, UsageError
from querycloak.kernels.arrays import grown
from querycloak.keys import derive
from querycloak.log import CANONICAL, Batch, IntArray
from querycloak.protector import ERASED
from querycloak.service.classifying import Classifying
from querycloak.service.entries import Entry
from querycloak.service.joining import Joiner
from querycloak.service.onlooker import Onlooker
from querycloak.service.pseudonyms import Strangers

#: Why the service itself drops records, beside its methods' reasons.
WAITED: Final = "waited longer than the retention time"
#: Records of several entries that are pushed together, at most.
TOGETHER: Final = 1 << 17
#: Texts that nothing refers to any more before their room is used again.
SPARE_TEXTS: Final = 100_000
_END_OF_TIME: Final = 1 << 62


@dataclass(frozen=True)
class Output:
    """What left, for everybody: numbered lines. `truth` says where each came from and is for nobody."""

    first: int
    frame: pl.DataFrame
    truth: pl.DataFrame = field(repr=False)

    def __len__(self) -> int:
        return self.frame.height

    def lines(self) -> bytes:
        """Write the records as JSON lines, each with its offset first."""
        buffer = io.BytesIO()
        self.frame.write_ndjson(buffer)
        return buffer.getvalue()


class Stream:
    """The state of one source: its pipeline, what waits, and how far it has come.

    Record numbers are given here, in the order in which entries are applied; all draws are keyed by them.
    """

    def __init__(
        self, stages: list[Stage], secret: bytes, classify: Classifying | None = None, click_wait: int = 0
    ) -> None:
        self.joiner = Joiner(click_wait)
        self._stages, self._secret, self._classify = stages, secret, classify
        self.accepted = self.released = self.epoch = 0
        self.at = 0
        self.dropped: Counter[str] = Counter()
        self.onlooker = Onlooker()
        self.unwanted: list[str] = []  # labels whose profiles are still to be forgotten
        self.read: dict[str, int] = {}  # how far each file or partition was read that records came from
        self.refusal: Refused | None = None  # why the last entry was not carried out, if so
        self.told: dict[str, int] = {}  # what the last erasure found, for whoever asked for it
        self._begin()
        _check_live(stages)
        self.pipeline.check_ready()

    def _begin(self) -> None:
        """Start an epoch: fresh keys, nobody known, nothing waiting."""
        key = derive(self._secret, "stream", str(self.epoch))
        self.live = LivePipeline(self._stages, key, spare_texts=SPARE_TEXTS)
        self.strangers = Strangers(self._secret, self.epoch)
        self._left = np.zeros(0, np.int64)

    @property
    def pipeline(self) -> Pipeline:
        """The methods of this epoch."""
        return self.live.pipeline

    @property
    def waiting(self) -> RecordStore:
        """The records that were accepted and have not left."""
        return self.live.store

    @property
    def held(self) -> int:
        """Count the records that wait: for others like them, or for their clicks."""
        return self.waiting.count + self.joiner.waiting

    @property
    def came(self) -> int:
        """Count the records that were accepted; those that wait for clicks have no number yet."""
        return self.accepted + self.joiner.waiting

    @property
    def lost(self) -> int:
        """Count the records that were dropped, whatever the reason."""
        return self.accepted - self.released - self.waiting.count

    def apply(self, entries: Sequence[Entry]) -> Output:
        """Apply entries in order; give what leaves. Entries of records are pushed together."""
        parts: list[Output] = []
        gathered: list[pl.DataFrame] = []
        for entry in entries:
            self.at = max(self.at, entry.at)
            self.read |= entry.facts.get("read", {})
            if entry.kind == "records" and entry.frame is not None:
                at = pl.Series("_at", np.full(entry.frame.height, entry.at))
                gathered.append(entry.frame.hstack([at]))
                continue
            parts += self._pushed(gathered)
            gathered = []
            parts.append(self._careful(entry))
        parts += self._pushed(gathered)
        return _together(parts, self.released)

    def _pushed(self, frames: list[pl.DataFrame]) -> list[Output]:
        """Push records, several entries together but never a part of one: a search lies within its entry."""
        return [self.push(pl.concat(some)) for some in _gathered(frames)]

    def push(self, frame: pl.DataFrame) -> Output:
        """Take accepted records in, in the order in which they came; `_at` says when."""
        frame = self.strangers.renamed(frame)
        if self._classify is not None:
            frame = self._classify.fill(frame)
        read, self.accepted = self.accepted, self.accepted + frame.height
        row = np.arange(read, self.accepted)
        head = row if self.pipeline.per_row else row - frame["back"].to_numpy()
        numbers = [pl.Series("row", row), pl.Series("_head", head)]
        rows = pl.DataFrame([*(frame[name] for name in (*CANONICAL, "_at")), *numbers])
        self.onlooker.came(self, rows)
        self.waiting.add(rows)
        places = rows.hstack([pl.Series("_place", row)])
        released, late = self.live.push(encode(places, self.pipeline, read))
        if late.size:
            self.dropped[OUT_OF_ORDER] += int(late.size)
        return self._out(released)

    def _out(self, batch: Batch) -> Output:
        """Spell out what leaves and forget what was dropped."""
        if not len(batch):
            self.live.settle()
            return _nothing(self.released)
        left = decode(self.pipeline, batch, self.waiting)
        self.live.settle()
        self._count(left.truth["original_user"])
        first, self.released = self.released + 1, self.released + left.frame.height
        offset = pl.Series("offset", np.arange(first, self.released + 1))
        columns = (left.frame[name] for name in CANONICAL)
        output = Output(first, pl.DataFrame([offset, *columns]), left.truth)
        self.onlooker.left(output)
        return output

    def _count(self, authors: pl.Series) -> None:
        """Count how many records of each person have left."""
        codes = self.pipeline.texts.user.encode(authors.drop_nulls())
        self._left = grown(self._left, int(codes.max(initial=-1)) + 1)
        np.add.at(self._left, codes, 1)

    def _careful(self, entry: Entry) -> Output:
        """Apply an entry that may be refused: then nothing has changed, now and whenever it is replayed."""
        self.refusal = None
        try:
            return self._other(entry)
        except Refused as error:
            self.refusal = error
            return _nothing(self.released)

    def _other(self, entry: Entry) -> Output:
        """Apply an entry that brings no records, or none that are complete."""
        if entry.kind == "queries" and entry.frame is not None:
            self.joiner.add_queries(entry.frame, entry.at)
            return self._joined(entry.at)
        if entry.kind == "events" and entry.frame is not None:
            self.joiner.add_events(entry.frame, entry.at)
            return self._joined(entry.at)
        if entry.kind == "tick":
            joined = self._joined(entry.at)
            return _together([joined, self._tick(entry)], self.released)
        if entry.kind == "erasure":
            return self.erase(str(entry.facts["user"]), entry.facts.get("before", ()))
        if entry.kind == "setting":
            return self.change(str(entry.facts["name"]), entry.facts["value"])
        if entry.kind == "epoch":
            return self.rotate()
        raise AssertionError(entry.kind)

    def rotate(self) -> Output:
        """End the epoch: let go or drop what waits, then start anew with other keys and pseudonyms."""
        self.told = {}
        first = self._joined(_END_OF_TIME)
        last = _together([first, self._out(self.pipeline.close_at(self.accepted))], self.released)
        self._keep_dropped()
        self.epoch += 1
        self._begin()
        self.onlooker.turned(self)
        return last

    def _keep_dropped(self) -> None:
        for method, reasons in self.pipeline.dropped().items():
            for reason, count in reasons.items():
                self.dropped[f"{method}: {reason}"] += count

    def reasons(self) -> dict[str, int]:
        """Count what was dropped by reason, searches not rows."""
        now = {f"{m}: {r}": n for m, reasons in self.pipeline.dropped().items() for r, n in reasons.items()}
        return dict(self.dropped + self.joiner.dropped + Counter(now))

    def change(self, name: str, value: Any) -> Output:
        """Change a setting while records flow, where a method allows it: `k` of `swap`."""
        self.told = {}
        for stage, own in zip(self.pipeline, self.pipeline.traits, strict=True):
            if name in own.live_settings:
                stage.change_setting(name, value)
                self.onlooker.changed(self)
                return _nothing(self.released)
        raise Refused(f"`{name}` cannot be changed while records flow", hint="drain, then start anew with it")

    def erase(self, pseudonym: str, before: Sequence[str] = ()) -> Output:
        """Forget a person: what of hers waits is dropped, and nobody goes by her pseudonym again.

        `before` are her pseudonyms of earlier epochs: their profiles go too.
        """
        name = self.strangers.now(pseudonym)
        held, left = self.person(pseudonym)
        self.told = {"held": held.height, "released": left}
        code = self.pipeline.texts.user.intern([name])
        self.pipeline.erase(code, self._held_by(name))
        waited = self.joiner.erase(name)
        self.accepted += waited  # they get their numbers only to be dropped
        self.dropped[ERASED] += waited
        self.strangers.erase(pseudonym)
        self.unwanted += [name, *before]
        self.onlooker.erased(self, name)
        if self._classify is not None:
            self._classify.forget()
        return self._out(Batch.empty(self.pipeline.texts))

    def _held_by(self, name: str) -> IntArray:
        held = self.waiting.rows()
        if held is None:
            return np.empty(0, np.int64)
        return held.filter(pl.col("user") == name)["_head"].unique().sort().to_numpy()

    def _joined(self, at: int) -> Output:
        """Push the searches that have waited for clicks long enough."""
        due = self.joiner.due(at)
        return self.push(due) if due.height else _nothing(self.released)

    def _tick(self, entry: Entry) -> Output:
        """Drop what has waited too long, by the wall clock that entries carry."""
        retention = int(entry.facts.get("retention", 0))
        old = self.waiting.older_than(entry.at - retention) if retention else np.empty(0, np.int64)
        if not old.size:
            return _nothing(self.released)
        self.pipeline.discard(old, WAITED)
        return self._out(Batch.empty(self.pipeline.texts))

    def person(self, pseudonym: str) -> tuple[pl.DataFrame, int]:
        """Give what waits of a person, and how many records of hers have left."""
        name = self.strangers.now(pseudonym)
        held = self.waiting.rows()
        waits = self.joiner.held_by(name).select(CANONICAL)
        mine = (
            waits
            if held is None
            else pl.concat([held.filter(pl.col("user") == name).select(CANONICAL), waits])
        )
        code = self.pipeline.texts.user.find(name)
        return mine, int(self._left[code]) if 0 <= code < self._left.size else 0

    def snapshot(self) -> dict[str, Any]:
        """Give everything by name, for `state_codec.dump`. It holds raw records: guard it."""
        names = ("accepted", "released", "epoch", "at")
        own: dict[str, Any] = {f"own/{name}": getattr(self, name) for name in names}
        own |= {"own/dropped": dict(self.dropped), "own/erased": self.strangers.erased, "own/read": self.read}
        own |= {"own/unwanted": self.unwanted}
        own |= {f"joiner/{name}": part for name, part in self.joiner.snapshot().items()}
        own |= {"own/newest": self.live.newest, "own/left": self._left}
        return own | self.live.dump()

    def restore(self, parts: Mapping[str, Any]) -> None:
        """Carry on from a snapshot."""
        own = state_codec.with_prefix("own/", parts)
        self.epoch = int(own["epoch"])
        self._begin()
        for name in ("accepted", "released", "at"):
            setattr(self, name, int(own[name]))
        self.dropped, self.strangers.erased = Counter(own["dropped"]), dict(own["erased"])
        self.live.newest, self._left, self.read = int(own["newest"]), own["left"], dict(own["read"])
        self.unwanted = list(own["unwanted"])
        self.joiner.restore(state_codec.with_prefix("joiner/", parts))
        self.live.load(parts)


def _gathered(frames: list[pl.DataFrame]) -> Iterator[list[pl.DataFrame]]:
    """Put frames together until they are many rows."""
    some: list[pl.DataFrame] = []
    for frame in frames:
        some.append(frame)
        if sum(one.height for one in some) >= TOGETHER:
            yield some
            some = []
    if some:
        yield some


def _nothing(released: int) -> Output:
    return Output(released + 1, pl.DataFrame(), pl.DataFrame())


def _together(parts: list[Output], released: int) -> Output:
    """Join what left in several steps."""
    left = [part for part in parts if len(part)]
    if not left:
        return _nothing(released)
    frames, truths = [part.frame for part in left], [part.truth for part in left]
    return Output(left[0].first, pl.concat(frames), pl.concat(truths, how="diagonal_relaxed"))


def _check_live(stages: list[Stage]) -> None:
    """Refuse what can give nothing before the end of a log that has none."""
    for stage in stages:
        own = stage.traits
        if own.needs_whole_log:
            raise UsageError(
                f"`{stage.method}` needs the whole log, and a live one never ends",
                hint="use it with `querycloak protect` on the nightly file",
            )
        if own.budget is not None and own.budget.when_spent == "refuse":
            raise UsageError(
                f"`{stage.method}` would stop the stream when somebody's budget is spent",
                hint="use `overspent=drop`",
            )
        if own.fresh_labels:
            raise UsageError(
                "the service gives everybody a pseudonym at the door, anew in each epoch",
                hint="leave out `labels=fresh`",
            )
