"""The configuration of a peer: one TOML file, declared once, checked before anything starts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from querycloak import settings as declared
from querycloak.clients.crowd.identity import CERTIFICATE, KEY, fingerprint, read_certificate
from querycloak.clients.crowd.manners import Manners
from querycloak.errors import DataError, ParameterError, UsageError
from querycloak.settings import setting

#: With fewer friends than this, what comes from a member is too easily told to be hers.
FEW_FRIENDS: Final = 3
Made = TypeVar("Made", bound=declared.Settings)
_NAME: Final = re.compile(r"[\w.-]{1,64}")


@dataclass(frozen=True, kw_only=True)
class Place(declared.Settings):
    """Where a peer listens and what she is; files are looked for beside the configuration."""

    listen: str = setting("127.0.0.1", kind=str, help="the address to listen on for friends")
    port: int = setting(kind=int, at_least=1, at_most=65535, help="the port to listen on for friends")
    certificate: str = setting(CERTIFICATE, kind=str, help="her own certificate (PEM)")
    key: str = setting(KEY, kind=str, help="her own private key (PEM)")
    state: str = setting("state", kind=str, help="the folder that keeps trust and counters over restarts")
    engine: str = setting(kind=str, help="the search engine's address, with `{query}` where the query goes")
    agent: str = setting("querycloak", kind=str, help="what the engine is told about the program")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_engine(self.engine)
        if not self.agent.isascii() or not self.agent.isprintable():
            raise ParameterError("Place: `agent` must be printable ASCII")


@dataclass(frozen=True, kw_only=True)
class FriendEntry(declared.Settings):
    """One friend: what she is called here, her certificate, and her address if she can be dialled."""

    name: str = setting(kind=str, help="what she is called in this file; it is in no message and no log")
    certificate: str = setting(kind=str, help="her certificate (PEM)")
    address: str = setting("", kind=str, help="HOST:PORT; without it, she dials")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _NAME.fullmatch(self.name):
            raise ParameterError("FriendEntry: `name` must be 1 to 64 letters, digits, `.`, `_` or `-`")
        if self.address:
            host_and_port(self.address, "a friend's `address`")


@dataclass(frozen=True)
class Friend:
    """A friend as the peer knows her."""

    certificate: bytes
    address: tuple[str, int] | None

    @property
    def fingerprint(self) -> str:
        """Give the SHA-256 of her certificate."""
        return fingerprint(self.certificate)


@dataclass(frozen=True)
class Config:
    """All that a peer is told before it starts."""

    place: Place
    manners: Manners
    friends: tuple[Friend, ...]
    own: bytes
    folder: Path

    def path(self, name: str) -> Path:
        """Find a file that the configuration names: beside it, or where it says."""
        return self.folder / name


def check_engine(template: str) -> None:
    """Refuse an engine's address that cannot be one."""
    try:
        parts = urlsplit(template)
        port = parts.port
    except ValueError:
        port, parts = 0, urlsplit("")
    good = parts.scheme in ("http", "https") and parts.hostname and port != 0 and not parts.username
    plain = template.isascii() and template.isprintable() and " " not in template
    sent = "{query}" in parts.path or "{query}" in parts.query  # what follows a `#` is never sent
    if not good or not plain or template.count("{query}") != 1 or not sent:
        raise ParameterError(
            "`engine` must be an http or https address with `{query}` in it, once",
            hint="for example http://127.0.0.1:8000/search?q={query}",
        )


def host_and_port(text: str, what: str) -> tuple[str, int]:
    """Read HOST:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise ParameterError(f"{what} must be HOST:PORT")
    return host.strip("[]"), int(port)


def read(path: Path) -> Config:
    """Read and check a configuration file."""
    document = _parsed(path)
    entries, manners = document.pop("friends", []), document.pop("manners", {})
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError("`friends` must be tables", hint="begin each with `[[friends]]`")
    if not isinstance(manners, dict):
        raise DataError("`manners` must be a table", hint="begin it with `[manners]`")
    place = _made(Place, document)
    own = read_certificate(path.parent / place.certificate, "the peer itself")
    friends = tuple(_friend(number, entry, path.parent) for number, entry in enumerate(entries, 1))
    _check_friends(own, friends, [entry["name"] for entry in entries])
    return Config(place, _made(Manners, manners), friends, own, path.parent)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"the configuration cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError("the configuration is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"line \d+", str(error))  # the rest of the message may quote the file
        raise DataError(f"the configuration is not TOML{f' ({where[0]})' if where else ''}") from None


def _made(kind: type[Made], values: Mapping[str, Any], what: str = "") -> Made:
    missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in values]
    if missing:
        raise UsageError(f"the configuration{what} lacks `{missing[0]}`")
    return kind.given(values)


def _friend(number: int, entry: Mapping[str, Any], folder: Path) -> Friend:
    made = _made(FriendEntry, entry, f" of friend {number}")
    address = host_and_port(made.address, "a friend's `address`") if made.address else None
    return Friend(read_certificate(folder / made.certificate, f"friend {number}"), address)


def _check_friends(own: bytes, friends: tuple[Friend, ...], names: list[str]) -> None:
    if not friends:
        raise UsageError("a peer needs at least one friend", hint="add a table `[[friends]]`")
    if len({friend.certificate for friend in friends}) < len(friends) or len(set(names)) < len(names):
        raise UsageError("two friends have the same certificate or the same name")
    if own in {friend.certificate for friend in friends}:
        raise UsageError("one of the friends is the peer itself: both have the same certificate")
