"""One list of checks for every protection method, built-in or plugin.

A plugin's own tests run them all with a few lines:

    @settings(deadline=None)  # the first call compiles
    @given(log=logs(), at=cuts())
    def test_my_method_conforms(log, at):
        run_checks(MyMethod, log, at)

`run_check` runs a single one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from itertools import takewhile
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.dictionary import Dictionaries
from querycloak.errors import QueryCloakError
from querycloak.keys import derive
from querycloak.log import COLUMN_BIT, COUNTS, Batch, IntArray
from querycloak.protector import Labels, Protector, State
from querycloak.settings import Settings
from querycloak.testing.harness import (
    KEY,
    ErasureRun,
    Harness,
    cut,
    has_ties,
    in_input_order,
    rows,
    spelled_rows,
)

__all__ = ["CHECKS", "KEY", "Check", "Harness", "check", "cut", "rows", "run_check", "run_checks"]

#: A day in the unit of times.
_DAY: Final = 86_400_000_000
#: Columns whose cells no error may show.
_TEXTS: Final = {"user", "query", "url", "category"}
#: Other keys, tried until something differs.
_KEYS: Final = tuple(derive(KEY, str(number)) for number in range(64))
Check = Callable[[Harness, Sequence[int]], None]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Add a check to the list."""
    CHECKS.append(function)
    return function


def run_check(wanted: Check, method: type[Protector], log: pl.DataFrame, at: Sequence[int]) -> None:
    """Run one check on each of a method's example settings, unless the method is exempt from it."""
    if wanted.__name__ in method.exempt:
        return
    for settings in method.examples():
        wanted(Harness(method, settings, log), at)


def run_checks(
    method: type[Protector],
    log: pl.DataFrame,
    at: Sequence[int],
    checks: Sequence[Check] | None = None,
    examples: Sequence[Settings] | None = None,
) -> None:
    """Run all checks on each of a method's example settings; raise one error that names all that failed.

    The checks share one harness per settings, so this costs less than `run_check` for each of them.
    """
    failed: list[Exception] = []
    for settings in method.examples() if examples is None else examples:
        harness = Harness(method, settings, log)
        for wanted in CHECKS if checks is None else checks:
            if wanted.__name__ in method.exempt:
                continue
            try:
                wanted(harness, at)
            except Exception as error:
                error.add_note(f"check `{wanted.__name__}` of `{method.name}` with {settings}, cut at {at}")
                failed.append(error)
    if failed:
        names = ", ".join(sorted({error.__notes__[-1].split("`")[1] for error in failed}))
        raise ExceptionGroup(f"`{method.name}` fails {names}", failed)


def _equal(a: State, b: State) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@check
def pieces_make_no_difference(harness: Harness, at: Sequence[int]) -> None:
    """However a log is cut, the same leaves, in the same order, at the same moments; and is counted."""
    assert rows(harness.run(at)) == rows(harness.whole)
    if harness.traits.is_table:
        whole, parts = harness.make(), harness.make()
        whole.push(harness.batch)
        for piece in cut(harness.batch, at):
            parts.push(piece)
        assert _equal(whole.snapshot(), parts.snapshot()), "pieces are counted otherwise than the whole"


@check
def the_promise_holds_at_every_moment(harness: Harness, at: Sequence[int]) -> None:
    """The audit passes after every piece, not only at the end: a stream has no end."""
    method, shown = harness.make(), Batch.empty(harness.texts)
    promise = harness.method.promise(harness.settings)
    for piece in cut(harness.batch, at):
        shown += method.push(piece)
        if not harness.traits.is_table:  # a table is there at the end
            _assert_kept(promise.audit(harness.evidence(method, shown)))
    shown += harness.pipeline(method).close_at(harness.frame.height)
    _assert_kept(promise.audit(harness.evidence(method, shown)))


def _assert_kept(findings: list[Any]) -> None:
    broken = [finding for finding in findings if finding.verdict == "broken"]
    assert not broken, "; ".join(f"{finding.check}: {finding.detail}" for finding in broken)


@check
def nothing_is_made_up_shown_twice_or_lost(harness: Harness, at: Sequence[int]) -> None:
    """Every record that went in comes out once or is dropped once, with a reason; none is new."""
    method = harness.make()
    shown = np.concatenate(
        [method.push(piece).row for piece in cut(harness.batch, at)] + [method.close().row]
    )
    _assert_complete(shown, method, harness.batch)


