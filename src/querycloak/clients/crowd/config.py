"""Configuration of a peer: one TOML file, checked before anything starts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from querycloak import settings as declared
from querycloak.clients.crowd.rules import ProtocolSettings, share_setting
from querycloak.clients.crowd.tls import CERTIFICATE, KEY, read_certificate
from querycloak.errors import DataError, ParameterError, UsageError
from querycloak.settings import setting

#: With fewer friends, a friend can attribute too many queries to the member that sends them.
FEW_FRIENDS: Final = 3
_Kind = TypeVar("_Kind", bound=declared.Settings)
_NAME: Final = re.compile(r"[\w.-]{1,64}")
_whole: Final = partial(setting, kind=int, at_least=1)


@dataclass(frozen=True, kw_only=True)
class PeerSettings(ProtocolSettings):
    """The table `[protocol]`: settings of the protocol, waiting times in seconds, and limits."""

    redraw: str = setting(
        "alike",
        choices=("alike", "vector"),
        help="draw after a refusal: all friends equally likely (`alike`), or from the `vector` again",
    )
    most_own: float = share_setting(
        1.0,
        help="largest share of own queries among those sent to a friend that did not come from it; 1: any",
    )
    friends_counted: int = _whole(
        10, at_most=1000, help="largest number of friends that a friend is believed to have"
    )
    accept_within: float = setting(
        2.0, at_least=0.05, at_most=60, help="waiting time for a friend to accept or refuse"
    )
    answer_within: float = setting(
        8.0, at_least=0.1, at_most=600, help="longest waiting time for an answer; at least half of it"
    )
    engine_within: float = setting(4.0, at_least=0.05, at_most=300, help="waiting time for the engine")
    forgiveness: float = setting(
        3600.0, at_least=1, help="time after which a friend without trust regains one penalty"
    )
    rate: float = setting(20.0, at_least=0.01, at_most=1e6, help="queries per second that a friend may send")
    burst: int = _whole(100, at_most=10**6, help="queries that a friend may send at once after a pause")
    waiting: int = _whole(64, at_most=10**5, help="queries of one friend that may be in flight")
    in_flight: int = _whole(512, at_most=10**6, help="queries of all members that may be in flight")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine_within > self.answer_within / 2:
            raise ParameterError(
                "crowd: `engine_within` must be at most half of `answer_within`",
                hint="otherwise friends give up while the engine can still answer",
            )


@dataclass(frozen=True, kw_only=True)
class HostSettings(declared.Settings):
    """Top level of the file: addresses and files of the peer; paths are relative to the configuration."""

    method = "crowd"

    listen: str = setting("127.0.0.1", help="address to listen on for friends")
    port: int = _whole(at_most=65535, help="port to listen on for friends")
    certificate: str = setting(CERTIFICATE, help="certificate of the peer (PEM)")
    key: str = setting(KEY, help="private key of the peer (PEM)")
    state: str = setting("state", help="folder that stores trust and counters over restarts")
    engine: str = setting(kind=str, help="address of the search engine, with `{query}` for the query")
    agent: str = setting("querycloak", help="user agent that is sent to the engine")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_engine(self.engine)
        if not self.agent.isascii() or not self.agent.isprintable():
            raise ParameterError("crowd: `agent` must be printable ASCII")


@dataclass(frozen=True, kw_only=True)
class FriendEntry(declared.Settings):
    """One table `[[friends]]`."""

    method = "crowd"

    name: str = setting(kind=str, help="name in this file; it is in no message and no log")
    certificate: str = setting(kind=str, help="certificate of the friend (PEM)")
    address: str = setting("", help="HOST:PORT; without it, the friend connects")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _NAME.fullmatch(self.name):
            raise ParameterError("crowd: `name` of a friend must be 1 to 64 letters, digits, `.`, `_` or `-`")


@dataclass(frozen=True)
class Friend:
    """A friend: certificate in binary form, and its address if it can be reached."""

    certificate: bytes
    address: tuple[str, int] | None


@dataclass(frozen=True)
class Config:
    """The whole configuration of a peer."""

    host: HostSettings
    protocol: PeerSettings
    friends: tuple[Friend, ...]
    certificate: bytes
    folder: Path

    def path(self, name: str) -> Path:
        """Return the path of a file that the configuration names."""
        return self.folder / name


def check_engine(template: str) -> None:
    """Raise ParameterError for an engine's address that cannot be one."""
    try:
        parts = urlsplit(template)
        port = parts.port
    except ValueError:
        port, parts = 0, urlsplit("")
    good = parts.scheme in ("http", "https") and parts.hostname and port != 0 and not parts.username
    plain = template.isascii() and template.isprintable() and " " not in template
    sent = "{query}" in parts.path or "{query}" in parts.query  # a fragment is never sent
    if not good or not plain or template.count("{query}") != 1 or not sent:
        raise ParameterError(
            "`engine` must be an http or https address with `{query}` in it, once",
            hint="for example http://127.0.0.1:8000/search?q={query}",
        )


def host_and_port(text: str, what: str) -> tuple[str, int]:
    """Parse HOST:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise ParameterError(f"{what} must be HOST:PORT")
    return host.strip("[]"), int(port)


def read(path: Path) -> Config:
    """Read and check a configuration file."""
    document = _parse(path)
    entries, protocol = document.pop("friends", []), _protocol(document)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError("`friends` must be tables", hint="begin each with `[[friends]]`")
    host = _settings(HostSettings, document)
    own = read_certificate(path.parent / host.certificate, "the peer itself")
    friends = tuple(_friend(number, entry, path.parent) for number, entry in enumerate(entries, 1))
    certificates, names = {friend.certificate for friend in friends}, {entry["name"] for entry in entries}
    if not friends:
        raise UsageError("a peer needs at least one friend", hint="add a table `[[friends]]`")
    if len(certificates) < len(friends) or len(names) < len(friends):
        raise UsageError("two friends have the same certificate or the same name")
    if own in certificates:
        raise UsageError("one of the friends is the peer itself: both have the same certificate")
    return Config(host, _settings(PeerSettings, protocol), friends, own, path.parent)


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"the configuration cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError("the configuration is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"line \d+", str(error))  # the rest of the message may quote the file
        raise DataError(f"the configuration is not TOML{f' ({where[0]})' if where else ''}") from None


def _protocol(document: dict[str, Any]) -> dict[str, Any]:
    """Remove and return the table `[protocol]`, or `[manners]`, its name in older files."""
    found = {name: document.pop(name) for name in ("protocol", "manners") if name in document}
    if len(found) > 1:
        raise UsageError("`[manners]` is the old name of `[protocol]`: use one of them")
    for name, table in found.items():
        if not isinstance(table, dict):
            raise DataError(f"`{name}` must be a table", hint=f"begin it with `[{name}]`")
        return table
    return {}


def _settings(kind: type[_Kind], values: Mapping[str, Any], what: str = "") -> _Kind:
    missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in values]
    if missing:
        raise UsageError(f"the configuration{what} lacks `{missing[0]}`")
    return kind.given(values)


def _friend(number: int, entry: Mapping[str, Any], folder: Path) -> Friend:
    checked = _settings(FriendEntry, entry, f" of friend {number}")
    address = host_and_port(checked.address, "a friend's `address`") if checked.address else None
    return Friend(read_certificate(folder / checked.certificate, f"friend {number}"), address)
