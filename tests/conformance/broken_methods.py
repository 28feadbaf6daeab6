"""Methods that are broken on purpose, each in one way; the suite must catch every one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import polars as pl

from querycloak.errors import DataError
from querycloak.log import Batch
from querycloak.methods.cohort import Cohort
from querycloak.methods.frequent_only import FrequentOnly
from querycloak.methods.microaggregation.by_text import MicroaggPlain
from querycloak.methods.rules import Rules
from querycloak.methods.swap import Swap
from querycloak.methods.z_anonymity import ZAnonymity
from querycloak.protector import HELD_CODES
from tests.reference.tally import Tally


class EarlyRelease(FrequentOnly):
    """Release at k - 1 people. Guarantee: none. Limits: anything."""

    def push(self, batch):
        kind = FrequentOnly(self.Settings(k=max(2, self.settings.k - 1)), self.key, self.texts)
        kind.__dict__ |= {
            n: self.__dict__[n] for n in ("_queries", "_pairs", "_held", "dropped", "_dropped_rows")
        }
        out = FrequentOnly.push(kind, batch)
        self._held = kind._held
        return out


class LostRecords(FrequentOnly):
    """Forget every seventh held record."""

    def close(self):
        self._held = self._held[np.arange(len(self._held)) % 7 != 0]
        return super().close()


class DoubleRelease(Rules):
    """Show the first record of a piece twice."""

    def push(self, batch):
        out = super().push(batch)
        return out + out[:1]


class MadeUpRecords(Rules):
    """Show a record that never was."""

    def push(self, batch):
        out = super().push(batch)
        return out.replace(row=np.where(np.arange(len(out)) == 0, 10**9, out.row))


class BrokenRestore(FrequentOnly):
    """Forget the held records on restart."""

    def restore(self, state):
        super().restore(state)
        self._held = Batch.empty(self.texts)


class WrongPartitionKey(FrequentOnly):
    """Split the askers of one query over workers."""

    def partition_key(self, batch):
        return batch.user


class BrokenPromise(Rules):
    """Let queries with digits through."""

    def push(self, batch):
        self._judge_new(int(batch.query.max(initial=-1)) + 1)
        digit = list(self._tests).index("a digit") + 1 if "a digit" in self._tests else -1
        self._verdict[self._verdict == digit] = 0
        return super().push(batch)


class InputChanged(Rules):
    """Write into the batch it was given."""

    def push(self, batch):
        if len(batch):
            batch.time[0] += 1
        return super().push(batch)


class LeakyError(Rules):
    """Show a query in an error."""

    def push(self, batch):
        if len(batch) > 3:
            raise DataError(f"cannot judge {self.texts.query.decode(batch.query[:1]).to_list()}")
        return super().push(batch)


class LeakyCause(Rules):
    """Show a user in the cause of an error that shows nothing itself."""

    def close(self):
        for user in self._users[:1]:
            raise DataError("the end cannot be judged") from KeyError(self.texts.user.decode(user)[0])
        return super().close()

    _users = ()

    def push(self, batch):
        self._users = (*self._users, batch.user[:1])[:1] if len(batch) else self._users
        return super().push(batch)


class DependsOnPieces(ZAnonymity):
    """Let the first record of every piece go unseen."""

    def push(self, batch):
        self.drop(batch.row[:1], "first of its piece")
        return super().push(batch[1:])


class GrowsForEver(Rules):
    """Remember every row."""

    _rows = np.empty(0, np.int64)

    def push(self, batch):
        self._rows = np.concatenate([self._rows, batch.row])
        return super().push(batch)

    def snapshot(self):
        return super().snapshot() | {"rows": np.repeat(self._rows, 50)}

    def restore(self, state):
        super().restore(state)
        self._rows = state["rows"][::50]


class WrongMoment(FrequentOnly):
    """Claim that everything left when it came."""

    def push(self, batch):
        entered = dict(zip(batch.row.tolist(), batch.seq.tolist(), strict=True))
        out = super().push(batch)
        return out.replace(seq=np.array([entered.get(row, 1) for row in out.row.tolist()], np.int64))


class DrawsFromAGlobal(Rules):
    """Drop records by a counter that all instances share."""

    _counter = itertools.count()

    def push(self, batch):
        keep = np.array([next(self._counter) % 5 != 0 for _ in range(len(batch))], bool)
        self.drop(batch.row[~keep], "bad luck")
        return super().push(batch[keep])


class TableBesideRecords(Tally):
    """Hand records back beside the table."""

    def push(self, batch):
        super().push(batch)
        return batch[:1]


class FreshNoiseEachTime(Tally):
    """Draw noise whenever it is asked: the mean of many answers is the truth."""

    _draws = itertools.count()

    def counts(self):
        return super().counts().with_columns(pl.col("count") + next(self._draws))


class TableOfPieces(Tally):
    """Count the first record of each piece twice."""

    def push(self, batch):
        self._seen += batch[:1]
        return super().push(batch)


class ErasesNobody(FrequentOnly):
    """Go on as if nobody had asked to be erased."""

    def erase(self, users, rows):
        pass


class DrawsErasedLabels(Cohort):
    """Drop the records of the erased, and leave them their seats."""

    def erase(self, users, rows):
        super().erase(np.empty(0, np.int64), rows)


class ReleasesWithAnEmptySeat(Cohort):
    """Close ranks when somebody is erased, and release with fewer than k people."""

    def erase(self, users, rows):
        super().erase(np.empty(0, np.int64), rows)
        for user in users[users < self.assignment.people].tolist():
            if self.assignment.cohort_of[user] >= 0:
                self.assignment._leave_open_cohort(user)


class LosesEmptySeats(Cohort):
    """Forget on restart which seats are empty."""

    def restore(self, state):
        super().restore(state | {"book_empty": state["book_empty"][:0]})


class KeepsErasedTokens(Swap):
    """Drop the records of the erased, and leave their tokens among the others'."""

    def erase(self, users, rows):
        super().erase(np.empty(0, np.int64), rows)


