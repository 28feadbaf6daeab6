"""A peer: drives a `Member` over TLS connections, with timers, a search engine and stored state."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import signal
import ssl
from collections import Counter
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, Final

from querycloak import json_log
from querycloak.clients.crowd import messages
from querycloak.clients.crowd.config import FEW_FRIENDS, Config
from querycloak.clients.crowd.connection import Backoff, Connection, TlsListener
from querycloak.clients.crowd.endpoint import HttpServer, check_loopback, endpoint
from querycloak.clients.crowd.engine import EngineUnavailable, HttpEngine
from querycloak.clients.crowd.member import Member
from querycloak.clients.crowd.state import State
from querycloak.clients.crowd.tls import context, fingerprint
from querycloak.errors import UsageError
from querycloak.rate_limit import TokenBucket

#: Seconds within which a connection must be open and the first line must arrive.
HELLO_WITHIN: Final = 5.0
#: Two connections with the same friend that begin within this number of seconds are simultaneous dials.
SIMULTANEOUS: Final = 5.0
#: Connections longer than this number of seconds reset the waiting time of a disconnected friend.
GOOD_AFTER: Final = 60.0
#: Connections that one friend may have at a time, until all but one are closed.
MAX_CONNECTIONS: Final = 4
#: Seconds between two writes of the state, and between two log lines with counters.
SAVE_EVERY: Final = 2.0
LOG_EVERY: Final = 60.0
#: Log lines about unforeseen errors: rate per second and burst; unknown clients must not fill the disk.
ERROR_LINES: Final = (0.05, 20)
#: Seconds to wait for friends before searches are accepted: without friends, the peer submits all of them.
SETTLE_WITHIN: Final = 3.0
#: Fields of log lines.
LOGGED: Final = ("port", "friends", "connected", "counts", "few_friends", "about", "fault")


class Peer:
    """A member with connections, timers and an engine."""

    def __init__(self, config: Config, state: State) -> None:
        draw = random.SystemRandom().random
        self._config, self._state = config, state
        self._own = fingerprint(config.certificate)
        names = [fingerprint(friend.certificate) for friend in config.friends]
        self._member = Member(names, config.protocol, draw, lambda: secrets.token_hex(16), state.read())
        host, within = config.host, config.protocol.engine_within
        self._engine = HttpEngine(host.engine, within, messages.ANSWER_LIMIT, host.agent)
        self._friends = dict(enumerate(config.friends, 1))
        self._dialling = {number: Backoff(0.2, 60.0, draw) for number in self._friends}
        self._banned = {number: Backoff(1.0, 600.0, draw) for number in self._friends}
        self._absent = {number: asyncio.Event() for number in self._friends}
        self._connections: dict[int, Connection] = {}
        self._open: Counter[int] = Counter()
        self._numbers = count(1)
        self._searches: dict[int, asyncio.Future[messages.EngineResult]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._changed = False
        self._log = json_log.start(__name__, LOGGED, ("asyncio", "uvicorn", "uvicorn.error", "httpx"))
        self._error_lines = TokenBucket(*ERROR_LINES)
        # one thread, so that an older state is never written over a newer one
        self._writer = ThreadPoolExecutor(1)
        self.stop = asyncio.Event()

    # the endpoint's side

    async def search(self, text: str) -> messages.EngineResult:
        """Send a local query through the crowd; return None if it failed."""
        if self.stop.is_set():
            return None
        number = next(self._numbers)
        self._searches[number] = asyncio.get_running_loop().create_future()
        found = self._searches[number]
        self._handle(messages.LocalQuery(number, text))
        return await found

    def health(self) -> dict[str, Any]:
        """Return the status of the peer in numbers."""
        return {
            "friends": len(self._friends),
            "connected": len(self._connections),
            "under_way": self._member.in_flight,
            "counts": dict(self._member.counts),
        }

    # start and end

    async def run(self, http: tuple[str, int] | None) -> None:
        """Take part in the crowd until `stop` is set."""
        listener = await self._listen()
        for number, friend in self._friends.items():
            self._absent[number].set()
            if friend.address:
                self._start(self._dial(number))
        self._start(self._save_regularly())
        self._start(self._log_regularly())
        server: HttpServer | None = None
        try:
            if http:
                server = HttpServer(*http, "the search endpoint")
                await self._serve(server)
            await self.stop.wait()
        finally:
            await self._end(listener, server)

    async def _listen(self) -> asyncio.Server:
        host = self._config.host
        secured = self._context(ssl.PROTOCOL_TLS_SERVER)
        secured.num_tickets = 0
        listener = TlsListener(secured, HELLO_WITHIN, messages.LINE_LIMIT, self._on_inbound, self._start)
        try:
            server = await listener.open(host.listen, host.port)
        except OSError as error:
            raise UsageError(f"the peer cannot listen there: {error.strerror}") from None
        self._info("listening", port=server.sockets[0].getsockname()[1], friends=len(self._friends))
        if len(self._friends) < FEW_FRIENDS:
            about = "friends can attribute too many queries to you: have 3 friends or more"
            self._log.warning("warning", extra={"few_friends": len(self._friends), "about": about})
        return server

    async def _serve(self, server: HttpServer) -> None:
        """Serve the user's endpoint once friends have had time to connect."""
        until = self._now() + SETTLE_WITHIN
        while len(self._connections) < len(self._friends) and self._now() < until and not self.stop.is_set():
            await asyncio.sleep(0.05)
        await server.start(endpoint(self.search, self.health, server.port))
        self._info("searching", port=server.port, connected=len(self._connections))

    async def _end(self, listener: asyncio.Server, server: HttpServer | None) -> None:
        """End the user's searches, store the state and stop.

        From `stop` on the member receives no events: it would take parting friends for lost ones, and
        submit their queries from this machine.
        """
        self.stop.set()
        listener.close()
        for found in self._searches.values():
            if not found.done():
                found.set_result(None)
        if server is not None:
            await server.close()
        for connection in list(self._connections.values()):
            connection.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._engine.close()
        await self._save()
        self._writer.shutdown()
        self._info("stopped", counts=dict(self._member.counts))

    async def _save(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._writer, self._state.write, self._member.snapshot())
        except OSError:
            self._log.warning("warning", extra={"about": "the state could not be written"})

    async def _save_regularly(self) -> None:
        while True:
            await asyncio.sleep(SAVE_EVERY)
            if self._changed:
                self._changed = False
                await self._save()

    async def _log_regularly(self) -> None:
        while True:
            await asyncio.sleep(LOG_EVERY)
            self._info("counts", connected=len(self._connections), counts=dict(self._member.counts))

    def _info(self, event: str, **fields: Any) -> None:
        self._log.info(event, extra=fields)

    # connections

    def _context(self, side: ssl._SSLMethod) -> ssl.SSLContext:
        config = self._config
        files = (config.path(config.host.certificate), config.path(config.host.key))
        return context(side, *files, [friend.certificate for friend in config.friends])

    async def _on_inbound(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Run a connection that a friend opened; TLS admits friends only."""
        connection = Connection(reader, writer, dialled=False, begun=self._now())
        who = self._friend_of(connection)
        if who is None or self._now() < self._banned[who].until or self._open[who] >= MAX_CONNECTIONS:
            connection.close()
            return
        await self._run_connection(who, connection)

    def _friend_of(self, connection: Connection) -> int | None:
        shown = connection.certificate()
        return next((n for n, friend in self._friends.items() if friend.certificate == shown), None)

    async def _dial(self, who: int) -> None:
        """Keep a connection to a friend that has an address."""
        address, secured = self._friends[who].address, self._context(ssl.PROTOCOL_TLS_CLIENT)
        assert address is not None
        while True:
            await self._absent[who].wait()
            until = max(self._dialling[who].until, self._banned[who].until)
            await asyncio.sleep(max(0.0, until - self._now()))
            if who in self._connections:
                continue
            try:
                async with asyncio.timeout(HELLO_WITHIN):
                    streams = await asyncio.open_connection(*address, ssl=secured, limit=messages.LINE_LIMIT)
            except (OSError, TimeoutError):
                self._dialling[who].failed(self._now())
                continue
            connection = Connection(*streams, dialled=True, begun=self._now())
            if self._friend_of(connection) != who:  # a friend, but another one
                connection.close()
                self._dialling[who].failed(self._now())
                continue
            await self._run_connection(who, connection)

    async def _run_connection(self, who: int, connection: Connection) -> None:
        self._open[who] += 1
        try:
            connection.send(messages.encode(messages.Hello(messages.VERSION, len(self._friends))))
            async with asyncio.timeout(HELLO_WITHIN):
                first = await connection.receive()
            if not isinstance(first, messages.Hello):
                raise messages.ProtocolError("no hello")
            if self._register(who, connection, first):
                await self._receive_all(who, connection)
        except messages.ProtocolError:
            self._member.counts["protocol_errors"] += 1
            self._banned[who].failed(self._now())
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            if self._connections.get(who) is not connection:
                self._dialling[who].failed(self._now())
        finally:
            self._open[who] -= 1
            connection.close()
            self._unregister(who, connection)

    def _register(self, who: int, connection: Connection, first: messages.Hello) -> bool:
        """Use a connection; of two simultaneous dials, both sides keep the same one."""
        before = self._connections.get(who)
        if before is not None:
            ours_first = self._own < fingerprint(self._friends[who].certificate)
            recent = connection.begun - before.begun < SIMULTANEOUS
            if recent and before.dialled == ours_first != connection.dialled:
                return False
            self._unregister(who, before)
            before.close()
        self._connections[who] = connection
        self._absent[who].clear()
        self._handle(messages.FriendConnected(who, first.friends))
        return True

    def _unregister(self, who: int, connection: Connection) -> None:
        if self._connections.get(who) is not connection:
            return
        del self._connections[who]
        now = self._now()
        lasted = now - connection.begun
        if lasted > GOOD_AFTER:
            self._banned[who].succeeded(now)
        if lasted > SIMULTANEOUS:
            self._dialling[who].succeeded(now)
        else:
            self._dialling[who].failed(now)
        if not self.stop.is_set():
            self._handle(messages.FriendLost(who))
        self._absent[who].set()

    async def _receive_all(self, who: int, connection: Connection) -> None:
        while self._connections.get(who) is connection:
            message = await connection.receive()
            if self.stop.is_set():
                return
            if isinstance(message, messages.Hello):
                raise messages.ProtocolError("a second hello")
            self._handle(messages.Inbound(who, message))
            self._disconnect_if_misbehaving(who)
            await asyncio.sleep(0)  # a friend that sends without a pause must not delay others

    def _disconnect_if_misbehaving(self, who: int) -> None:
        connection = self._connections.get(who)
        if connection is not None and self._member.friends[who].exceeds_misbehaviour_limit:
            self._member.counts["disconnected"] += 1
            self._banned[who].failed(self._now())
            self._unregister(who, connection)
            connection.close()

    # events and actions of the member

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _handle(self, event: messages.Event) -> None:
        """Execute the actions that follow from an event, and set the next timer."""
        self._changed = True
        for action in self._member.handle(event, self._now()):
            if isinstance(action, messages.SubmitToEngine):
                self._start(self._submit(action))
            elif isinstance(action, messages.Send):
                if connection := self._connections.get(action.friend):
                    connection.send(messages.encode(action.message))
            else:
                found = self._searches.pop(action.number)
                if not found.done():
                    found.set_result(action.result)
        self._set_timer()

    def _set_timer(self) -> None:
        due = self._member.next_timer()
        if self._timer is not None:
            if self._timer.when() == due and not self._timer.cancelled():
                return
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(due, self._timer_fired) if due is not None else None

    def _timer_fired(self) -> None:
        self._timer = None
        if self.stop.is_set():
            return
        self._handle(messages.TimerFired())
        for who in list(self._connections):
            self._disconnect_if_misbehaving(who)

    async def _submit(self, action: messages.SubmitToEngine) -> None:
        if self.stop.is_set():
            return
        result: messages.EngineResult = None
        try:
            with contextlib.suppress(EngineUnavailable):
                result = await self._engine.search(action.text)
        finally:
            if not self.stop.is_set():
                self._handle(messages.EngineReply(action.job, result))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.report(error)

    def report(self, error: BaseException | None) -> None:
        """Count an unforeseen error; log some of them, without their texts, which may hold data."""
        self._member.counts["internal_errors"] += 1
        if not self._error_lines.take(self._now()):
            self._log.error("fault", extra={"fault": type(error).__name__})


def run(config: Config, http: tuple[str, int] | None) -> None:
    """Run a peer until SIGTERM or SIGINT."""
    if http:
        check_loopback(http[0])
    state = State(config.path(config.host.state))

    async def live() -> None:
        peer = Peer(config, state)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, peer.stop.set)
        loop.set_exception_handler(lambda _, about: peer.report(about.get("exception")))
        await peer.run(http)

    try:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(live())
    finally:
        state.close()
