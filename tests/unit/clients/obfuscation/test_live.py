"""The live client: real queries at once, fakes when due, an end when the real ones end."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.clients.obfuscation import lines, live
from querycloak.clients.obfuscation.draws import Draws
from querycloak.clients.obfuscation.live import Rhythm, Seen, Sent, cover
from querycloak.errors import ParameterError

from .logs import KEY


class Counting:
    """Fakes with numbers."""

    def __init__(self):
        self.made, self.seen = 0, []

    def next(self):
        self.made += 1
        return f"fake {self.made}", []

    def observe(self, titles):
        self.seen += titles


async def typed(events, pause=0.0):
    for event in events:
        await asyncio.sleep(pause)
        yield event


def gather(events, pause=0.0, client=None, **chosen):
    async def run():
        source = cover(typed(events, pause), client or Counting(), Rhythm(**chosen), Draws(KEY, "live"))
        return [sent async for sent in source]

    return asyncio.run(asyncio.wait_for(run(), 20))


def test_real_queries_pass_in_their_order():
    sent = gather(["a", "b", "a"], every=1000)
    assert sent == [Sent("a", False), Sent("b", False), Sent("a", False)]


def test_bursts_follow_and_are_finished():
    sent = gather(["a"] * 30, timing="burst", fakes=2.0, speed=1000)
    assert [s.query for s in sent if not s.fake] == ["a"] * 30
    # a burst has between 0 and 4 fakes, 2 on average: 30 of them make 60, give or take 4 × 6.5
    assert 34 < sum(s.fake for s in sent) < 86


def test_fakes_by_the_clock_come_without_real_queries():
    for timing in ("random", "regular"):
        sent = gather(["a", "b"], pause=0.2, timing=timing, every=1.0, speed=100)
        assert 5 < sum(s.fake for s in sent) < 90


def test_results_are_learned_from_and_not_sent():
    client = Counting()
    assert gather(["a", Seen(("title", "other"))], client=client) == [Sent("a", False)]
    assert client.seen == ["title", "other"]


def test_who_takes_too_little_makes_it_wait(monkeypatch):
    monkeypatch.setattr(live, "MOST_WAITING", 5)
    taken = []

    async def many():
        for number in range(1000):
            taken.append(number)
            yield str(number)

    async def run():
        source = cover(
            many(), Counting(), Rhythm(timing="regular", every=1.0, speed=10_000), Draws(KEY, "live")
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
        source = cover(typed(["a"] * 5, 0.01), Counting(), Rhythm(speed=1000), Draws(KEY, "live"))
        await anext(source)
        await source.aclose()
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1


def test_a_failing_source_fails_the_cover():
    async def broken():
        yield "a"
        raise OSError("gone")

    async def run():
        return [sent async for sent in cover(broken(), Counting(), Rhythm(), Draws(KEY, "live"))]

    with pytest.raises(OSError, match="gone"):
        asyncio.run(asyncio.wait_for(run(), 20))


@pytest.mark.parametrize("chosen", [{"every": 0.0}, {"speed": -1.0}, {"speed": float("nan")}])
def test_rhythms_that_cannot_be_meant(chosen):
    with pytest.raises(ParameterError):
        Rhythm(**chosen)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (b"plain query\r\n", "plain query"),
        (b'{"query": "cats {and} dogs"}', "cats {and} dogs"),
        (b'{"results": ["One <b>title</b>", "two"]}', Seen(("One title", "two"))),
        (b"{broken", None),
        (b'{"query": 5}', None),
        (b'{"query": "   "}', None),
        (b'{"query": "\\ud800"}', None),
        (b'{"results": [1]}', None),
        (b'{"other": 1}', None),
        (b"tab\there", None),
        (b"\xff", None),
        (b"x" * (lines.LONGEST_QUERY + 1), None),
        (b'{"results": ["' + b"x" * lines.LINE_LIMIT + b'"]}', None),
        (b"[" * 10_000, None),
    ],
)
def test_lines_that_come_in(line, event):
    assert lines.read(line) == event


@given(st.binary(max_size=100))
def test_any_line_is_read_or_not(line):
    event = lines.read(line)
    assert event is None or isinstance(event, str | Seen)


@given(st.lists(st.binary(max_size=9)))
def test_lines_are_cut_wherever_pieces_end(chunks):
    split = lines.Tokenizer()
    found = [line for chunk in chunks for line in split.feed(chunk)]
    assert b"\n".join([*found, split.rest]) == b"".join(chunks)


def test_a_line_without_end_takes_no_room():
    split = lines.Tokenizer()
    for _ in range(10):
        assert split.feed(b"x" * lines.LINE_LIMIT) == []
        assert len(split.rest) <= lines.LINE_LIMIT + 1
    (line,) = split.feed(b"\n")
    assert lines.read(line) is None


def test_lines_that_go_out():
    said = json.loads(lines.write(Sent("zwölf\n", True)))
    assert said.keys() == {"time", "query", "fake"}
    assert said["query"] == "zwölf\n"
    assert said["fake"] is True
