"""Runs a service as a process: socket, TLS, uvicorn, signals, and reloading of its configuration."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Final

import uvicorn

from querycloak import json_log
from querycloak.errors import QueryCloakError, Refused, UsageError
from querycloak.service.service import Service
from querycloak.service.settings import RELOADABLE, ServiceSettings, Setup
from querycloak.service.web.app import make_app
from querycloak.service.web.auth import Tokens
from querycloak.service.web.bodies import RateLimiter
from querycloak.service.web.connection_limits import ConnectionLimits, with_limits

#: Seconds between checks whether the service has failed.
_CHECK_SECONDS: Final = 0.5
#: Files that a service may have open beside its connections; connections during a TLS handshake count here.
_OWN_FILES: Final = 4096
#: Seconds that one thread may keep others from running: requests wait little for the worker.
_SWITCH_SECONDS: Final = 0.0005
#: Fields of a log line beside time, level and event; all others are left out: never a user or a query.
LOGGED: Final = frozenset({"fault", "code", "position", "partition", "count", "trouble", "setting"})
#: Loggers that are silenced: their lines can hold addresses.
_LIBRARIES: Final = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio")
_log = logging.getLogger("querycloak.service")


def run(setup: Setup, ready: Callable[[str], None] = lambda address: None) -> None:
    """Run a service until SIGTERM or SIGINT; `ready` is called with the address once it answers.

    Raise the reason if the service fails while it runs, so that the process ends with a status other than 0.
    """
    settings = setup.settings
    tokens = Tokens(Path(settings.tokens) if settings.tokens else None)
    if not setup.loopback and not tokens.required:
        raise Refused(
            "without tokens the service listens on loopback only",
            hint="use `--host 127.0.0.1`, or create tokens with `querycloak serve --new-token`",
        )
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the configuration can be reloaded
    tls = tls_context(settings)
    _raise_file_limit(settings.connections)
    listening = _listen(settings.host, settings.port)
    service = Service(setup)
    service.open()
    json_log.start("querycloak.service", LOGGED, _LIBRARIES)
    try:
        service.start()
        address = _address(setup, listening)
        _log.info("started", extra={"position": service.state().counts.position})
        sys.setswitchinterval(_SWITCH_SECONDS)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(service, tokens, tls, listening, lambda: ready(address)))
    finally:
        listening.close()
        service.stop()
        _log.info("stopped", extra={"position": service.state().counts.position})
    if service.worker.failure is not None:
        raise service.worker.failure


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        raise UsageError(
            f"cannot listen on port {port}: {error.strerror}", hint="is another service running there?"
        ) from None
    return listening


def _raise_file_limit(connections: int) -> None:
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


async def _serve(
    service: Service,
    tokens: Tokens,
    tls: ssl.SSLContext | None,
    listening: socket.socket,
    ready: Callable[[], None],
) -> None:
    limits, app = ConnectionLimits(), make_app(service, tokens)
    reloader = ConfigReloader(service, tokens, app.state.rate_limiter, limits, tls)
    config = uvicorn.Config(
        app,
        http=with_limits(limits),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=15,
        timeout_graceful_shutdown=10,
        ssl_context_factory=(lambda *_: tls) if tls is not None else None,
    )
    server = uvicorn.Server(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: setattr(server, "should_exit", True))
    loop.add_signal_handler(signal.SIGHUP, reloader.reload)
    serving = asyncio.create_task(server.serve([listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if not serving.done():
        ready()
    while not serving.done():
        await asyncio.wait({serving}, timeout=_CHECK_SECONDS)
        server.should_exit = server.should_exit or service.worker.failure is not None
        if server.should_exit:
            service.begin_stop()
    await serving


def tls_context(settings: ServiceSettings) -> ssl.SSLContext | None:
    """Return the TLS context of a service that has a certificate; TLS 1.2 is the oldest version."""
    if not settings.tls_certificate and not settings.tls_key:
        return None
    if not settings.tls_certificate or not settings.tls_key:
        raise UsageError("TLS needs both `tls_certificate` and `tls_key`")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    _load_certificate(context, settings)
    return context


def _load_certificate(context: ssl.SSLContext, settings: ServiceSettings) -> None:
    try:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key, password=_no_password)
    except ssl.SSLError:
        raise UsageError("cannot use certificate and key: they are not PEM, or not a pair") from None
    except OSError as error:
        raise UsageError(f"cannot use certificate and key: {error.strerror}") from None


def _no_password() -> str:
    """Refuse an encrypted key: OpenSSL would ask for its password on the terminal."""
    raise UsageError("the TLS key is encrypted", hint="store it unencrypted, readable by its owner only")


class ConfigReloader:
    """Reads tokens, certificate and configuration again on SIGHUP; applies what needs no restart."""

    def __init__(
        self,
        service: Service,
        tokens: Tokens,
        limiter: RateLimiter,
        limits: ConnectionLimits,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._service, self._tokens, self._limiter = service, tokens, limiter
        self._limits, self._tls = limits, tls
        self._apply(service.settings)

    def reload(self) -> None:
        """Apply what has changed. An invalid part stays as it was, and is logged.

        A token can be revoked even while the configuration is invalid.
        """
        for step in (self._tokens.reload, self._reload_certificate, self._reload_settings):
            try:
                step()
            except QueryCloakError as error:
                _log.error("not reloaded", extra={"code": error.code, "trouble": error.message})

    def _reload_certificate(self) -> None:
        if self._tls is not None:
            _load_certificate(self._tls, self._service.settings)

    def _reload_settings(self) -> None:
        known = self._service.setup
        fresh = known.again() if known.again is not None else known
        changed = _changed(self._service.settings, fresh.settings)
        refused = [name for name in _changed(known.settings, fresh.settings) if name not in RELOADABLE]
        for name in refused + ["methods"] * (fresh.stages != known.stages):
            _log.warning("not reloaded", extra={"setting": name, "trouble": "needs a restart"})
        taken = [name for name in changed if name in RELOADABLE]
        values = {name: getattr(fresh.settings, name) for name in taken}
        self._service.settings = replace(self._service.settings, **values)
        self._apply(self._service.settings)
        for name in taken:
            _log.info("reloaded", extra={"setting": name})
        _log.info("reloaded", extra={"count": len(taken)})

    def _apply(self, settings: ServiceSettings) -> None:
        """Update the objects that have a copy of a setting; all others read it each time."""
        self._limiter.set_rate(settings.rate)
        self._limits.head_seconds, self._limits.connections = settings.head_seconds, settings.connections
        self._service.released.keep(settings.keep_bytes, settings.keep_seconds)


def _changed(known: ServiceSettings, fresh: ServiceSettings) -> list[str]:
    return [f.name for f in fields(known) if getattr(known, f.name) != getattr(fresh, f.name)]
