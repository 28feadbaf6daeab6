"""Friends who forge, flood, repeat, shout or stay silent, and strangers, are refused; the others go on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections import Counter
from pathlib import Path

import pytest

from querycloak.clients.crowd import messages
from querycloak.clients.crowd.connection import MAX_PENDING_HANDSHAKES
from querycloak.clients.crowd.demo_engine import page
from querycloak.clients.crowd.peer import HELLO_WITHIN
from querycloak.clients.crowd.tls import context, new_identity, read_certificate
from querycloak.errors import UsageError
from tests.support.crowd import LocalCrowd

pytestmark = pytest.mark.sign

#: 0, 1 and 2 are friends of each other; the rest are friends of 0, and hostile, each in her own way.
FORGER, FLOODER, REPEATER, SHOUTER, SILENT, DROPPER, LIAR, GUESSER, PADDER = range(3, 12)
PAIRS = [(0, 1), (0, 2), (1, 2), *((0, hostile) for hostile in range(3, 12))]
#: Nothing is cut out of the vector, so that everybody is asked sometimes.
PROTOCOL = {
    "most_own": 1.0,
    "least_cut": 0.0,
    "most_cut": 0.0,
    "accept_within": 2.0,
    "answer_within": 4.0,
    "engine_within": 2.0,
    "rate": 50.0,
    "burst": 100,
}
HELLO = {"kind": "hello", "version": 1, "friends": 5}


def hop(number):
    return f"{number:032x}"


def query(number, text="oboe"):
    return {"kind": "query", "hop": hop(number), "text": text}


class Player:
    """Plays a friend of member 0 by hand."""

    def __init__(self, crowd: LocalCrowd, who):
        self.crowd, self.folder = crowd, crowd.folder / str(who)

    async def dial(self, hello=HELLO):
        """Connect, and say hello. A friend who was cut off before may have to wait."""
        whose = read_certificate(self.crowd.folder / "0" / "certificate.pem", "0")
        files = (self.folder / "certificate.pem", self.folder / "key.pem")
        secured = context(ssl.PROTOCOL_TLS_CLIENT, *files, [whose])
        self.reader, self.writer = await asyncio.open_connection(
            "127.0.0.1", self.crowd.ports[0], ssl=secured, limit=1 << 22
        )
        try:
            assert (await self.hear())["friends"] == 11
            await self.say(hello)
        except (OSError, ssl.SSLError):
            self.writer.transport.abort()
            raise
        return self

    async def hang_up(self):
        """Leave, and wait until member 0 has noticed."""
        self.writer.transport.abort()
        async with asyncio.timeout(20):
            while (await self.crowd.health(0))["connected"] > 2:
                await asyncio.sleep(0.05)

    async def say(self, message):
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.writer.write(line + b"\n")
        await self.writer.drain()

    async def hear(self, kind=None):
        """Give the next line, or the next of a kind."""
        while True:
            async with asyncio.timeout(20):
                line = await self.reader.readline()
            if not line:
                raise ConnectionResetError("cut off")
            message = json.loads(line)
            if kind in (None, message["kind"]):
                return message

    async def is_cut_off(self):
        try:
            while True:
                await self.hear()
        except ConnectionError:
            self.writer.transport.abort()
            return True


async def counts(crowd, member=0):
    return Counter((await crowd.health(member))["counts"])


async def others_go_on(crowd, many=6):
    for number in range(many):
        text = f"others {number} {len(crowd.submitted)}"
        assert await crowd.search(number % 3, text) == (200, page(text))


@pytest.fixture(scope="module")
def crowd(loop, tmp_path_factory):
    """One crowd for all; whatever is done to it, the others must go on."""
    made = LocalCrowd(tmp_path_factory.mktemp("crowd"), PAIRS, PROTOCOL, simulated_by_test=range(3, 12))
    loop.run_until_complete(made.__aenter__())
    yield made
    loop.run_until_complete(others_go_on(made))
    assert all(made.alive(member) for member in made.real)
    assert all("Traceback" not in made.log(member) for member in made.real)
    loop.run_until_complete(made.__aexit__(None, None, None))


@pytest.fixture
def play(loop, crowd):
    """Play a story, then see that the others go on."""

    def run(story):
        loop.run_until_complete(story)
        loop.run_until_complete(others_go_on(crowd))

    return run


@pytest.mark.parametrize(
    "line", [b"not json", b"[" * 60_000, b'{"kind": "query", "hop": "1", "text": "oboe", "author": 3}']
)
def test_who_forges_is_cut_off_and_has_to_wait(play, crowd, line):
    async def story():
        before = (await counts(crowd))["protocol_errors"]
        player = await come_back(Player(crowd, FORGER))
        await player.say(line)
        assert await player.is_cut_off()
        assert (await counts(crowd))["protocol_errors"] == before + 1

    play(story())


async def come_back(player):
    """Dial until one is let in again."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await player.dial()
            except ConnectionError:
                await asyncio.sleep(0.2)


