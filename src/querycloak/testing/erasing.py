"""Runs a method while people ask to be erased, and come back under other ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from querycloak.audits.evidence import Evidence
from querycloak.dictionary import Dictionaries
from querycloak.engines.codec import Released, decode
from querycloak.engines.record_store import RecordStore
from querycloak.engines.state_codec import compact_dictionaries
from querycloak.log import Batch, IntArray
from querycloak.testing.bench import KEY, Bench, cut

_TEXT = ("user", "query", "url", "category")


def spelled(batch: Batch) -> list[tuple[Any, ...]]:
    """Return a batch as plain tuples with texts in the place of codes, to compare over dictionaries."""
    columns = [
        getattr(batch.texts, name).decode(np.ascontiguousarray(values)).to_list()
        if name in _TEXT
        else values.tolist()
        for name, values in batch.arrays().items()
    ]
    return list(zip(*columns, strict=True))


class Erasing:
    """A log in pieces; after each but the last, one or two of the people so far are erased.

    From then on they go by another id. With `audited`, what leaves is spelled out at once, as an engine does:
    later the method knows no more who was erased.
    """

    def __init__(self, bench: Bench, at: Sequence[int], *, audited: bool = False) -> None:
        ends = sorted(min(place, len(bench.batch)) for place in at)
        self.bench, names = _with_returns(bench, ends)
        self.texts, self._ends = self.bench.texts, [*ends, len(bench.batch)]
        self.pieces = list(cut(self.bench.batch, at))
        names += [[] for _ in range(len(self.pieces) - len(names))]
        self.victims = [self.texts.user.intern(some) for some in names]
        self._set_up(self.texts)
        self._audited, self._released = audited, list[Released]()
        self._erased: list[tuple[str, int]] = []
        self._names = names
        self._pending = RecordStore()
        self._pending.add(self.bench.frame)
        self.shown = Batch.empty(self.texts)

    def _set_up(self, texts: Dictionaries) -> None:
        self.texts = texts
        self.method = self.bench.method(self.bench.settings, KEY, texts)
        self._pipeline = self.bench.pipeline(self.method)
        self._pipeline.register_users(self.bench.batch.user)

    def push(self, place: int) -> Batch:
        """Push a piece; give what leaves."""
        return self._note(self._pipeline.push(self._in_codes(self.pieces[place])))

    def push_one_by_one(self, place: int) -> None:
        """Push the records of a piece each by itself."""
        for record in cut(self.pieces[place], range(1, len(self.pieces[place]))):
            self._note(self._pipeline.push(self._in_codes(record)))

    def _in_codes(self, piece: Batch) -> Batch:
        """Return a piece in the codes of the dictionaries that are in use now."""
        if self.texts is piece.texts:
            return piece
        columns = {
            name: getattr(self.texts, name).encode(getattr(piece.texts, name).decode(np.array(codes)))
            for name, codes in (("query", piece.query), ("url", piece.url), ("category", piece.category))
        }
        return Batch(**(piece.arrays() | columns), texts=self.texts)

    def close(self) -> Batch:
        """End the input; give what leaves."""
        return self._note(self._pipeline.close_at(self.bench.frame.height))

    def _note(self, out: Batch) -> Batch:
        if self._audited:
            self._released.append(decode(self._pipeline, out, self._pending))
        self.shown += out
        return out

    def erase(self, place: int) -> None:
        """Erase those whose turn it is after a piece."""
        users = self.victims[place]
        if users.size:
            self._pipeline.erase(users, np.setdiff1d(self.rows_of(place), self.shown.row))
            self._erased += [(name, self._read(place)) for name in self._names[place]]

    def _read(self, place: int) -> int:
        return int(self.bench.batch.seq[: self._ends[place]].max(initial=0))

    def rows_of(self, place: int) -> IntArray:
        """Return the input rows that had come by the end of a piece of those who are erased then."""
        so_far = self.bench.batch[: self._ends[place]]
        return so_far.row[np.isin(so_far.user, self.victims[place])]

    def forgotten(self, place: int, column: str) -> set[str]:
        """Return the texts that by the end of a piece nobody but the erased had brought."""
        so_far = self.bench.batch[: self._ends[place]]
        theirs = np.isin(so_far.user, np.concatenate(self.victims[: place + 1]))
        dictionary = getattr(self.bench.texts, column)
        own, otown = (
            set(dictionary.decode(np.array(getattr(so_far, column)[which])).drop_nulls())
            for which in (theirs, ~theirs)
        )
        return own - (_with_ancestors(otown) if column == "category" else otown)

    def restart(self) -> None:
        """Carry on in a fresh instance."""
        state = {name: array.copy() for name, array in self._pipeline.snapshot().items()}
        self._set_up(self.texts)
        self._pipeline.restore(state)

    def recode(self) -> None:
        """Carry on in a fresh instance with fresh dictionaries."""
        new = Dictionaries()
        state = compact_dictionaries(self._pipeline.snapshot(), self._pipeline, self.texts, new)
        self._set_up(new)
        self._pipeline.restore(state)

    def to_the_end(self) -> Erasing:
        """Push, erase and close everything."""
        for place in range(len(self.pieces)):
            self.push(place)
            self.erase(place)
        self.close()
        return self

    def evidence(self) -> Evidence:
        """Show what has left so far as an audit sees it."""
        shown = Released(
            pl.concat([part.frame for part in self._released]),
            pl.concat([part.truth for part in self._released]),
        )
        schema = {"user": pl.String, "erased_after": pl.Int64}
        erased = pl.DataFrame(self._erased, schema=schema, orient="row")
        return self.bench.evidence_of(self.method, shown, erased)


def _with_ancestors(paths: set[str]) -> set[str]:
    """Add the categories above: methods count by them too."""
    return paths | {path[:place] for path in paths for place, sign in enumerate(path) if sign == "/"}


def _with_returns(bench: Bench, ends: list[int]) -> tuple[Bench, list[list[str]]]:
    """Choose whom to erase at these places, and give the bench of a log in which they return as otown."""
    frame = bench.frame
    name = dict(zip(frame["row"].to_list(), frame["user"].to_list(), strict=True))
    of_search: dict[int, list[int]] = {}
    for row, head in zip(frame["row"].to_list(), frame["_head"].to_list(), strict=True):
        of_search.setdefault(head, []).append(row)
    searches, chosen = bench.batch.row.tolist(), list[list[str]]()
    gone: set[str] = set()
    for turn, end in enumerate(ends):
        here = sorted({name[head] for head in searches[:end]} - gone)
        picks = (7 * end + turn, 3 * end + turn + 1)[: 1 + (len(here) > 3)]
        some = sorted({here[pick % len(here)] for pick in picks}) if here else []
        gone |= set(some)
        for row in (row for head in searches[end:] for row in of_search[head]):
            name[row] += "~" if name[row] in some else ""
        chosen.append(some)
    users = pl.Series("user", [name[row] for row in frame["row"].to_list()], dtype=pl.String)
    log = frame.drop("_when", "_place", "_head").with_columns(users)
    return Bench(bench.method, bench.settings, log), chosen