class RemembersErasedTexts(FrequentOnly):
    """Drop the records of the erased, and go on counting who asked what."""

    def erase(self, users, rows):
        self._held = self._held[self.drop_erased(self._held, users, rows)]


class HidesItsCodes(FrequentOnly):
    """Say of some arrays that they hold no codes."""

    @classmethod
    def traits(cls, settings):
        return replace(super().traits(settings), coded_state=HELD_CODES)


class HidesItsCategories(ZAnonymity):
    """Say that the keys of categories hold no codes."""

    @classmethod
    def traits(cls, settings):
        own = super().traits(settings)
        kept = {name: column for name, column in own.coded_state.items() if column != "category"}
        return replace(own, coded_state=kept)


class ShowsUsers(FrequentOnly):
    """Declare that labels mean nothing, and leave the users in their column."""

    @classmethod
    def traits(cls, settings):
        own = super().traits(settings)
        return replace(own, empties=own.empties - {"user"})

    def push(self, batch):
        out = super().push(batch)
        return out.replace(blank=np.zeros(len(out), np.int64))


class DrawsWithAConstantKey(Cohort):
    """Draw the same labels in every release."""

    def __init__(self, settings, key, texts):
        super().__init__(settings, b"the same thirty-two bytes always", texts)


class SamePseudonyms(Rules):
    """Write the same new labels in every release."""

    def __init__(self, settings, key, texts):
        super().__init__(settings, b"the same thirty-two bytes always", texts)


class KeepsInputOrder(MicroaggPlain):
    """Return the records of one moment as they stand in the log."""

    @classmethod
    def traits(cls, settings):
        return replace(super().traits(settings), sets_release_order=True)

    def close(self):
        out = super().close()
        return out[np.lexsort((out.row, out.time))]


#: Each broken method and the check that must catch it.
CAUGHT_BY = {
    EarlyRelease: "the_promise_holds_at_every_moment",
    LostRecords: "nothing_is_made_up_shown_twice_or_lost",
    DoubleRelease: "nothing_is_made_up_shown_twice_or_lost",
    MadeUpRecords: "nothing_is_made_up_shown_twice_or_lost",
    BrokenRestore: "a_restart_makes_no_difference",
    WrongPartitionKey: "splitting_by_the_key_makes_no_difference",
    BrokenPromise: "the_promise_holds_at_every_moment",
    InputChanged: "the_input_is_left_alone",
    LeakyError: "errors_show_no_cell",
    LeakyCause: "errors_show_no_cell",
    DependsOnPieces: "pieces_make_no_difference",
    GrowsForEver: "memory_stays_bounded",
    WrongMoment: "the_promise_holds_at_every_moment",
    DrawsFromAGlobal: "pieces_make_no_difference",
    TableBesideRecords: "a_table_holds_counts_and_no_records",
    FreshNoiseEachTime: "a_table_holds_counts_and_no_records",
    TableOfPieces: "pieces_make_no_difference",
    ErasesNobody: "what_is_erased_never_comes_out",
    DrawsErasedLabels: "erasing_people_keeps_the_promise",
    ReleasesWithAnEmptySeat: "erasing_people_keeps_the_promise",
    LosesEmptySeats: "erasures_do_not_depend_on_pieces_or_restarts",
    KeepsErasedTokens: "erasing_people_keeps_the_promise",
    RemembersErasedTexts: "texts_that_nobody_needs_are_forgotten",
    HidesItsCodes: "texts_that_nobody_needs_are_forgotten",
    HidesItsCategories: "texts_that_nobody_needs_are_forgotten",
    ShowsUsers: "emptied_columns_are_empty",
    DrawsWithAConstantKey: "another_key_gives_another_release",
    SamePseudonyms: "another_key_gives_another_release",
    KeepsInputOrder: "ties_do_not_follow_input_rows",
}