def _assert_complete(shown: IntArray, method: Protector, batch: Batch) -> None:
    dropped, real = method.drain_dropped(), shown[shown >= 0]
    assert np.unique(real).size == real.size, "a record was shown twice"
    assert np.isin(real, batch.row).all(), "a record was made up"
    assert sum(method.dropped.values()) == dropped.size, "the counters do not fit the dropped rows"
    if real.size == shown.size:
        both = np.sort(np.concatenate([shown, dropped]))
        assert np.array_equal(both, np.sort(batch.row)), "a record was lost, or dropped and shown"


@check
def a_table_holds_counts_and_no_records(harness: Harness, at: Sequence[int]) -> None:
    """What gives a table gives no records; asking for it again gives the same, not fresh noise."""
    if not harness.traits.is_table:
        return
    method = harness.make()
    left = [len(method.push(piece)) for piece in cut(harness.batch, at)] + [len(method.close())]
    assert not any(left), "records left beside the table"
    table, own = harness.counts(method), method.counts()
    assert set(own.columns) <= set(COUNTS), "the table has a column that tables do not have"
    assert own.schema.get("count") == pl.Int64, "the table has no whole counts"
    assert not table.select(pl.exclude("count")).is_duplicated().any(), "the table says a thing twice"
    assert harness.counts(method).equals(table), "asking again gives another table"


@check
def records_leave_no_earlier_than_they_come(harness: Harness, at: Sequence[int]) -> None:
    """The moment of release is never before the record was read, and never after the piece it left with."""
    method = harness.make()
    entered = dict(zip(harness.batch.row.tolist(), harness.batch.seq.tolist(), strict=True))
    for piece in cut(harness.batch, at):
        out = method.push(piece)
        for row, seq in zip(out.row.tolist(), out.seq.tolist(), strict=True):
            assert entered.get(row, 0) <= seq <= int(piece.seq.max()), "a moment of release is wrong"


@check
def a_restart_makes_no_difference(harness: Harness, at: Sequence[int]) -> None:
    """Restoring a fresh instance from a snapshot at any cut changes nothing."""
    method, shown = harness.make(), Batch.empty(harness.texts)
    for piece in cut(harness.batch, at):
        shown += method.push(piece)
        state = {name: array.copy() for name, array in method.snapshot().items()}
        assert all(array.dtype != object for array in state.values()), "a snapshot holds objects"
        method = harness.make()
        method.restore(state)
        assert _equal(method.snapshot(), state), "a restored method gives another snapshot"
    shown += method.close()
    whole = harness.make()
    expected = whole.push(harness.batch) + whole.close()
    assert sorted(rows(shown)) == sorted(rows(expected))
    assert method.dropped == whole.dropped


@check
def splitting_by_the_key_makes_no_difference(harness: Harness, at: Sequence[int]) -> None:
    """Workers that share nothing, each with its own keys, release together what one releases."""
    key = harness.make().partition_key(harness.batch)
    if key is None or not len(harness.batch):
        return
    shown = Batch.empty(harness.texts)
    for part in np.unique(key % 3):
        worker = harness.make()
        shown += worker.push(harness.batch[key % 3 == part]) + worker.close()
    whole = harness.make()
    assert sorted(rows(shown)) == sorted(rows(whole.push(harness.batch) + whole.close()))


@check
def codes_make_no_difference(harness: Harness, at: Sequence[int]) -> None:
    """What leaves depends on texts alone, not on the order in which they got their codes."""
    if harness.traits.is_table:
        return
    texts = Dictionaries()
    for name in ("user", "query", "url", "category"):
        if name in harness.frame.columns:
            getattr(texts, name).encode(harness.frame[name].unique().sort(descending=True))
    other = Harness(harness.method, harness.settings, harness.frame.drop("_when", "_place", "_head"), texts)
    assert spelled_rows(other.whole) == spelled_rows(harness.whole)


@check
def the_input_is_left_alone(harness: Harness, at: Sequence[int]) -> None:
    """No method writes into what it was given."""
    before = {name: array.copy() for name, array in harness.batch.arrays().items()}
    method = harness.make()
    for piece in cut(harness.batch, at):
        method.push(piece)
    method.close()
    assert all(np.array_equal(before[name], array) for name, array in harness.batch.arrays().items())


