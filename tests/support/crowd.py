"""A crowd of real peers on this machine, each its own process, and an engine that remembers who asked."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from querycloak.clients.crowd import demo_engine
from querycloak.clients.crowd.endpoint import HttpServer, parameter
from querycloak.clients.crowd.tls import new_identity
from tests.support.ports import free_ports

#: Long waits, since a test machine may be busy; no limits, since all friends are honest.
PATIENT: Final = {
    "accept_within": 10.0,
    "answer_within": 20.0,
    "engine_within": 10.0,
    "rate": 1000.0,
    "burst": 5000,
    "waiting": 1000,
    "in_flight": 5000,
}
_PROGRAM: Final = (sys.executable, "-c", "from querycloak.cli import main; main()")


def friendships(members: int, seed: int, most: int = 10) -> list[tuple[int, int]]:
    """Make up who is whose friend: newcomers befriend up to 3 people, likelier those with many friends."""
    chance, ends, found = random.Random(seed), [0], set[tuple[int, int]]()
    for new in range(1, members):
        for _ in range(chance.choice((1, 2, 2, 3))):
            other = chance.choice(ends)
            if other != new and ends.count(other) <= most:
                found.add((other, new))
        if not any(new in pair for pair in found):
            found.add((new - 1, new))
        ends += [new] + [other for other, one in found if one == new]
    return sorted(found)


class LocalCrowd:
    """Peers 0, 1, … with these friendships; use it with `async with`.

    Members in `simulated_by_test` get an identity and no process.
    """

    def __init__(
        self,
        folder: Path,
        pairs: Iterable[tuple[int, int]],
        protocol: Mapping[str, Any] | None = None,
        simulated_by_test: Collection[int] = (),
    ) -> None:
        self.folder, self.pairs, self._protocol = folder, list(pairs), dict(protocol or {})
        self.members = 1 + max(max(pair) for pair in self.pairs)
        self.real = [member for member in range(self.members) if member not in simulated_by_test]
        self.ports = free_ports(self.members)
        self.submitted: list[tuple[int, str]] = []
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._http_ports: dict[int, int] = {}
        self._engine: HttpServer | None = None
        self._client = httpx.AsyncClient(
            verify=False, trust_env=False, timeout=None, limits=httpx.Limits(max_connections=None)
        )

    def friends(self, member: int) -> list[int]:
        """Return who is whose friend."""
        return sorted({a + b - member for a, b in self.pairs if member in (a, b)})

    async def __aenter__(self) -> Self:
        self._engine = HttpServer("127.0.0.1", 0, "the engine of a test")
        await self._engine.start(Starlette(routes=[Route("/search", self._answer)]), most=None)
        for member in range(self.members):
            new_identity(self.folder / str(member))
        for member in range(self.members):
            self.configure(member)
        try:
            for member in self.real:
                self.start(member)
            await asyncio.gather(*(self.ready(member) for member in self.real))
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            await asyncio.to_thread(process.wait, 20)
        await self._client.aclose()
        await self.close_engine()

    async def _answer(self, request: Request) -> Response:
        self.submitted.append((int(parameter(request, "from")), parameter(request, "q")))
        return await demo_engine.answer(request)

    @property
    def engine_port(self) -> int:
        """Return the port of the engine."""
        assert self._engine is not None
        return self._engine.port

    def configure(self, member: int) -> None:
        """Write the configuration of a member."""
        engine = f"http://127.0.0.1:{self.engine_port}/search?q={{query}}&from={member}"
        lines = [f"port = {self.ports[member]}", f'engine = "{engine}"', "[protocol]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in self._protocol.items()]
        for friend in self.friends(member):
            lines += ["[[friends]]", f'name = "friend-{friend}"']
            lines += [f'certificate = "../{friend}/certificate.pem"']
            lines += [f'address = "127.0.0.1:{self.ports[friend]}"']
        (self.folder / str(member) / "crowd.toml").write_text("\n".join(lines) + "\n", "utf-8")

    def log(self, member: int) -> str:
        """Return all that a member has said on standard error."""
        path = self.folder / f"{member}.log"
        return path.read_text("utf-8") if path.exists() else ""

    def start(self, member: int) -> None:
        """Start a member, or start it again."""
        self._http_ports.pop(member, None)
        config = str(self.folder / str(member) / "crowd.toml")
        with (self.folder / f"{member}.log").open("wb") as log:
            self._processes[member] = subprocess.Popen(
                [*_PROGRAM, "crowd", "peer", config, "--http", "127.0.0.1:0"], stderr=log
            )

    async def ready(self, member: int, within: float = 60.0) -> None:
        """Wait until a member takes searches."""
        async with asyncio.timeout(within):
            while member not in self._http_ports:
                assert self.alive(member), self.log(member)
                for line in self.log(member).splitlines():
                    if '"searching"' in line:
                        self._http_ports[member] = json.loads(line)["port"]
                await asyncio.sleep(0.05)

    def kill(self, member: int) -> None:
        """Kill a member without a warning."""
        self._processes[member].kill()
        self._processes[member].wait()

    def stop(self, member: int) -> int:
        """Stop a member; return its exit status."""
        self._processes[member].send_signal(signal.SIGTERM)
        return self._processes[member].wait(20)

    def http_port(self, member: int) -> int:
        """Return the port of a member's endpoint."""
        return self._http_ports[member]

    async def close_engine(self) -> None:
        """Make the engine fail from now on."""
        if self._engine is not None:
            await self._engine.close()
            self._engine = None

    def alive(self, member: int) -> bool:
        """Whether a member's process runs."""
        return self._processes[member].poll() is None

    def process(self, member: int) -> int:
        """Return the process id of a member."""
        return self._processes[member].pid

    async def get(self, member: int, target: str, host: str | None = None) -> tuple[int, bytes]:
        """Send a request to a member; return status and body. Raise `ConnectionError` if it does not run."""
        address = f"http://127.0.0.1:{self._http_ports[member]}{target}"
        try:
            found = await self._client.get(address, headers={"Host": host} if host else {})
        except httpx.TransportError as error:
            raise ConnectionError(str(error)) from None
        return found.status_code, found.content

    async def search(self, member: int, text: str) -> tuple[int, bytes]:
        """Submit a search of a member."""
        return await self.get(member, "/search?q=" + quote(text, safe=""))

    async def health(self, member: int) -> dict[str, Any]:
        """Return the status of a member."""
        return dict(json.loads((await self.get(member, "/health"))[1]))

    async def wait_connected(self, within: float = 60.0) -> None:
        """Wait until every member is connected to all of its friends."""
        async with asyncio.timeout(within):
            for member in self.real:
                while (await self.health(member))["connected"] < len(self.friends(member)):
                    await asyncio.sleep(0.1)