def test_who_speaks_another_version_is_cut_off(play, crowd):
    async def story():
        player = await come_back(Player(crowd, FORGER))
        await player.hang_up()
        await player.dial({**HELLO, "version": 2})
        assert await player.is_cut_off()

    play(story())


def test_who_sends_ten_megabytes_is_cut_off(play, crowd):
    async def story():
        player = await Player(crowd, SHOUTER).dial()
        with contextlib.suppress(ConnectionError):
            await player.say(b"x" * 10_000_000)
        assert await player.is_cut_off()

    play(story())


def test_who_floods_is_refused_then_cut_off_and_trusted_no_more(play, crowd):
    async def story():
        player = await Player(crowd, FLOODER).dial()
        heard = Counter()
        try:
            for number in range(3000):
                await player.say(query(number, f"flood {number}"))
            while True:
                heard[(await player.hear())["kind"]] += 1
        except ConnectionError:
            player.writer.transport.abort()
        seen = await counts(crowd)
        assert seen["rate_limited"] >= 50
        assert len({text for _, text in crowd.submitted if text.startswith("flood")}) <= 110
        player = await come_back(player)
        await player.say(query(10_000, "flood again"))
        while (message := await player.hear())["hop"] != hop(10_000):
            pass
        assert message["kind"] == "refused"
        await player.hang_up()

    play(story())


def test_who_repeats_is_refused_then_cut_off(play, crowd):
    async def story():
        player = await Player(crowd, REPEATER).dial()
        await player.say(query(1, "repeated oboe"))
        assert (await player.hear("accepted"))["hop"] == hop(1)
        for _ in range(10):
            await player.say(query(1, "repeated oboe"))
        assert await player.is_cut_off()
        assert (await counts(crowd))["queries_replayed"] == 10
        await asyncio.sleep(0.5)
        assert [text for _, text in crowd.submitted].count("repeated oboe") <= 1

    play(story())


def test_who_answers_what_nobody_asked_is_cut_off(play, crowd):
    async def story():
        before = (await counts(crowd))["protocol_errors"]
        player = await Player(crowd, LIAR).dial()
        for number in range(10):
            await player.say({"kind": "answer", "hop": hop(number), "type": "text/html", "body": "aGk="})
        assert await player.is_cut_off()
        assert (await counts(crowd))["protocol_errors"] >= before + 10

    play(story())


async def searches_until_heard(crowd, player, word, reply):
    """Let member 0 search until the player is asked; she replies always the same. Give the questions."""
    asked, searches = [], []

    async def listen():
        while True:
            asked.append(await player.hear("query"))
            await player.say({"kind": reply, "hop": asked[-1]["hop"]})

    listening = asyncio.create_task(listen())
    while not asked:
        text = f"{word} {len(searches)}"
        searches.append((text, asyncio.create_task(crowd.search(0, text))))
        await asyncio.sleep(0.05)
    await all_found(searches)
    listening.cancel()
    return asked


async def all_found(searches):
    for text, search in searches:
        assert await search == (200, page(text))


def test_who_stays_silent_is_passed_over_and_then_cut_off(play, crowd):
    async def story():
        player = await Player(crowd, SILENT).dial()
        before = await counts(crowd)
        found = 0
        while (await counts(crowd))["disconnected"] == before["disconnected"]:
            texts = [f"into silence {found + n}" for n in range(10)]
            for text, answer in zip(
                texts, await asyncio.gather(*(crowd.search(0, text) for text in texts)), strict=True
            ):
                assert answer == (200, page(text))
            found += len(texts)
        assert await player.is_cut_off()
        assert (await counts(crowd))["timeouts"] >= before["timeouts"] + 3

    play(story())


def test_who_takes_queries_and_drops_them_is_passed_over_and_then_cut_off(play, crowd):
    async def story():
        player = await Player(crowd, DROPPER).dial()
        before, searches, asked = await counts(crowd), [], []

        async def take_all():
            while True:
                asked.append((await player.hear("query"))["hop"])
                await player.say({"kind": "accepted", "hop": asked[-1]})

        taking = asyncio.create_task(take_all())
        async with asyncio.timeout(60):
            while (await counts(crowd))["disconnected"] == before["disconnected"]:
                text = f"dropped {len(searches)}"
                searches.append((text, asyncio.create_task(crowd.search(0, text))))
                await asyncio.sleep(0.1)
        await all_found(searches)
        with pytest.raises(ConnectionError):
            await taking
        player.writer.transport.abort()
        assert (await counts(crowd))["timeouts"] >= before["timeouts"] + 3

    play(story())


