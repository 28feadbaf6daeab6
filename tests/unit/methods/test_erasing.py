"""People who ask to be erased: from `cohort`, from `swap`, and from methods that run behind them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.dictionary import Dictionaries
from querycloak.engines.codec import encode_and_register
from querycloak.engines.pipeline import Pipeline, parse_stages
from querycloak.engines.state_codec import compact_dictionaries, is_outgrown
from querycloak.engines.time_order import in_order
from querycloak.keys import derive
from querycloak.log import Batch
from querycloak.methods.cohort import Cohort
from querycloak.methods.cohort.audit import GENERATIONS
from querycloak.methods.frequent_only import FrequentOnly
from querycloak.methods.swap import SURPLUS, Swap
from querycloak.protector import ERASED, UNDER_ERASED_LABEL
from querycloak.testing.harness import ErasureRun, Harness
from tests.reference.naive_cohort import NaiveCohort
from tests.support.logs import made_up

KEY = b"k" * 32
NOBODY = np.empty(0, np.int64)


class Desk:
    """A method beside a growing dictionary of users: asks and erases by small numbers."""

    def __init__(self, kind, settings):
        self.texts = Dictionaries()
        if hasattr(settings, "labels"):
            settings = replace(settings, labels="keep")  # labels are numbers of users
        self.method = kind(settings, KEY, self.texts)
        self.author: dict[int, int] = {}

    def ask(self, *users, category="Sports", query="q"):
        codes = self.texts.user.intern([f"user {user}" for user in users])
        rows = np.arange(len(self.author), len(self.author) + codes.size)
        self.author |= dict(zip(rows.tolist(), users, strict=True))
        return self.method.push(
            Batch.of(
                {
                    "row": rows,
                    "seq": rows + 1,
                    "user": codes,
                    "query": np.repeat(self.texts.query.intern([query]), codes.size),
                    "category": np.repeat(self.texts.category.intern([category]), codes.size),
                    "time": rows,
                },
                self.texts,
            )
        )

    def erase(self, *users):
        rows = [row for row, user in self.author.items() if user in users]
        self.method.erase(self.texts.user.intern([f"user {u}" for u in users]), np.array(rows, np.int64))

    def labels(self, batch):
        return [int(name.removeprefix("user ")) for name in self.texts.user.decode(batch.user)]


steps = st.lists(st.tuples(st.sampled_from(["ask", "ask", "ask", "erase"]), st.integers(0, 7)), max_size=60)


@given(steps=steps, k=st.integers(2, 4))
def test_seats_and_labels_are_those_of_the_naive_cohorts(steps, k):
    desk = Desk(Cohort, Cohort.Settings(k=k, shards=2))
    plain = NaiveCohort(k, lambda user: shard(desk, user), derive(desk.method.key, "label")[:16])
    came, lives, row = set(), dict.fromkeys(range(8), 0), 0
    for what, number in steps:
        user = 100 * lives[number] + number  # who was erased comes back as somebody else
        if what == "ask":
            came.add(user)
            out = desk.ask(user)
            found = sorted(zip(out.row.tolist(), desk.labels(out), strict=True))
            assert found == sorted(plain.arrive(user, row))
            row += 1
        elif user in came:
            desk.erase(user)
            lives[number] += 1
            assert sorted(desk.method.drain_dropped().tolist()) == sorted(plain.erase(user))


def shard(desk, user):
    code = desk.texts.user.intern([f"user {user}"])
    return int(desk.method.partition_key(Batch.of({"row": code, "user": code}, desk.texts))[0])


def test_a_cohort_holds_until_somebody_new_takes_the_seat():
    desk = Desk(Cohort, Cohort.Settings(k=3, shards=1))
    assert len(desk.ask(1, 2, 3)) == 3
    desk.erase(2)
    assert len(desk.ask(1, 3, 1)) == 0
    freed = desk.ask(4)
    assert sorted(freed.row.tolist()) == [3, 4, 5, 6]
    later = desk.ask(*[1, 3, 4] * 40)
    assert set(desk.labels(later)) == {1, 3, 4}
    assert len(desk.ask(5, 6)) == 0  # the next cohort is open, as ever


def test_the_oldest_empty_seat_is_taken_first():
    desk = Desk(Cohort, Cohort.Settings(k=2, shards=1))
    desk.ask(1, 2, 3, 4)
    desk.erase(4)
    desk.erase(1)
    assert sorted(desk.ask(3, 2, 5).row.tolist()) == [4, 6]  # 3 and 5: their seat was empty first
    assert sorted(desk.ask(6).row.tolist()) == [5, 7]


def test_somebody_in_an_open_cohort_leaves_her_seat_to_the_next():
    desk = Desk(Cohort, Cohort.Settings(k=3, shards=1))
    desk.ask(1, 2)
    desk.erase(1)
    assert len(desk.ask(3)) == 0
    assert len(desk.ask(4)) == 3
    assert desk.method.dropped == {ERASED: 1}


def test_a_cohort_that_is_whole_again_is_another_generation_for_the_audit():
    desk = Desk(Cohort, Cohort.Settings(k=2, shards=1))
    desk.ask(1, 2)
    code = desk.texts.user.intern(["user 2"])
    before, size = desk.method.truth_columns(code).values()
    desk.erase(1)
    assert desk.method.truth_columns(code)["cohort_size"].tolist() == [1]
    desk.ask(3)
    after, again = desk.method.truth_columns(code).values()
    assert before.tolist() != after.tolist()
    assert size.tolist() == again.tolist() == [2]


def test_empty_seats_are_kept_in_the_book_and_filled_first():
    desk = Desk(Cohort, Cohort.Settings(k=2, shards=1))
    desk.ask(1, 2, 3, 4, 5)
    desk.erase(2)
    table = desk.method.source_state.save()
    assert table["user"].null_count() == 1
    night = Desk(Cohort, Cohort.Settings(k=2, shards=1))
    met = night.method.source_state.load(table)
    assert "user 2" not in night.texts.user.decode(met).to_list()
    assert len(night.ask(1)) == 0
    assert sorted(night.ask(6).row.tolist()) == [0, 1]
    assert sorted(night.ask(5, 7).row.tolist()) == [2, 3]


def test_who_joins_at_the_end_fills_empty_seats_and_sits_in_one_cohort_only():
    desk = Desk(Cohort, Cohort.Settings(k=2, shards=1, leftover="join"))
    desk.ask(1, 2, 3, 4, 5, 6, 7)  # 1, 2 and 3, 4 have left; 5, 6 wait; 7 is alone
    desk.erase(2)
    desk.ask(1)
    last = desk.method.close()
    assert sorted(last.row.tolist()) == [4, 5, 6, 7]
    people = desk.method.source_state.save()["user"].drop_nulls()
    assert people.n_unique() == people.len() == 6
    cohorts = dict(desk.method.source_state.save().drop_nulls().select("user", "cohort").rows())
    assert cohorts["user 7"] == cohorts["user 1"]


def test_a_newest_cohort_that_waits_for_joiners_waits_for_its_seat_first():
    desk = Desk(Cohort, Cohort.Settings(k=2, shards=1, leftover="join"))
    assert len(desk.ask(1, 2)) == 0
    desk.erase(1)
    assert sorted(desk.ask(3).row.tolist()) == [1, 2]


def test_with_likeness_a_seat_goes_to_the_longest_waiting_who_fits():
    desk = Desk(Cohort, Cohort.Settings(k=2, shards=1, assign="similar", first=1, pool=2, patience=10**6))
    desk.ask(1, 2, category="Sports")
    assert sorted(desk.ask(3, 4, category="Home").row.tolist()) == [0, 2]  # two topics must meet
    desk.erase(3)
    assert len(desk.ask(1, category="Sports")) == 0
    freed = desk.ask(2, category="Sports")  # she has waited longer than 4, but has the topic of 1
    assert sorted(freed.row.tolist()) == [3, 4]
    assert set(desk.labels(freed)) <= {1, 4}


def balance(swap):
    state = swap.snapshot()
    return len(state["held_row"]), int(state["tokens"][:, 1].sum())


@pytest.mark.parametrize("draw", ["token", "distinct"])
@given(steps=steps, k=st.integers(2, 3))
def test_swap_stays_balanced_and_never_shows_the_erased(draw, steps, k):
    desk = Desk(Swap, Swap.Settings(k=k, draw=draw))
    came, lives, gone = set(), dict.fromkeys(range(8), 0), set()
    shown = np.empty(0, np.int64)
    for what, number in steps:
        user = 100 * lives[number] + number
        if what == "ask":
            came.add(user)
            out = desk.ask(user, category=("Sports", "Home")[number % 2])
            shown = np.concatenate([shown, out.row])
            assert gone.isdisjoint(desk.labels(out))
            assert gone.isdisjoint(desk.author[row] for row in out.row.tolist())
        elif user in came:
            desk.erase(user)
            gone.add(user)
            lives[number] += 1
        records, tokens = balance(desk.method)
        assert records == tokens
        assert records + shown.size + desk.method.dropped.total() == len(desk.author)
    table = desk.method._numbers.table[: len(desk.method._numbers)]
    keys = desk.method._tokens.items()[:, 0]
    assert table[:, 4].tolist() == [int(np.sum(keys >> 36 == c)) for c in range(len(table))]  # users


def test_swap_drops_others_records_where_only_tokens_of_the_erased_are_left():
    """Whatever of hers has left, her tokens go, and as many queries or tokens of others as balance needs."""
    surplus = lost = 0
    for trial in range(40):
        desk = Desk(Swap, Swap.Settings(k=2))
        desk.ask(*[1] * (3 + trial % 5), 2, 3, 2, 3, 4)
        desk.erase(1)
        surplus += desk.method.dropped[SURPLUS]
        lost += desk.method.tokens_dropped
        assert balance(desk.method)[0] == balance(desk.method)[1]
    assert surplus > 0
    assert lost > 0


def test_a_query_that_the_erased_made_frequent_waits_again():
    desk = Desk(FrequentOnly, FrequentOnly.Settings(k=3))
    assert len(desk.ask(1, 2)) == 0
    desk.erase(1)
    assert len(desk.ask(3)) == 0
    assert len(desk.ask(4)) == 3
    desk.erase(2)
    assert len(desk.ask(3)) == 0
    assert len(desk.ask(5)) == 2


@pytest.fixture(scope="module")
def log():
    return in_order(made_up(60, seed=3, categories=True).frame, KEY)


@pytest.mark.parametrize(
    "methods",
    [
        ["rules", "cohort"],
        ["swap", "cohort"],
        ["swap", "rules"],
        ["swap", "frequent-only"],
        ["cohort", "swap"],
    ],
)
@pytest.mark.parametrize("labels", ["keep", "fresh"])
def test_behind_a_method_that_moves_labels_records_are_found_by_their_rows(log, methods, labels):
    chosen = {f"{name}.labels": labels for name in methods if name != "frequent-only"}
    chosen |= {f"{name}.k": "3" for name in methods if name != "rules"}
    pipeline = Pipeline(parse_stages(methods, chosen), KEY, Dictionaries())
    batch = encode_and_register(log, pipeline, 0)
    half = len(batch) // 2
    early = pipeline.push(batch[:half])
    users = np.unique(batch.user[:half])[:8]
    own = batch.row[np.isin(batch.user, users)]
    pipeline.erase(users, np.setdiff1d(own, early.row))
    others = batch[half:][~np.isin(batch.user[half:], users)]
    late = pipeline.push(others) + pipeline.close()
    assert len(late)
    assert not np.isin(late.row, own).any()
    if "frequent-only" not in methods:
        assert not np.isin(late.user, pipeline._label_of(users)).any()
    dropped = pipeline.drain_dropped()
    every = np.concatenate([early.row, late.row, dropped])
    assert np.array_equal(np.sort(every), np.sort(np.concatenate([batch.row[:half], others.row])))
    assert any(ERASED in reasons for reasons in pipeline.dropped().values())


def test_a_later_method_drops_her_records_under_others_labels_and_others_under_hers(log):
    chosen = {"swap.k": "3", "cohort.k": "500"}  # all that leaves `swap` waits in `cohort`
    pipeline = Pipeline(parse_stages(["swap", "cohort"], chosen), KEY, Dictionaries())
    batch = encode_and_register(log, pipeline, 0)
    half = batch[: len(batch) // 2]
    assert len(pipeline.push(half)) == 0
    users, asked = np.unique(half.user, return_counts=True)
    heaviest = users[np.argmax(asked)][None]
    pipeline.erase(heaviest, half.row[half.user == heaviest])
    counted = pipeline.dropped()
    assert counted["swap"].get(ERASED, 0) + counted["cohort"][ERASED] == asked.max()
    assert counted["cohort"][UNDER_ERASED_LABEL] > 0


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Cohort, Cohort.Settings(k=3, shards=1)),
        (Cohort, Cohort.Settings(k=3, shards=2, assign="similar", first=2, pool=3, leftover="join")),
        (Swap, Swap.Settings(k=3, level=2, labels="fresh")),
    ],
)
def test_many_erasures_leave_the_promise_as_it_was(kind, settings):
    """Seeded; the tests of chance alarm once in a million good releases."""
    log = made_up(120, seed=5, categories=True).frame
    run = ErasureRun(Harness(kind, settings, log), range(200, log.height, 150), audited=True).to_the_end()
    assert sum(users.size for users in run.victims) > 20
    findings = run.method.promise(run.method.settings).audit(run.evidence())
    assert {finding.verdict for finding in findings} == {"kept"}, findings
    if kind is Swap:
        assert run.method.dropped[ERASED] > 0
    else:  # in full cohorts nothing waits, but seats have changed hands
        truth = run.evidence().truth.collect()
        assert truth["cohort"].max() >= GENERATIONS
        assert truth["cohort_size"].min() >= 3


def test_recoding_keeps_only_what_is_held_and_refuses_a_dictionary_in_use(log):
    pipeline = Pipeline(
        parse_stages(["rules", "swap"], {"swap.k": "50", "swap.guard": "0.5"}), KEY, Dictionaries()
    )
    pipeline.push(encode_and_register(log, pipeline, 0))
    state, new = pipeline.snapshot(), Dictionaries()
    moved = compact_dictionaries(state, pipeline.stages, pipeline.texts, new)
    held = pipeline.texts.query.decode(state["1/held_query"])
    assert set(new.query.texts()) == set(held)
    assert new.query.decode(moved["1/held_query"]).to_list() == held.to_list()
    assert len(new.query.texts()) < len(pipeline.texts.query.texts())
    assert new.user.texts().equals(pipeline.texts.user.texts())
    waiting = pipeline.texts.category.decode(state["1/held_category"])
    assert set(new.category.texts()) == set(waiting.drop_nulls())
    assert new.category.decode(moved["1/held_category"]).to_list() == waiting.to_list()
    other = Dictionaries()
    other.user.intern(["somebody else"])
    with pytest.raises(ValueError, match="empty dictionary"):
        compact_dictionaries(state, pipeline.stages, pipeline.texts, other)


@pytest.mark.parametrize("column", ["query", "url", "category"])
def test_dictionaries_are_outgrown_when_one_of_them_holds_more_than_twice_what_is_used(column):
    old, new = Dictionaries(), Dictionaries()
    getattr(old, column).intern([f"text {n}" for n in range(25)])
    getattr(new, column).intern([f"text {n}" for n in range(10)])
    assert is_outgrown(old, new, spare=4)
    assert not is_outgrown(old, new, spare=5)
