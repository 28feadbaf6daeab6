"""Settings are declared once: the check, the command line, the certificate and the docs read this."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Self

from querycloak.errors import ParameterError, UnknownName, UsageError


def setting(
    default: Any = MISSING,
    *,
    kind: type,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    choices: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    help: str,  # noqa: A002 - the word that every reader of a command line knows
) -> Any:
    """Declare one setting: its default, type, bounds, allowed words, and what it means to a reader.

    `choices` closes a text setting; `also` lists words that a number may be replaced by (`auto`).
    """
    about = {
        "kind": kind,
        "at_least": at_least,
        "at_most": at_most,
        "choices": choices,
        "also": also,
        "help": help,
    }
    return field(default=default, metadata=about)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The parent of all settings: frozen, checked as a whole, all faults told in one go."""

    def __post_init__(self) -> None:
        if wrong := [text for f in fields(self) if (text := _fault(f, getattr(self, f.name)))]:
            owner = type(self).__qualname__.partition(".")[0]
            raise ParameterError("\n".join(f"{owner}: {text}" for text in wrong))

    @classmethod
    def parse(cls, chosen: Mapping[str, str]) -> Self:
        """Build settings from texts, as a command line or an environment gives them."""
        known = {f.name: f for f in fields(cls)}
        return cls.given(
            {name: _read(known[name], text) if name in known else text for name, text in chosen.items()}
        )

    @classmethod
    def given(cls, chosen: Mapping[str, Any]) -> Self:
        """Build settings from values, as a configuration file gives them."""
        known = [f.name for f in fields(cls)]
        for name in chosen:
            if name not in known:
                raise UnknownName(_unknown(cls, name), hint=_nearest(name, known))
        return cls(**chosen)

    @classmethod
    def declarations(cls) -> list[dict[str, Any]]:
        """Describe every setting for `querycloak methods`, the docs and JSON schemas."""
        return [_declaration(f) for f in fields(cls)]

    def as_dict(self) -> dict[str, Any]:
        """Give the settings as plain values, for a certificate."""
        return asdict(self)


def assign(
    chosen: Mapping[str, str], kinds: Mapping[str, type[Settings]], what: str = "stage"
) -> dict[str, Settings]:
    """Give each `[PART.]NAME=VALUE` to its part; without a prefix exactly one part must have that name."""
    given: dict[str, dict[str, str]] = {part: {} for part in kinds}
    for name, value in chosen.items():
        part, short = _owner(name, kinds, what)
        given[part][short] = value
    return {part: kind.parse(given[part]) for part, kind in kinds.items()}


def _owner(name: str, kinds: Mapping[str, type[Settings]], what: str) -> tuple[str, str]:
    prefix, dot, short = name.partition(".")
    if dot:
        if prefix not in kinds:
            raise UnknownName(f"no {what} is called `{prefix}`", hint=f"the {what}s are {', '.join(kinds)}")
        return prefix, short
    owners = [part for part, kind in kinds.items() if any(f.name == name for f in fields(kind))]
    if len(owners) > 1:
        raise UsageError(
            f"`{name}` is a setting of {' and '.join(owners)}", hint=f"write `{owners[0]}.{name}=…`"
        )
    return (owners or list(kinds))[0], name


def _unknown(cls: type[Settings], name: str) -> str:
    owner = cls.__qualname__.partition(".")[0]
    return f"{owner} has no setting called `{name}`"


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"its settings are {', '.join(known)}" if known else "it takes no settings"


def allowed(f: Field[Any]) -> str:
    """Say in words which values a setting takes: `int, at least 2`."""
    about = f.metadata
    if about["choices"]:
        return "one of " + ", ".join(about["choices"])
    parts = ["yes or no" if about["kind"] is bool else about["kind"].__name__]
    if about["at_least"] > -math.inf:
        parts.append(f"at least {_plain(about['at_least'])}")
    if about["at_most"] < math.inf:
        parts.append(f"at most {_plain(about['at_most'])}")
    return " or ".join([", ".join(parts), *about["also"]])


def _plain(bound: float) -> str:
    """Write whole numbers in full, however large."""
    return f"{int(bound)}" if float(bound).is_integer() else f"{bound:g}"


def _fault(f: Field[Any], value: Any) -> str:
    about = f.metadata
    if value in about["also"] and isinstance(value, str):
        return ""
    if about["choices"]:
        good = value in about["choices"]
    elif about["kind"] is bool or isinstance(value, bool):
        good = about["kind"] is bool and isinstance(value, bool)
    elif about["kind"] is float:
        good = isinstance(value, int | float) and about["at_least"] <= value <= about["at_most"]
    elif about["kind"] is int:
        good = isinstance(value, int) and about["at_least"] <= value <= about["at_most"]
    else:
        good = isinstance(value, about["kind"])
    return "" if good else f"`{f.name}` must be {allowed(f)}; got {value!r}"


_TRUTHS = {
    "yes": True,
    "true": True,
    "on": True,
    "1": True,
    "no": False,
    "false": False,
    "off": False,
    "0": False,
}


def _read(f: Field[Any], text: str) -> Any:
    """Turn a text into the declared kind; what cannot be turned is left for the check to refuse."""
    about = f.metadata
    if text in about["also"]:
        return text
    kind: Callable[[str], Any] = about["kind"]
    if kind is bool:
        return _TRUTHS.get(text.lower(), text)
    try:
        return kind(text)
    except ValueError:
        return text


def _declaration(f: Field[Any]) -> dict[str, Any]:
    default = None if f.default is MISSING else f.default
    return {
        "name": f.name,
        "kind": f.metadata["kind"].__name__,
        "default": default,
        "allowed": allowed(f),
        "choices": list(f.metadata["choices"]) or None,
        "help": f.metadata["help"],
    }