def test_a_late_answer_is_dropped_and_the_same_once_more_is_a_fault(play, crowd):
    async def story():
        player = await come_back(Player(crowd, DROPPER))
        first = asyncio.create_task(asked_first(crowd, player))
        question, searches = await first
        before = await counts(crowd)
        await player.say({"kind": "accepted", "hop": question["hop"]})
        async with asyncio.timeout(20):
            while (await counts(crowd))["timeouts"] == before["timeouts"]:
                await asyncio.sleep(0.05)
        body = "bGF0ZQ=="
        for _ in range(11):
            answer = {"kind": "answer", "hop": question["hop"], "type": "text/html", "body": body}
            with contextlib.suppress(ConnectionError):
                await player.say(answer)
        assert await player.is_cut_off()
        seen = await counts(crowd)
        assert seen["late_replies"] == before["late_replies"] + 1
        assert seen["protocol_errors"] == before["protocol_errors"] + 10
        await all_found(searches)

    play(story())


async def asked_first(crowd, player):
    """Let member 0 search, one after the other, until the player is asked."""
    searches = []
    hearing = asyncio.create_task(player.hear("query"))
    while not hearing.done():
        text = f"late {len(searches)} {len(crowd.submitted)}"
        searches.append((text, asyncio.create_task(crowd.search(0, text))))
        await asyncio.wait([hearing, searches[-1][1]], return_when=asyncio.FIRST_COMPLETED)
    return await hearing, searches


def test_who_sends_a_longer_answer_than_may_be_is_cut_off_and_not_who_would_hand_it_on(play, crowd):
    async def story():
        player = await Player(crowd, PADDER).dial()
        before = [await counts(crowd, member) for member in range(3)]
        question, searches = await asked_first(crowd, player)
        await player.say({"kind": "accepted", "hop": question["hop"]})
        head = {"kind": "answer", "hop": question["hop"], "type": "text/plain", "body": ""}
        room = messages.LINE_LIMIT - len(json.dumps(head, separators=(",", ":"))) - 1
        head["body"] = "A" * (room // 4 * 4)
        with contextlib.suppress(ConnectionError):
            await player.say(json.dumps(head, separators=(",", ":")).encode())
        assert await player.is_cut_off()
        await all_found(searches)
        after = [await counts(crowd, member) for member in range(3)]
        grown = [
            now["protocol_errors"] - then["protocol_errors"] for now, then in zip(after, before, strict=True)
        ]
        assert grown == [1, 0, 0]

    play(story())


def test_strangers_who_only_wait_do_not_keep_friends_out(play, crowd):
    """Strangers open many more connections than may shake hands at a time, and hold them."""

    async def story():
        open_files = Path(f"/proc/{crowd.process(0)}/fd")
        before, lines = len(list(open_files.iterdir())), crowd.log(0).count("\n")
        held = []
        try:
            for _ in range(6 * MAX_PENDING_HANDSHAKES):
                held.append(await asyncio.open_connection("127.0.0.1", crowd.ports[0]))
            await asyncio.sleep(0.5)
            assert len(list(open_files.iterdir())) <= before + MAX_PENDING_HANDSHAKES + 10
            friend = await Player(crowd, GUESSER).dial()
            await friend.hang_up()
            assert crowd.log(0).count("\n") <= lines + 2
        finally:
            for _, writer in held:
                writer.transport.abort()
        assert (await counts(crowd))["internal_errors"] == 0

    play(story())


def test_strangers_are_not_waited_for_long(play, crowd):
    async def story():
        reader, writer = await asyncio.open_connection("127.0.0.1", crowd.ports[0])
        async with asyncio.timeout(2 * HELLO_WITHIN):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        writer.transport.abort()

    play(story())


def test_a_question_says_nothing_but_its_text(play, crowd):
    async def story():
        player = await Player(crowd, GUESSER).dial()
        asked = await searches_until_heard(crowd, player, "what is said", "refused")
        assert all(set(question) == {"kind", "hop", "text"} for question in asked)
        await player.hang_up()

    play(story())


def test_strangers_are_refused_at_the_handshake(play, crowd, tmp_path):
    async def story():
        new_identity(tmp_path)
        stranger = Player(crowd, FORGER)
        stranger.folder = tmp_path
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await stranger.dial()

    play(story())


def test_a_friends_certificate_without_her_key_opens_nothing(play, crowd, tmp_path):
    new_identity(tmp_path)
    stolen = crowd.folder / str(SILENT) / "certificate.pem"
    (tmp_path / "certificate.pem").write_bytes(stolen.read_bytes())
    with pytest.raises(UsageError, match="do not fit"):
        context(ssl.PROTOCOL_TLS_CLIENT, tmp_path / "certificate.pem", tmp_path / "key.pem", [])


def test_nobody_gets_in_without_a_certificate(play, crowd):
    async def story():
        secured = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        secured.check_hostname, secured.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", crowd.ports[0], ssl=secured)
        heard = b""
        with contextlib.suppress(OSError):
            heard = await reader.readline()
        writer.transport.abort()
        assert heard == b""  # a friend would have heard hello

    play(story())
