"""Settings of a service: one declaration for file, environment, command line and documentation."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from querycloak import settings as declared
from querycloak.engines.pipeline import Stage, parse_stages
from querycloak.errors import ParameterError, UsageError
from querycloak.keys import others_can_read
from querycloak.ledger import default_state
from querycloak.settings import setting

#: Prefix of environment variables: `QUERYCLOAK_SERVE_PORT`.
PREFIX: Final = "QUERYCLOAK_SERVE_"
#: Settings that SIGHUP reloads; it also reads token, certificate and key files again.
RELOADABLE: Final = frozenset(
    {
        "backlog",
        "body_bytes",
        "body_seconds",
        "connections",
        "head_seconds",
        "hold_seconds",
        "keep_bytes",
        "keep_seconds",
        "rate",
        "snapshot_seconds",
        "wait_seconds",
    }
)
#: A password in an address: `//user:password@`, or `?password=`.
_PASSWORD: Final = re.compile(r"://[^/?#]*:[^/?#]+@|[?&][\w.]*password=", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ServiceSettings(declared.Settings):
    """Settings of `querycloak serve`."""

    host: str = setting("127.0.0.1", help="address to listen on; without tokens, loopback only")
    port: int = setting(8484, at_least=0, at_most=65535, help="port to listen on; 0: any free one")
    state: str = setting(
        "", help="folder of write-ahead log, snapshots, released lines; default: in your home"
    )
    source: str = setting("http", help="`http`, `kafka://HOST:PORT/TOPIC` or `file-tail:PATH`")
    sink: str = setting("http-pull", help="`http-pull`, `kafka://HOST:PORT/TOPIC` or `file:PATH`")
    profiles: str = setting("sqlite", help="`sqlite`, `sqlite:///PATH`, `postgresql://…` or `none`")
    classify: bool = setting(True, help="classify records without a category")
    taxonomy: str = setting("", help="taxonomy in place of the built-in one")
    tokens: str = setting("", help="token file: names, roles, hashes")
    tls_certificate: str = setting("", help="certificate file, PEM; with `tls_key`, the service speaks TLS")
    tls_key: str = setting("", help="private key file, PEM")
    state_key: str = setting("", help="file with the key that encrypts write-ahead log and snapshots")
    secret_file: str = setting(
        "", help="file with the secret of draws and pseudonyms; default: one in the state folder"
    )
    body_bytes: int = setting(16 << 20, at_least=1024, help="largest body, after decompression")
    body_seconds: float = setting(30, kind=float, at_least=0.1, help="time for a body to arrive, in seconds")
    head_seconds: float = setting(
        10, kind=float, at_least=0.1, help="time for a request's head to arrive, in seconds"
    )
    connections: int = setting(1000, at_least=1, help="open connections, at most")
    rate: float = setting(0, kind=float, at_least=0, help="records a second per token; 0: no limit")
    backlog: int = setting(2_000_000, at_least=1, help="records on disk and not applied, at most; then 429")
    retry_seconds: int = setting(86_400, at_least=1, help="how long an Idempotency-Key is stored, in seconds")
    click_seconds: int = setting(
        60, at_least=0, help="how long a UBI search is held for its clicks, in seconds"
    )
    hold_seconds: int = setting(0, at_least=0, help="how long a record may be held, in seconds; 0: no limit")
    keep_bytes: int = setting(
        4 << 30, at_least=1 << 20, help="size of released lines that are kept, in bytes"
    )
    keep_seconds: int = setting(7 * 86_400, at_least=1, help="how long released lines are kept, in seconds")
    rotate_bytes: int = setting(256 << 20, at_least=1024, help="size at which a file sink is rotated")
    snapshot_seconds: float = setting(
        60, kind=float, at_least=0.05, help="least time between snapshots, in seconds"
    )
    certificate_seconds: int = setting(3600, at_least=1, help="time that a certificate covers, in seconds")
    wait_seconds: int = setting(60, at_least=0, help="longest wait of a long poll, in seconds")

    @property
    def folder(self) -> Path:
        """The state folder."""
        return Path(self.state) if self.state else default_state() / "service"


@dataclass(frozen=True)
class Setup:
    """Settings of the service and of its methods."""

    settings: ServiceSettings
    stages: list[Stage]
    seed: int | None = None
    again: Callable[[], Setup] | None = field(
        default=None, compare=False, repr=False
    )  # reads the configuration again

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return self.settings.host in ("127.0.0.1", "::1", "localhost")


def setup(
    flags: Mapping[str, Any],
    methods: list[str],
    chosen: Mapping[str, str],
    *,
    seed: int | None = None,
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Setup:
    """Return the set-up: flags win over the environment, which wins over the file."""
    again = partial(setup, flags, methods, chosen, seed=seed, config=config, environment=environment)
    file = _read(config) if config is not None else {}
    named = _listed(file.pop("methods", []))
    table = file.pop("settings", {})
    if not isinstance(table, dict):
        raise ParameterError("`settings` must be a table: the settings of the methods, under `[settings]`")
    of_methods = {**_texts(table), **chosen}
    given = {name: str(value) for name, value in flags.items() if value is not None}
    _check_passwords(given)
    variables = os.environ if environment is None else environment
    named_there = {
        name.removeprefix(PREFIX).lower(): text for name, text in variables.items() if name.startswith(PREFIX)
    }
    settings = ServiceSettings.parse({**_texts(file), **named_there, **given})
    # Users are keyed hashes of their ids on arrival, new in each epoch: labels stay the same within it.
    stages = parse_stages(methods or named or ["cohort"], of_methods, labels="keep")
    return Setup(settings, stages, seed, again)


def _check_passwords(flags: Mapping[str, str]) -> None:
    """Refuse a password on the command line, where every user of the machine can read it."""
    for name, text in flags.items():
        if _PASSWORD.search(text):
            raise UsageError(
                f"`{name}` holds a password, and every user of this machine can read a command line",
                hint=f"put it into the configuration file, {PREFIX}{name.upper()} or PGPASSWORD",
            )


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
        if _PASSWORD.search(text) and others_can_read(path):
            raise UsageError(
                "the configuration holds a password and is readable by other users",
                hint="run `chmod 600` on it first",
            )
        return tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read the configuration: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise UsageError("the configuration is not TOML") from None


def _listed(methods: Any) -> list[str]:
    listed = [methods] if isinstance(methods, str) else methods
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise ParameterError('`methods` must be a list of names, like ["rules", "cohort"]')
    return listed


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}
