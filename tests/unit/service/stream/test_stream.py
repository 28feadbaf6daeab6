"""The stream: cutting, restarting and merging entries change no byte of what is released."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.dictionary import Dictionaries
from querycloak.engines import local, state_codec
from querycloak.engines.pipeline import Pipeline, parse_stages
from querycloak.engines.record_store import RecordStore
from querycloak.errors import DataError, UsageError
from querycloak.keys import derive
from querycloak.service import entries
from querycloak.service.entries import SCHEMA, Entry
from querycloak.service.stream.stream import Stream
from tests.support.logs import made_up

SECRET = b"s" * 32
METHODS = [
    (["cohort"], {"k": "3", "shards": "2"}),
    (["cohort"], {"k": "2", "leftover": "join", "time": "coarsen"}),
    (["swap"], {"k": "3"}),
    (["rules", "cohort"], {"k": "3"}),
    (["frequent-only"], {"k": "2"}),
    (["z-anonymity"], {"z": "2"}),
    (["rules", "short-sessions"], {"k": "2", "rare": "terms", "days": "2"}),
]


def records(users=12, seed=5):
    frame = made_up(users=users, seed=seed).frame.sort("time", maintain_order=True)
    topics = ["Sports/Soccer", "Arts/Music", "Health"]
    lengths = frame["query"].str.len_chars()
    frame = frame.with_columns(
        category=pl.Series([topics[n % 3] for n in lengths.to_list()]), rows_since_head=pl.lit(0, pl.Int32)
    )
    return frame.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


LOG = records()
EPOCH = Entry("epoch", 1)


def stream(methods, chosen):
    return Stream(parse_stages(methods, chosen, labels="keep"), SECRET)


def entry(frame, at=1):
    return Entry("records", at, frame)


def lines(outputs):
    return b"".join(one.lines() for one in outputs if len(one))


def whole(methods, chosen):
    one = stream(methods, chosen)
    return lines([one.apply([entry(LOG)]), one.apply([EPOCH])]), one


@pytest.mark.parametrize(("methods", "chosen"), METHODS)
@given(cuts=st.lists(st.integers(0, LOG.height), max_size=6).map(sorted), together=st.booleans())
def test_cutting_changes_nothing(methods, chosen, cuts, together):
    expected, _ = whole(methods, chosen)
    pieces = [LOG[a:b] for a, b in zip([0, *cuts], [*cuts, LOG.height], strict=True)]
    one = stream(methods, chosen)
    steps = [[entry(p) for p in pieces]] if together else [[entry(p)] for p in pieces]
    assert lines([*(one.apply(step) for step in steps), one.apply([EPOCH])]) == expected


@pytest.mark.parametrize(("methods", "chosen"), METHODS)
@given(at=st.integers(0, LOG.height), twice=st.booleans())
def test_a_restart_changes_nothing(methods, chosen, at, twice):
    expected, _ = whole(methods, chosen)
    first = stream(methods, chosen)
    before = first.apply([entry(LOG[:at])])
    second = stream(methods, chosen)
    second.restore(state_codec.load(state_codec.dump(first.snapshot())))
    if twice:
        third = stream(methods, chosen)
        third.restore(state_codec.load(state_codec.dump(second.snapshot())))
        second = third
    after = second.apply([entry(LOG[at:])])
    assert (second.accepted, second.held + second.released + second.dropped_total) == (LOG.height, LOG.height)
    assert lines([before, after, second.apply([EPOCH])]) == expected


@pytest.mark.parametrize(("methods", "chosen"), METHODS[:4])
def test_a_stream_gives_what_the_local_engine_gives(methods, chosen):
    _, one = whole(methods, chosen)
    assert one.accepted == one.released + one.dropped_total
    frames = [stream(methods, chosen)]
    live = frames[0].apply([entry(LOG)])
    last = frames[0].apply([EPOCH])
    shown = pl.concat([part.frame.drop("offset") for part in (live, last) if len(part)])
    stages = parse_stages(methods, chosen, labels="keep")
    pipeline = Pipeline(stages, derive(SECRET, "stream", "0"), Dictionaries())
    rows = pl.Series(np.arange(LOG.height))
    piece = LOG.drop("rows_since_head").with_columns(row=rows, _place=rows, _head=rows, _when=rows)
    local_frames = [part.frame for part in local.run(pipeline, [piece])]
    assert shown.equals(pl.concat(local_frames).select(shown.columns))


@pytest.mark.parametrize(("methods", "chosen"), METHODS)
def test_texts_that_nothing_refers_to_are_forgotten_and_change_nothing(methods, chosen, monkeypatch):
    monkeypatch.setattr("querycloak.service.stream.stream.SPARE_TEXTS", -1)
    expected, _ = whole(methods, chosen)
    one, parts = stream(methods, chosen), []
    for start in range(0, LOG.height, 40):
        parts.append(one.apply([entry(LOG[start : start + 40])]))
        one.snapshot()
        assert len(one.pipeline.texts.query) <= one.held + 3 * 40
    assert lines([*parts, one.apply([EPOCH])]) == expected


def test_everything_is_released_held_or_dropped_at_every_moment():
    one = stream(["rules", "cohort"], {"k": "4"})
    for start in range(0, LOG.height, 7):
        one.apply([entry(LOG[start : start + 7])])
        assert one.accepted == one.released + one.held + one.dropped_total
        assert one.dropped_total == sum(one.reasons().values())


def test_methods_that_need_order_drop_what_is_late():
    one = stream(["z-anonymity"], {"z": "2"})
    one.apply([entry(LOG[10:20]), entry(LOG[:10])])
    assert sum(n for reason, n in one.reasons().items() if "later records" in reason) >= 9


@pytest.mark.parametrize("method", ["km", "microagg-plain", "dp-histogram", "graph-suppress"])
def test_methods_that_need_the_whole_log_are_refused(method):
    with pytest.raises(UsageError, match="never ends"):
        stream([method], {})


def test_fresh_labels_are_refused():
    with pytest.raises(UsageError, match="pseudonyms itself"):
        stream(["cohort"], {"labels": "fresh"})


def test_an_epoch_draws_other_labels():
    one = stream(["cohort"], {"k": "6", "shards": "1"})
    first = one.apply([entry(LOG)])
    one.apply([EPOCH])
    second = one.apply([entry(LOG)])
    assert (one.epoch, second.first) == (1, one.released - len(second) + 1)
    assert first.frame["query"].equals(second.frame["query"])
    # The chance that some 400 draws out of six are the same is nil.
    assert not first.frame["user"].equals(second.frame["user"])


def test_records_of_an_erased_user_are_dropped_and_the_label_is_never_used_again():
    one = stream(["cohort"], {"k": "6", "shards": "1"})
    name = LOG["user"][0]
    one.apply([entry(LOG.head(2))])
    waiting = one.held
    one.apply([Entry("erasure", 2, facts={"user": name})])
    assert waiting
    assert one.last_result["held"] == LOG.head(2).filter(pl.col("user") == name).height
    assert one.erased.current(name, 0) != name
    shown = pl.concat([part.frame for part in (one.apply([entry(LOG)]), one.apply([EPOCH])) if len(part)])
    assert name not in shown["user"].to_list()
    assert one.accepted == one.released + one.held + one.dropped_total


def test_what_waits_too_long_is_dropped_by_the_clock_that_entries_carry():
    one = stream(["cohort"], {"k": "50"})
    one.apply([entry(LOG[:5], at=10), entry(LOG[5:9], at=20)])
    one.apply([Entry("tick", 31, facts={"retention": 15})])
    assert (one.held, one.dropped_total) == (4, 5)
    assert one.reasons() == {"cohort: waited longer than the retention time": 5}


@pytest.mark.parametrize("distance", [[1, 0], [0, 2], [0, -1]])
def test_a_batch_that_is_cut_through_a_search_is_refused(distance):
    one = stream(["cohort"], {"k": "3"})
    cut = LOG[:2].with_columns(rows_since_head=pl.Series(distance, dtype=pl.Int32))
    with pytest.raises(DataError, match="first row of a search"):
        one.apply([entry(cut)])
    assert (one.accepted, one.held) == (0, 0)


def test_erasure_and_export_copy_no_column_of_other_users(monkeypatch):
    one = stream(["cohort"], {"k": "50"})
    one.apply([entry(LOG)])
    name = LOG["user"][0]
    mine = LOG.filter(pl.col("user") == name).drop("rows_since_head")
    taken, columns = [], RecordStore.columns
    monkeypatch.setattr(RecordStore, "columns", lambda s, *names: taken.extend(names) or columns(s, *names))
    monkeypatch.setattr(RecordStore, "rows", lambda s: 1 // 0)
    held, released = one.records_of(name)
    assert (held.drop("category").equals(mine.drop("category")), released) == (True, 0)
    one.apply([Entry("erasure", 2, facts={"user": name})])
    assert one.last_result == {"held": mine.height, "released": 0}
    assert set(taken) == {"user", "_head"}


@pytest.mark.parametrize(
    ("methods", "name", "value"), [(["cohort"], "k", 4), (["swap"], "leftover", "drop"), (["swap"], "x", 1)]
)
def test_a_setting_that_cannot_change_live_is_refused(methods, name, value):
    one = stream(methods, {})
    one.apply([Entry("setting", 1, facts={"name": name, "value": value})])
    assert one.refusal is not None
    assert one.stages_in_force() == parse_stages(methods, {}, labels="keep")


def test_a_live_setting_changes():
    one = stream(["swap"], {"k": "2"})
    one.apply([Entry("setting", 1, facts={"name": "k", "value": 3})])
    assert one.refusal is None
    assert one.stages_in_force() == parse_stages(["swap"], {"k": "3"}, labels="keep")


def test_entries_come_back_as_they_went():
    one = Entry("records", 5, LOG[:3], ((b"k" * 24, 5, b"{}"),), {"a": 1})
    two = entries.decode(entries.encode(one))
    assert (two.kind, two.at, two.keys, two.facts) == (one.kind, one.at, one.keys, one.facts)
    assert two.frame.equals(one.frame)


@given(
    sizes=st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=5), min_size=1, max_size=8),
    picks=st.lists(st.lists(st.integers(0, 100), max_size=6), max_size=8),
)
def test_waiting_finds_what_a_plain_list_finds(sizes, picks):
    waiting, known, row = RecordStore(), {}, 0
    for number, searches in enumerate(sizes):
        heads = []
        for size in searches:
            known[row] = list(range(row, row + size))
            heads += [row] * size
            row += size
        rows = known and pl.Series(range(row - len(heads), row))
        waiting.add(pl.DataFrame({"row": rows, "_head": heads, "text": [str(r) for r in rows]}))
        chosen = sorted({list(known)[p % len(known)] for p in (picks[number] if number < len(picks) else [])})
        if chosen:
            frame, _ = waiting.take(np.array(chosen))
            assert frame["row"].to_list() == [r for head in chosen for r in known[head]]
            waiting.remove(np.array(chosen * 2))
            for head in chosen:
                del known[head]
        waiting.compact()
        left = waiting.rows()
        assert ([] if left is None else left["row"].to_list()) == [r for rows in known.values() for r in rows]
        assert waiting.count == sum(map(len, known.values()))
        if not known:
            row += 1
