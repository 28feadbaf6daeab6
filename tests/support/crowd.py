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

from querycloak.clients.crowd import search_server
from querycloak.clients.crowd.identity import new_identity
from querycloak.clients.crowd.web import Request, Response, port_of, serve
from tests.support.ports import free_ports

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

    Those who are `played` get an identity, and no process: somebody else plays them.
    """

    def __init__(
        self,
        folder: Path,
        pairs: Iterable[tuple[int, int]],
        manners: Mapping[str, Any] | None = None,
        played: Collection[int] = (),
    ) -> None:
        self.folder, self.pairs, self._manners = folder, list(pairs), dict(manners or {})
        self.members = 1 + max(max(pair) for pair in self.pairs)
        self.real = [member for member in range(self.members) if member not in played]
        self.ports = free_ports(self.members)
        self.submitted: list[tuple[int, str]] = []
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._doors: dict[int, int] = {}
        self._engine: asyncio.Server | None = None

    def friends(self, member: int) -> list[int]:
        """Return who is whose friend."""
        return sorted({a + b - member for a, b in self.pairs if member in (a, b)})

    async def __aenter__(self) -> Self:
        self._engine = await serve(self._answer, "127.0.0.1", 0, most=4096)
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
        self.close_engine()

    async def _answer(self, request: Request) -> Response:
        self.submitted.append((int(request.one("from")), request.one("q")))
        return await search_server.answer(request)

    def configure(self, member: int) -> None:
        """Write the configuration of a member."""
        assert self._engine is not None
        engine = f"http://127.0.0.1:{port_of(self._engine)}/search?q={{query}}&from={member}"
        lines = [f"port = {self.ports[member]}", f'engine = "{engine}"', "[manners]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in self._manners.items()]
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
        self._doors.pop(member, None)
        config = str(self.folder / str(member) / "crowd.toml")
        with (self.folder / f"{member}.log").open("wb") as log:
            self._processes[member] = subprocess.Popen(
                [*_PROGRAM, "crowd", "peer", config, "--http", "127.0.0.1:0"], stderr=log
            )

    async def ready(self, member: int, within: float = 60.0) -> None:
        """Wait until a member takes searches."""
        async with asyncio.timeout(within):
            while member not in self._doors:
                assert self.alive(member), self.log(member)
                for line in self.log(member).splitlines():
                    if '"searching"' in line:
                        self._doors[member] = json.loads(line)["port"]
                await asyncio.sleep(0.05)

    def kill(self, member: int) -> None:
        """Kill a member without a warning."""
        self._processes[member].kill()
        self._processes[member].wait()

    def stop(self, member: int) -> int:
        """Stop a member; return its exit status."""
        self._processes[member].send_signal(signal.SIGTERM)
        return self._processes[member].wait(20)

    def door(self, member: int) -> int:
        """Return the port of a member's endpoint."""
        return self._doors[member]

    def close_engine(self) -> None:
        """Make the engine fail from now on."""
        assert self._engine is not None
        self._engine.close()

    def alive(self, member: int) -> bool:
        """Whether a member's process runs."""
        return self._processes[member].poll() is None

    def process(self, member: int) -> int:
        """Return the process id of a member."""
        return self._processes[member].pid

    async def get(self, member: int, target: str, host: str | None = None) -> tuple[int, bytes]:
        """Send a request to a member; return status and body. Raise `ConnectionError` if it does not run."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._doors[member], limit=1 << 24)
        try:
            named = host or f"127.0.0.1:{self._doors[member]}"
            writer.write(f"GET {target} HTTP/1.1\r\nHost: {named}\r\n\r\n".encode())
            whole = await reader.read(-1)
        finally:
            writer.close()
        if not whole:
            raise ConnectionError("closed without an answer")
        head, _, body = whole.partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), body

    async def search(self, member: int, text: str) -> tuple[int, bytes]:
        """Submit a search of a member."""
        return await self.get(member, "/search?q=" + quote(text, safe=""))

    async def health(self, member: int) -> dict[str, Any]:
        """Return the status of a member."""
        return dict(json.loads((await self.get(member, "/health"))[1]))

    async def whole(self, within: float = 60.0) -> None:
        """Wait until every member is connected to all of its friends."""
        async with asyncio.timeout(within):
            for member in self.real:
                while (await self.health(member))["connected"] < len(self.friends(member)):
                    await asyncio.sleep(0.1)