@check
def memory_stays_bounded(harness: Harness, at: Sequence[int]) -> None:
    """The state does not grow without end if the same users search again and again, a day or more apart."""
    if not len(harness.batch):
        return
    method, sizes = harness.make(), []
    # Closer repetitions would be in one window of time, whose records a method may keep.
    span = max(int(harness.batch.time.max() - harness.batch.time.min()) + 1, _DAY)
    for turn in range(16):
        later = {"row": turn * 10**6, "seq": turn * len(harness.batch), "time": turn * span}
        moved = {name: getattr(harness.batch, name) + by for name, by in later.items()}
        method.push(harness.batch.replace(**moved))
        method.drain_dropped()
        sizes.append(sum(array.nbytes for array in method.snapshot().values()))
    assert sizes[-1] <= 2 * max(sizes[:4]) + 4096, f"state grew from {max(sizes[:4])} to {sizes[-1]} bytes"


@check
def bad_settings_are_refused(harness: Harness, at: Sequence[int]) -> None:
    """A value of the wrong kind is refused with our own error, for every setting."""
    kind = type(harness.settings)
    for declared in fields(kind):
        chosen = harness.settings.as_dict() | {declared.name: object()}
        try:
            kind(**chosen)
        except QueryCloakError:
            continue
        raise AssertionError(f"`{declared.name}` takes anything")


@check
def the_docstring_is_complete(harness: Harness, at: Sequence[int]) -> None:
    """A reader finds what is promised and what is not."""
    for part in ("Guarantee:", "Limits:"):
        assert part in (harness.method.__doc__ or ""), f"the docstring has no {part[:-1]}"
    assert harness.method.promise(harness.settings).does_not_protect_against, "the promise names no limit"


@check
def errors_show_no_cell(harness: Harness, at: Sequence[int]) -> None:
    """No error of a method shows a cell of the log: neither its message, nor its notes, nor its causes."""
    texts = [
        harness.frame[name].drop_nulls().unique().to_list() for name in _TEXTS & {*harness.frame.columns}
    ]
    cells = "|".join(re.escape(text) for some in texts for text in some if len(text) > 2)
    for attempt in _attempts(harness, at):
        try:
            attempt()
        except Exception as error:
            shown = cells and re.search(rf"(?<!\w)(?:{cells})(?!\w)", "\n".join(_words_of(error)))
            assert not shown, "an error shows a cell of the log"  # which one, this message must not show


def _attempts(harness: Harness, at: Sequence[int]) -> Iterator[Callable[[], object]]:
    """Yield what a method may refuse: the log, erasures, a number of users, and states without an array."""
    method = harness.make()
    yield lambda: harness.run(at, method)
    yield lambda: ErasureRun(harness, at).to_the_end()
    yield method.counts
    yield from (partial(method.check_user_count, users) for users in range(3))
    try:
        state = method.snapshot()
    except Exception:
        yield method.snapshot
        return
    for name in state:
        rest = {other: array for other, array in state.items() if other != name}
        yield partial(harness.make().restore, rest)


def _words_of(error: BaseException | None) -> Iterator[str]:
    """Yield what is printed of an error: its message, its notes, its causes, and the errors in a group."""
    if error is None:
        return
    yield from (str(error), repr(error.args), *getattr(error, "__notes__", ()))
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for other in (error.__cause__, error.__context__, *inner):
        yield from _words_of(other)


@check
def emptied_columns_are_empty(harness: Harness, at: Sequence[int]) -> None:
    """Columns in `Traits.empties` are empty in the release; so is the user column under `Labels.NONE`."""
    method = harness.make()
    release = harness.evidence(method, harness.run(at, method)).text().collect()
    hidden = harness.traits.empties | ({"user"} if harness.traits.labels is Labels.NONE else set())
    for name in sorted(hidden & {*release.columns}):
        assert release[name].null_count() == release.height, f"the emptied column `{name}` holds values"


@check
def another_key_gives_another_release(harness: Harness, at: Sequence[int]) -> None:
    """Under another key, new pseudonyms are others, and labels and words that are drawn differ.

    Draws are tried under 64 keys: a method that chooses at least one of two equally likely values fails by
    chance once in 2⁶⁴ logs.
    """
    own = harness.traits
    if own.fresh_labels or own.labels is Labels.PARTS:
        both = harness.labels(KEY) & harness.labels(_KEYS[0])
        assert not both, "another key gives the same pseudonyms"
    if own.labels in (Labels.GROUP, Labels.OTHERS) or own.channel is not None:
        first = harness.draws(KEY)
        assert not first or any(harness.draws(key) != first for key in _KEYS), "the key changes no draw"


