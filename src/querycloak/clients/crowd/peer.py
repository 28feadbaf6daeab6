"""A real member of the crowd: carries out over TLS what `member` decides, and tells it what happens."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import signal
import ssl
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from querycloak.clients.crowd import wire
from querycloak.clients.crowd.config import FEW_FRIENDS, Config
from querycloak.clients.crowd.doings import (
    Accept,
    Ask,
    Deliver,
    Doing,
    Found,
    Refuse,
    Return,
    Said,
    Submit,
)
from querycloak.clients.crowd.endpoint import Endpoint, check_loopback
from querycloak.clients.crowd.engine import Engine
from querycloak.clients.crowd.entrance import Entrance
from querycloak.clients.crowd.exposure import Exposure
from querycloak.clients.crowd.identity import context, fingerprint
from querycloak.clients.crowd.journal import tell
from querycloak.clients.crowd.limits import Bucket
from querycloak.clients.crowd.link import GOOD_AFTER, Link, Patience
from querycloak.clients.crowd.member import Member
from querycloak.clients.crowd.state import State
from querycloak.clients.crowd.web import port_of
from querycloak.errors import UsageError

#: Seconds within which a connection must be there and the first line must come.
HELLO_WITHIN: Final = 5.0
#: Two connections with the same friend that begin within so many seconds are two dials that have crossed.
CROSSED: Final = 5.0
#: Connections that one friend may have at a time, until all but one are closed.
MOST_TALKS: Final = 4
#: Seconds between two writings of the state, and between two lines of counts.
SAVE_EVERY: Final = 2.0
TELL_EVERY: Final = 60.0
#: Lines about unforeseen errors: so many a second, and so many at once; strangers must not fill the disk.
FAULTS_A_SECOND: Final = 0.05
MOST_FAULTS_TOLD: Final = 20
#: Seconds to wait for friends before searches are taken: without friends, all would go out in her own name.
SETTLE_WITHIN: Final = 3.0


class Peer:
    """A member with connections, timers and an engine."""

    def __init__(self, config: Config, state: State) -> None:
        chance = random.SystemRandom().random
        self._config, self._state = config, state
        self._own = fingerprint(config.own)
        self._member = _member(config, state)
        place, manners = config.place, config.manners
        self._engine = Engine(place.engine, manners.engine_within, wire.ANSWER_LIMIT, place.agent)
        self._friends = dict(enumerate(config.friends, 1))
        self._dialling = {number: Patience(0.2, 60.0, chance) for number in self._friends}
        self._banned = {number: Patience(1.0, 600.0, chance) for number in self._friends}
        self._absent = {number: asyncio.Event() for number in self._friends}
        self._links: dict[int, Link] = {}
        self._searches: dict[int, asyncio.Future[Found]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._changed = False
        self._talks: Counter[int] = Counter()
        self._lines_left = Bucket(FAULTS_A_SECOND, MOST_FAULTS_TOLD)
        # one thread, so that an older state is never written over a newer one
        self._writer = ThreadPoolExecutor(1)
        self.stop = asyncio.Event()

    # what the searcher's endpoint asks for

    async def search(self, text: str) -> Found:
        """Send a query of her own through the crowd; nothing comes back if it has failed."""
        if self.stop.is_set():
            return None
        number, doings = self._member.search(text, self._now())
        found: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._searches[number] = found
        self._do(doings)
        return await found

    def health(self) -> dict[str, Any]:
        """Say how it goes, in numbers."""
        return {
            "friends": len(self._friends),
            "connected": len(self._links),
            "under_way": self._member.under_way,
            "counts": dict(self._member.counts),
        }

    async def exposure(self) -> dict[str, Any]:
        """Say how much of her interests she has shown so far."""
        so_far = self._member.exposure.copy()
        # the measure loads large libraries at its first use: friends need not wait for that
        return {"exposure": await asyncio.to_thread(so_far.level), **so_far.totals()}

    # its life

    async def run(self, http: tuple[str, int] | None) -> None:
        """Be a member until told to stop."""
        servers = [await self._listen()]
        for number, friend in self._friends.items():
            self._absent[number].set()
            if friend.address:
                self._begin(self._dial(number))
        self._begin(self._save_now_and_then())
        self._begin(self._tell_now_and_then())
        try:
            if http:
                servers.append(await self._open(http))
            await self.stop.wait()
        finally:
            await self._end(servers)

    async def _listen(self) -> asyncio.Server:
        place = self._config.place
        secured = self._context(ssl.PROTOCOL_TLS_SERVER)
        secured.num_tickets = 0
        try:
            server = await Entrance(secured, HELLO_WITHIN, wire.LINE_LIMIT, self._met, self._begin).open(
                place.listen, place.port
            )
        except OSError as error:
            raise UsageError(f"the peer cannot listen there: {error.strerror}") from None
        tell("listening", port=port_of(server), friends=len(self._friends))
        if len(self._friends) < FEW_FRIENDS:
            tell("warning", few_friends=len(self._friends), about="friends can tell too much: have 3 or more")
        return server

    async def _open(self, http: tuple[str, int]) -> asyncio.Server:
        """Open the searcher's endpoint once friends have had the time to come."""
        until = self._now() + SETTLE_WITHIN
        while len(self._links) < len(self._friends) and self._now() < until and not self.stop.is_set():
            await asyncio.sleep(0.05)
        try:
            server = await Endpoint(self).open(*http)
        except OSError as error:
            raise UsageError(f"the search endpoint cannot listen there: {error.strerror}") from None
        tell("searching", port=port_of(server), connected=len(self._links))
        return server

    async def _end(self, servers: list[asyncio.Server]) -> None:
        """Say to her what is lost, keep what is to be kept, and leave.

        From `stop` on the member is told nothing more: she would take parting friends for lost ones, and
        submit under her own name what they had.
        """
        self.stop.set()
        for server in servers:
            server.close()
        for found in self._searches.values():
            if not found.done():
                found.set_result(None)
        await asyncio.sleep(0.05)  # so that answers go out
        for link in list(self._links.values()):
            link.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._save()
        self._writer.shutdown()
        tell("stopped", **self._member.counts)

    def _kept(self) -> dict[str, Any]:
        return {**self._member.kept(), "exposure": self._member.exposure.kept()}

    async def _save(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._writer, self._state.write, self._kept())
        except OSError:
            tell("warning", about="the state could not be written")

    async def _save_now_and_then(self) -> None:
        wait = SAVE_EVERY
        while True:
            await asyncio.sleep(wait)
            if self._changed:
                begun, self._changed = self._now(), False
                await self._save()
                wait = max(SAVE_EVERY, 50 * (self._now() - begun))  # a long history is written less often

    async def _tell_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(TELL_EVERY)
            tell("counts", connected=len(self._links), **self._member.counts)

    # friends

    def _context(self, side: ssl._SSLMethod) -> ssl.SSLContext:
        config = self._config
        files = (config.path(config.place.certificate), config.path(config.place.key))
        return context(side, *files, [friend.certificate for friend in config.friends])

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody has dialled: TLS has let in friends only; see which one it is."""
        link = Link(reader, writer, dialled=False, begun=self._now())
        who = self._friend_of(link)
        if who is None or self._now() < self._banned[who].until or self._talks[who] >= MOST_TALKS:
            link.close()
            return
        await self._talk(who, link)

    def _friend_of(self, link: Link) -> int | None:
        shown = link.certificate()
        return next((n for n, friend in self._friends.items() if friend.certificate == shown), None)

    async def _dial(self, who: int) -> None:
        """Keep up the connection with a friend who can be dialled."""
        address, secured = self._friends[who].address, self._context(ssl.PROTOCOL_TLS_CLIENT)
        assert address is not None
        while True:
            await self._absent[who].wait()
            until = max(self._dialling[who].until, self._banned[who].until)
            await asyncio.sleep(max(0.0, until - self._now()))
            if who in self._links:
                continue
            try:
                async with asyncio.timeout(HELLO_WITHIN):
                    streams = await asyncio.open_connection(*address, ssl=secured, limit=wire.LINE_LIMIT)
            except (OSError, TimeoutError):
                self._dialling[who].failed(self._now())
                continue
            link = Link(*streams, dialled=True, begun=self._now())
            if self._friend_of(link) != who:  # it is a friend, but another one
                link.close()
                self._dialling[who].failed(self._now())
                continue
            await self._talk(who, link)

    async def _talk(self, who: int, link: Link) -> None:
        """Say hello, then listen until one of the two has enough."""
        self._talks[who] += 1
        try:
            link.send(wire.hello(len(self._friends)))
            async with asyncio.timeout(HELLO_WITHIN):
                first = await link.receive(who)
            if not isinstance(first, wire.Hello):
                raise wire.Forged("no hello")
            if self._welcome(who, link, first):
                await self._listen_to(who, link)
        except wire.Forged:
            self._member.counts["forged"] += 1
            self._banned[who].failed(self._now())
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            if self._links.get(who) is not link:
                self._dialling[who].failed(self._now())
        finally:
            self._talks[who] -= 1
            link.close()
            self._farewell(who, link)

    def _welcome(self, who: int, link: Link, first: wire.Hello) -> bool:
        """Take a connection in use; of two dials that have crossed, both sides keep the same one."""
        before = self._links.get(who)
        if before is not None:
            ours_first = self._own < self._friends[who].fingerprint
            if link.begun - before.begun < CROSSED and before.dialled == ours_first != link.dialled:
                return False
            self._farewell(who, before)
            before.close()
        self._links[who] = link
        self._absent[who].clear()
        self._member.joined(who, first.friends)
        return True

    def _farewell(self, who: int, link: Link) -> None:
        if self._links.get(who) is not link:
            return
        del self._links[who]
        lasted = self._now() - link.begun
        if lasted > GOOD_AFTER:
            self._banned[who].worked(self._now())
        if lasted > CROSSED:
            self._dialling[who].worked(self._now())
        else:
            self._dialling[who].failed(self._now())
        if not self.stop.is_set():
            self._do(self._member.left(who, self._now()))
        self._absent[who].set()

    async def _listen_to(self, who: int, link: Link) -> None:
        while self._links.get(who) is link:
            said = await link.receive(who)
            if self.stop.is_set():
                return
            self._do(self._heard(said))
            self._part_if_enough(who)
            await asyncio.sleep(0)  # a friend who talks without a pause must not keep others waiting

    def _part_if_enough(self, who: int) -> None:
        """Cut a connection that makes no sense any more; the next one has to wait."""
        link = self._links.get(who)
        if link is not None and self._member.has_enough_of(who):
            self._member.counts["cut off"] += 1
            self._banned[who].failed(self._now())
            self._farewell(who, link)
            link.close()

    def _heard(self, said: wire.Hello | Said) -> list[Doing]:
        now = self._now()
        match said:
            case Ask(friend, hop, text):
                return self._member.asked(friend, hop, text, now)
            case Accept(friend, hop):
                return self._member.accepted(friend, hop, now)
            case Refuse(friend, hop):
                return self._member.refused(friend, hop, now)
            case Return(friend, hop, answer):
                return self._member.returned(friend, hop, answer, now)
        raise wire.Forged("a second hello")

    # what the member decides

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _do(self, doings: list[Doing]) -> None:
        """Carry out what the member wants, and be there when she wants to be woken."""
        self._changed = True
        for doing in doings:
            if isinstance(doing, Submit):
                self._begin(self._submit(doing))
            elif isinstance(doing, Deliver):
                found = self._searches.pop(doing.job)
                if not found.done():
                    found.set_result(doing.answer)
            elif link := self._links.get(doing.friend):
                link.send(wire.encode(doing))
        self._set_timer()

    def _set_timer(self) -> None:
        due = self._member.due
        if self._timer is not None:
            if self._timer.when() == due and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(due, self._wake) if due is not None else None

    def _wake(self) -> None:
        self._timer = None
        if self.stop.is_set():
            return
        self._do(self._member.wake(self._now()))
        for who in list(self._links):
            self._part_if_enough(who)

    async def _submit(self, doing: Submit) -> None:
        if self.stop.is_set():
            return
        answer = None
        try:
            answer = await self._engine.submit(doing.text)
        finally:
            if not self.stop.is_set():
                self._do(self._member.submitted(doing.job, answer))

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fault(error)

    def fault(self, error: BaseException | None) -> None:
        """Name an unforeseen error without what it says, which may hold data; of many, only count them."""
        self._member.counts["faults"] += 1
        if self._lines_left.take(self._now()):
            tell("fault", kind=type(error).__name__)


def _member(config: Config, state: State) -> Member:
    """Make a member of what was kept."""
    kept = state.read()
    names = [friend.fingerprint for friend in config.friends]
    exposure = Exposure(state.key, kept.get("exposure"))
    chance = random.SystemRandom().random
    return Member(names, config.manners, exposure, chance, lambda: secrets.token_hex(16), kept)


def run(config: Config, http: tuple[str, int] | None) -> None:
    """Run a peer until SIGTERM or SIGINT."""
    if http:
        check_loopback(http[0])
    state = State(config.path(config.place.state))
    # asyncio's own messages may show addresses
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)

    async def live() -> None:
        peer = Peer(config, state)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, peer.stop.set)
        loop.set_exception_handler(lambda _, about: peer.fault(about.get("exception")))
        await peer.run(http)

    try:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(live())
    finally:
        state.close()
