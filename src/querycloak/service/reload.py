"""What a running service takes over on SIGHUP: tokens, certificates, limits, times that change no outcome."""

from __future__ import annotations

import logging
import ssl
from dataclasses import fields, replace

from querycloak.errors import QueryCloakError
from querycloak.service.service import Service
from querycloak.service.settings import RELOADABLE, ServiceSettings, Setup
from querycloak.service.web import tls
from querycloak.service.web.line import Limits
from querycloak.service.web.pace import Pace
from querycloak.service.web.tokens import Tokens

_log = logging.getLogger("querycloak.service")


class Reloading:
    """Reads the configuration anew; takes what is safe, and names what needs a restart."""

    def __init__(
        self, service: Service, tokens: Tokens, pace: Pace, limits: Limits, secure: ssl.SSLContext | None
    ) -> None:
        self._service, self._tokens, self._pace = service, tokens, pace
        self._limits, self._secure = limits, secure
        self._apply(service.settings)

    def reload(self) -> None:
        """Take over what has changed. What is faulty stays as it was, and the log says so.

        A token can be taken back even while the configuration is broken.
        """
        for step in (self._tokens.reload, self._certificate, self._settings):
            try:
                step()
            except QueryCloakError as error:
                _log.error("not reloaded", extra={"code": error.code, "trouble": error.message})

    def _certificate(self) -> None:
        if self._secure is not None:
            tls.load(self._secure, self._service.settings)

    def _settings(self) -> None:
        setup = self._service.setup
        fresh = setup.again() if setup.again is not None else setup
        self._refuse(fresh)
        self._take(fresh.settings)

    def _refuse(self, fresh: Setup) -> None:
        known = self._service.setup
        names = [name for name in _changed(known.settings, fresh.settings) if name not in RELOADABLE]
        if fresh.stages != known.stages:
            names.append("methods")
        for name in names:
            _log.warning("not reloaded", extra={"setting": name, "trouble": "needs a restart"})

    def _take(self, fresh: ServiceSettings) -> None:
        known = self._service.settings
        names = [name for name in _changed(known, fresh) if name in RELOADABLE]
        self._service.settings = replace(known, **{name: getattr(fresh, name) for name in names})
        self._apply(self._service.settings)
        for name in names:
            _log.info("reloaded", extra={"setting": name})
        _log.info("reloaded", extra={"count": len(names)})

    def _apply(self, settings: ServiceSettings) -> None:
        """Tell those who keep a value of their own; all others look it up each time."""
        self._pace.rate = settings.rate
        self._limits.head_seconds, self._limits.connections = settings.head_seconds, settings.connections
        self._service.released.keep(settings.keep_bytes, settings.keep_seconds)


def _changed(known: ServiceSettings, fresh: ServiceSettings) -> list[str]:
    return [f.name for f in fields(known) if getattr(known, f.name) != getattr(fresh, f.name)]
