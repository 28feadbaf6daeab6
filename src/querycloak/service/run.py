"""Runs a service until it is told to stop: sockets, signals, threads, and the order in which they end."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import uvicorn

from querycloak.errors import Refused, UsageError
from querycloak.service import logs
from querycloak.service.reload import Reloading
from querycloak.service.service import Service
from querycloak.service.settings import Setup
from querycloak.service.web import tls
from querycloak.service.web.app import make_app
from querycloak.service.web.guard import Guard
from querycloak.service.web.line import Limits, limited
from querycloak.service.web.tokens import Tokens

#: How often a service is asked whether it must end.
_LOOK: Final = 0.5
#: Files that a service may have open beside its connections: those that are not through with TLS count here.
_OWN_FILES: Final = 4096
#: How long a thread may keep others from running, in seconds: requests wait for the worker no longer.
_SHARE: Final = 0.0005


def serve(setup: Setup, ready: Callable[[str], None] = lambda address: None) -> None:
    """Run a service until SIGTERM or SIGINT; `ready` is told the address once it answers."""
    settings = setup.settings
    tokens = Tokens(Path(settings.tokens) if settings.tokens else None)
    if not setup.loopback and not tokens.required:
        raise Refused(
            "without tokens the service is for this machine alone",
            hint="use `--host 127.0.0.1`, or make tokens with `querycloak serve --new-token`",
        )
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # whoever sends one while state is read means no harm
    secure = tls.context(settings)
    _make_room(settings.connections)
    listening = _socket(settings.host, settings.port)
    service = Service(setup)
    service.open()
    log = logs.start()
    try:
        service.start()
        address = _address(setup, listening)
        log.info("started", extra={"position": service.worker.counts.position})
        sys.setswitchinterval(_SHARE)
        with asyncio.Runner(loop_factory=_loop()) as runner:
            runner.run(_run(service, Guard(tokens), secure, listening, lambda: ready(address)))
    finally:
        listening.close()
        service.stop()
        log.info("stopped", extra={"position": service.worker.counts.position})
    if service.over is not None:
        raise service.over


def _loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """Take the faster event loop, where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def _socket(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be listened on: {error.strerror}", hint="is another service running there?"
        ) from None
    return listening


def _make_room(connections: int) -> None:
    """Let the process have files for so many connections beside its own, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _address(setup: Setup, listening: socket.socket) -> str:
    scheme = "https" if setup.settings.tls_certificate else "http"
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


async def _run(
    service: Service,
    guard: Guard,
    secure: ssl.SSLContext | None,
    listening: socket.socket,
    ready: Callable[[], None],
) -> None:
    limits, app = Limits(), make_app(service, guard)
    reloading = Reloading(service, guard.tokens, app.state.pace, limits, secure)
    config = uvicorn.Config(
        app,
        http=limited(limits),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=15,
        timeout_graceful_shutdown=10,
        ssl_context_factory=(lambda *_: secure) if secure is not None else None,
    )
    server = uvicorn.Server(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: setattr(server, "should_exit", True))
    loop.add_signal_handler(signal.SIGHUP, reloading.reload)
    serving = asyncio.create_task(server.serve([listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if not serving.done():
        ready()
    while not serving.done():
        await asyncio.wait({serving}, timeout=_LOOK)
        server.should_exit = server.should_exit or service.over is not None
        if server.should_exit:
            service.hasten()
    await serving
