"""Searches and clicks of OpenSearch UBI: joined in any order of arrival, by the time of entries."""

from __future__ import annotations

import time

import polars as pl
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from querycloak.engines import state_codec
from querycloak.service.entries import EVENTS, QUERIES
from querycloak.service.stream.click_join import ClickJoiner


def searches(*ids):
    rows = [{"user": f"u{i}", "query": f"q{i}", "query_id": i} for i in ids]
    return pl.DataFrame(rows, schema=QUERIES)


def clicks(*pairs):
    return pl.DataFrame([{"query_id": i, "rank": r, "url": f"x{r}"} for i, r in pairs], schema=EVENTS)


def shown(frame):
    return frame.select("query", "rank", "url", "rows_since_head").rows()


def test_a_search_waits_for_its_clicks():
    one = ClickJoiner(wait=10)
    one.add_queries(searches("a", "b"), 1)
    one.add_events(clicks(("a", 3), ("a", 1)), 5)
    assert one.due(10).height == 0
    assert shown(one.due(11)) == [("qa", 3, "x3", 0), ("qa", 1, "x1", 1), ("qb", None, None, 0)]
    assert (one.held, one.next_due()) == (0, None)


def test_clicks_may_come_before_their_search():
    one = ClickJoiner(wait=10)
    one.add_events(clicks(("a", 1)), 1)
    one.add_queries(searches("a"), 5)
    assert one.due(11).height == 0
    assert shown(one.due(15)) == [("qa", 1, "x1", 0)]


def test_clicks_of_no_search_are_counted_and_forgotten():
    one = ClickJoiner(wait=10)
    one.add_events(clicks(("a", 1), ("b", 1)), 1)
    one.due(11)
    assert dict(one.dropped) == {"click without its query": 2}
    assert one.next_due() is None


def test_an_erased_person_s_searches_and_clicks_go():
    one = ClickJoiner(wait=10)
    one.add_queries(searches("a", "b"), 1)
    one.add_events(clicks(("a", 1), ("b", 2)), 1)
    assert one.erase("ua") == 1
    assert shown(one.due(11)) == [("qb", 2, "x2", 0)]


STEPS = st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.integers(0, 4)), min_size=1, max_size=12)


@given(steps=STEPS, restart=st.integers(0, 12))
def test_joining_agrees_with_plain_lists(steps, restart):
    """Every search leaves once, `wait` after it came, with all clicks that came by then and none twice."""
    one, now, waiting, events, left, expected, alone = ClickJoiner(wait=3), 0, [], [], [], [], 0
    for number, (is_search, name, later) in enumerate(steps):
        now += later
        if number == restart:
            again = ClickJoiner(wait=3)
            again.restore(state_codec.load(state_codec.dump(one.snapshot())))
            one = again
        if is_search:
            one.add_queries(searches(name), now)
            waiting.append((now, name))
        else:
            one.add_events(clicks((name, number)), now)
            events.append((now, name, number))
        left += shown(one.due(now))
        going = [name for at, name in waiting if at <= now - 3]
        waiting = [(at, name) for at, name in waiting if at > now - 3]
        for name_ in going:
            mine = [n for _, e, n in events if e == name_]
            expected += [(f"q{name_}", n, f"x{n}", b) for b, n in enumerate(mine)] or [
                (f"q{name_}", None, None, 0)
            ]
        still = {name for _, name in waiting}
        events = [e for e in events if e[1] not in going]
        alone += sum(e[0] <= now - 3 and e[1] not in still for e in events)
        events = [e for e in events if e[0] > now - 3 or e[1] in still]
    assert left == expected
    assert one.held == len(waiting)
    assert one.dropped.total() == alone
    assert one.snapshot()["events"].height == len(events)


def cost(waiting):
    """Measure what a search and a click cost, with a search leaving for each that comes."""
    one = ClickJoiner(wait=waiting)
    for at in range(waiting):
        one.add_queries(searches(f"{at}"), at)
        one.add_events(clicks((f"{at}", 1)), at)
    steps = [(at, searches(f"{at}"), clicks((f"{at}", 1))) for at in range(waiting, waiting + 200)]
    start = time.process_time()
    for at, search, click in steps:
        one.add_queries(search, at)
        one.add_events(click, at)
        assert one.due(at).height == 1
    return time.process_time() - start


def test_what_a_request_costs_does_not_follow_what_waits():
    """32 times as many wait. Joining anew each time cost 35 times as much; a bound of 4 leaves room."""
    few, many = min(cost(500) for _ in range(3)), cost(16_000)
    assert many < 4 * few


def test_an_erased_search_is_in_no_snapshot():
    one, secret = ClickJoiner(wait=10), "a query that is longer than what fits beside its length"
    rows = [{"user": user, "query": f"{secret} of {user}", "query_id": user} for user in ("a", "b", "c")]
    one.add_queries(pl.DataFrame(rows, schema=QUERIES), 1)
    assert one.erase("b") == 1
    table = zstandard.decompress(state_codec.dump(one.snapshot()))
    assert f"{secret} of a".encode() in table
    assert f"{secret} of b".encode() not in table