@check
def ties_do_not_follow_input_rows(harness: Harness, at: Sequence[int]) -> None:
    """Records that are released together are in order of time; a keyed hash decides between equal times.

    A method that keeps an order of its own must still not order equal times by input row: it fails if they
    are in that order under each of 32 keys, which happens by chance once in 2³² logs.
    """
    for place, out in enumerate(harness.moves(KEY)):
        moments = np.stack([out.seq, out.time])
        if not harness.traits.sets_release_order:
            in_time = moments[:, np.lexsort(moments[::-1])]
            assert np.array_equal(moments, in_time), "records of one moment are not in order of time"
        if has_ties(out):
            tied = filter(has_ties, (harness.moves(key)[place] for key in (KEY, *_KEYS)))
            in_order = list(takewhile(in_input_order, tied))
            assert len(in_order) < 32, "records of one moment are in the order of input"


@check
def erasing_people_keeps_the_promise(harness: Harness, at: Sequence[int]) -> None:
    """The audit passes after every piece and every erasure, and nothing is lost or shown twice."""
    run = ErasureRun(harness, at, audited=True)
    promise = harness.method.promise(harness.settings)
    for place in range(len(run.pieces)):
        run.push(place)
        if not harness.traits.is_table:
            _assert_kept(promise.audit(run.evidence()))
        run.erase(place)
    run.close()
    _assert_kept(promise.audit(run.evidence()))
    _assert_complete(run.shown.row, run.method, run.harness.batch)


@check
def what_is_erased_never_comes_out(harness: Harness, at: Sequence[int]) -> None:
    """After an erasure no record of the user is released, and the user's label is on no other."""
    run = ErasureRun(harness, at)
    labels, theirs = np.empty(0, np.int64), np.empty(0, np.int64)
    for place in range(len(run.pieces)):
        out = run.push(place)
        _assert_absent(out, labels, theirs)
        run.erase(place)
        labels = np.union1d(labels, run.method.label_of(run.victims[place]))
        theirs = np.union1d(theirs, run.rows_of(place))
    _assert_absent(run.close(), labels, theirs)


def _assert_absent(out: Batch, labels: IntArray, theirs: IntArray) -> None:
    labelled = np.isin(out.user, labels) & (out.blank & COLUMN_BIT["user"] == 0)
    assert not labelled.any(), "the label of somebody erased is on a later record"
    assert not np.isin(out.row, theirs).any(), "a record of somebody erased came out"


@check
def erasures_do_not_depend_on_pieces_or_restarts(harness: Harness, at: Sequence[int]) -> None:
    """However the records between two erasures are cut, and whatever was restarted, the same leaves."""
    plain = ErasureRun(harness, at).to_the_end()
    other = ErasureRun(harness, at)
    for place in range(len(other.pieces)):
        other.push_one_by_one(place)
        other.erase(place)
        other.restart()
    other.close()
    shown, expected = Counter(spelled_rows(other.shown)), Counter(spelled_rows(plain.shown))
    assert shown == expected, (
        f"record by record, with restarts, {len(shown - expected)} other records are released and "
        f"{len(expected - shown)} are missing: does something depend on how the input is cut?"
    )
    assert other.method.dropped == plain.method.dropped, "other records are dropped if the input is cut"


@check
def texts_that_nobody_needs_are_forgotten(harness: Harness, at: Sequence[int]) -> None:
    """State in fresh dictionaries goes on as before, and no text is in them that only the erased asked."""
    plain, other = ErasureRun(harness, at).to_the_end(), ErasureRun(harness, at)
    released: list[tuple[Any, ...]] = []
    for place in range(len(other.pieces)):
        released += spelled_rows(other.push(place))
        other.erase(place)
        other.recode()
        for column in ("query", "url", "category"):
            kept = set(getattr(other.texts, column).texts())
            assert not kept & other.forgotten(place, column), f"a {column} of somebody erased is kept"
    released += spelled_rows(other.close())
    assert Counter(released) == Counter(spelled_rows(plain.shown)), "after recoding, something else leaves"
    assert other.method.dropped == plain.method.dropped
    if harness.traits.is_table and not harness.traits.system_noise:
        assert harness.counts(other.method).equals(harness.counts(plain.method)), "recoding changes the table"
