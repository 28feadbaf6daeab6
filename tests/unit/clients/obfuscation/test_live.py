"""The live client: real queries at once, fakes when due, an end when the real ones end."""

from __future__ import annotations

import asyncio
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.clients import MAX_QUERY
from querycloak.clients.obfuscation import live
from querycloak.clients.obfuscation.live import LiveTiming, OutgoingQuery, ResultTitles, mix_live
from querycloak.clients.obfuscation.random_stream import KeyedStream
from querycloak.errors import ParameterError
from tests.support.covers import KEY


class Counting:
    """Fakes with numbers."""

    def __init__(self):
        self.made, self.seen = 0, []

    def next_query(self):
        self.made += 1
        return f"fake {self.made}"

    def observe(self, titles):
        self.seen += titles


async def typed(events, pause=0.0):
    for event in events:
        await asyncio.sleep(pause)
        yield event


def gather(events, pause=0.0, client=None, **chosen):
    async def run():
        source = mix_live(
            typed(events, pause), client or Counting(), LiveTiming(**chosen), KeyedStream(KEY, "live")
        )
        return [sent async for sent in source]

    return asyncio.run(asyncio.wait_for(run(), 20))


def test_real_queries_pass_in_their_order():
    sent = gather(["a", "b", "a"], every=1000)
    assert sent == [OutgoingQuery("a", False), OutgoingQuery("b", False), OutgoingQuery("a", False)]


def test_bursts_follow_and_are_finished():
    sent = gather(["a"] * 30, timing="burst", fakes=2.0, speed=1000)
    assert [s.text for s in sent if not s.fake] == ["a"] * 30
    # a burst has between 0 and 4 fakes, 2 on average: 30 of them make 60, give or take 4 × 6.5
    assert 34 < sum(s.fake for s in sent) < 86


def test_fakes_by_the_clock_come_without_real_queries():
    for timing in ("random", "regular"):
        sent = gather(["a", "b"], pause=0.2, timing=timing, every=1.0, speed=100)
        assert 5 < sum(s.fake for s in sent) < 90


def test_results_are_learned_from_and_not_sent():
    client = Counting()
    assert gather(["a", ResultTitles(("title", "other"))], client=client) == [OutgoingQuery("a", False)]
    assert client.seen == ["title", "other"]


def test_who_takes_too_little_makes_it_wait(monkeypatch):
    monkeypatch.setattr(live, "MAX_WAITING", 5)
    taken = []

    async def many():
        for number in range(1000):
            taken.append(number)
            yield str(number)

    async def run():
        source = mix_live(
            many(),
            Counting(),
            LiveTiming(timing="regular", every=1.0, speed=10_000),
            KeyedStream(KEY, "live"),
        )
        await anext(source)
        await asyncio.sleep(0.1)
        held = len(taken)
        rest = [sent async for sent in source]
        return held, rest

    held, rest = asyncio.run(asyncio.wait_for(run(), 20))
    assert held <= 7
    assert sum(not sent.fake for sent in rest) == 999


def test_leaving_early_leaves_no_task_behind():
    async def run():
        source = mix_live(
            typed(["a"] * 5, 0.01), Counting(), LiveTiming(speed=1000), KeyedStream(KEY, "live")
        )
        await anext(source)
        await source.aclose()
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1


def test_a_failing_source_fails_the_mix_live():
    async def broken():
        yield "a"
        raise OSError("gone")

    async def run():
        return [sent async for sent in mix_live(broken(), Counting(), LiveTiming(), KeyedStream(KEY, "live"))]

    with pytest.raises(OSError, match="gone"):
        asyncio.run(asyncio.wait_for(run(), 20))


@pytest.mark.parametrize(("timing", "speed"), [("random", 1e6), ("regular", 1e6), ("burst", 1e6)])
def test_a_failing_cover_ends_it(timing, speed):
    """Otherwise real queries would go on without cover, and nobody would notice."""

    class Failing(Counting):
        def next_query(self):
            raise RuntimeError("no phrase left")

    with pytest.raises(RuntimeError, match="no phrase left"):
        gather(["a"] * 50, pause=0.05, client=Failing(), timing=timing, fakes=5.0, speed=speed)


@pytest.mark.parametrize(
    "chosen", [{"every": 0.0}, {"speed": -1.0}, {"speed": float("nan")}, {"fakes": 1e9}, {"fakes": -1.0}]
)
def test_rhythms_that_cannot_be_meant(chosen):
    with pytest.raises(ParameterError):
        LiveTiming(**chosen)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (b"plain query\r\n", "plain query"),
        (b'{"query": "cats {and} dogs"}', "cats {and} dogs"),
        (b'{"results": ["One <b>title</b>", "two"]}', ResultTitles(("One title", "two"))),
        ("می\u200cخواهم".encode(), "می\u200cخواهم"),  # Persian
        ("क्\u200dष".encode(), "क्\u200dष"),  # Hindi
        ('{"query": "\U0001f469\u200d\U0001f52c"}'.encode(), "\U0001f469\u200d\U0001f52c"),  # emoji
        ("10\u00a0km".encode(), "10\u00a0km"),  # a no-break space
        (b"{broken", None),
        (b'{"query": 5}', None),
        (b'{"query": "   "}', None),
        (b'{"query": "\\ud800"}', None),
        (b'{"results": [1]}', None),
        (b'{"other": 1}', None),
        (b"tab\there", None),
        (b"\xff", None),
        (b"x" * (MAX_QUERY + 1), None),
        (b'{"results": ["' + b"x" * live.LINE_LIMIT + b'"]}', None),
        (b"[" * 10_000, None),
    ],
)
def test_lines_that_come_in(line, event):
    assert live.parse_line(line) == event


@given(st.binary(max_size=100))
def test_any_line_is_read_or_not(line):
    event = live.parse_line(line)
    assert event is None or isinstance(event, str | ResultTitles)


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"bc"])))
def test_lines_end_at_every_line_feed(pieces):
    whole = b"".join(pieces)
    assert list(live.read_lines(io.BytesIO(whole))) == whole.removesuffix(b"\n").split(b"\n")[: len(whole)]


@pytest.mark.parametrize("extra", [0, 1, 2, 3, 10 * live.LINE_LIMIT])
def test_a_long_line_takes_no_room_and_ends_where_it_ends(extra):
    whole = b"x" * (live.LINE_LIMIT + extra) + b"\nnext\n"
    line, following = live.read_lines(io.BytesIO(whole))
    assert live.LINE_LIMIT + (extra > 0) <= len(line) <= live.LINE_LIMIT + 2
    if extra:
        assert live.parse_line(line) is None
    assert following == b"next"


def test_lines_that_go_out():
    said = json.loads(live.format_line(OutgoingQuery("zwölf\n", True)))
    assert said.keys() == {"time", "query", "fake"}
    assert said["query"] == "zwölf\n"
    assert said["fake"] is True
