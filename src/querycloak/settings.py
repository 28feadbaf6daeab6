"""Settings are declared once: the check, the command line, the certificate and the docs read this."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from querycloak.errors import ParameterError, UnknownName, UsageError

#: Which values of a setting protect more.
Stronger = Literal["", "larger", "smaller", "on", "last"] | tuple[str, ...]


def setting(
    default: Any = MISSING,
    *,
    kind: type | None = None,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    choices: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    stronger: Stronger = "",
    weakest: tuple[Any, ...] = (),
    file: bool = False,
    help: str,  # noqa: A002 - the word that every reader of a command line knows
) -> Any:
    """Declare one setting: its default, type, bounds, allowed words, and what it means to a reader.

    `kind` is by default the type of the default. `choices` closes a text setting; `also` lists words that a
    number may be replaced by (`auto`). `stronger` states which values protect more: `larger` or `smaller`
    numbers, `on`, the `last` of the choices, or the choices in order, the weakest first. `weakest` are
    values below all others (`off`).
    `file` marks the name of a file: a certificate states it without its folder.
    """
    about = {
        "kind": kind or type(default),
        "at_least": at_least,
        "at_most": at_most,
        "choices": choices,
        "also": also,
        "stronger": stronger,
        "weakest": weakest,
        "file": file,
        "help": help,
    }
    return field(default=default, metadata=about)


def compare_strength(f: Field[Any], before: Any, after: Any) -> Literal["stronger", "weaker", "changed"]:
    """Return whether the changed value of a setting protects more, less, or cannot be ranked."""
    old, new = _strength(f, before), _strength(f, after)
    if old is None or new is None or old == new:
        return "changed"
    return "stronger" if new > old else "weaker"


def _strength(f: Field[Any], value: Any) -> float | None:
    """Return a number that is larger for a value that protects more; None if it cannot be ranked."""
    stronger, about = f.metadata["stronger"], f.metadata
    if any(value == weak and type(value) is not bool for weak in about["weakest"]):
        return -math.inf
    if stronger == "on":
        return float(value) if isinstance(value, bool) else None
    if stronger in ("larger", "smaller"):
        rank = _as_number(value)
        return rank if rank is None or stronger == "larger" else -rank
    order = about["choices"] if stronger == "last" else stronger
    return float(order.index(value)) if isinstance(value, str) and value in order else None


def _as_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return None if math.isnan(value) else float(value)
    except OverflowError:  # JSON can hold whole numbers that no float can
        return math.inf if value > 0 else -math.inf


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of all settings: frozen, checked as a whole; one error reports all faults."""

    #: Name of the method, set by `Protector`.
    method: ClassVar[str] = ""

    @classmethod
    def owner(cls) -> str:
        """Return the name under which messages refer to these settings."""
        return cls.method or cls.__qualname__.partition(".")[0]

    def __post_init__(self) -> None:
        if wrong := [text for f in fields(self) if (text := _fault(f, getattr(self, f.name)))]:
            raise ParameterError("\n".join(f"{self.owner()}: {text}" for text in wrong))

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
                said = f"{cls.owner()} has no setting called `{name}`"
                raise UnknownName(said, hint=_nearest(name, known))
        return cls(**chosen)

    @classmethod
    def declarations(cls) -> list[dict[str, Any]]:
        """Describe every setting for `querycloak methods`, the docs and JSON schemas."""
        return [
            {
                "name": f.name,
                "kind": f.metadata["kind"].__name__,
                "default": None if f.default is MISSING else f.default,
                "allowed": allowed(f),
                "choices": list(f.metadata["choices"]) or None,
                "help": f.metadata["help"],
            }
            for f in fields(cls)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for a certificate."""
        return asdict(self) | {name: Path(file).name for name, file in self.files().items()}

    def files(self) -> dict[str, str]:
        """Return the settings that name a file."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.metadata.get("file")}


def assign(
    chosen: Mapping[str, Any], kinds: Mapping[str, type[Settings]], what: str = "stage"
) -> dict[str, Settings]:
    """Return the settings of each part, from values or texts; a name without prefix must be unique."""
    given: dict[str, dict[str, str]] = {part: {} for part in kinds}
    for name, value in chosen.items():
        part, short = _owner(name, kinds, what)
        given[part][short] = ("yes" if value else "no") if isinstance(value, bool) else str(value)
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
    if owners or len(kinds) == 1:
        return (owners or list(kinds))[0], name
    known = {f"{part}.{f.name}": f.name for part, kind in kinds.items() for f in fields(kind)}
    near = get_close_matches(name, known.values(), n=1)
    meant = [full for full, short in known.items() if near and short == near[0]]
    hint = f"did you mean `{meant[0]}`?" if meant else f"the settings are {', '.join(known)}"
    raise UnknownName(f"none of {', '.join(kinds)} has a setting called `{name}`", hint=hint)


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"its settings are {', '.join(known)}" if known else "it takes no settings"


def allowed(f: Field[Any]) -> str:
    """Return in words which values a setting takes: `int, at least 2`."""
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
    elif about["kind"] in (int, float):
        number = isinstance(value, int) or (about["kind"] is float and isinstance(value, float))
        good = number and about["at_least"] <= value <= about["at_most"]
    else:
        good = isinstance(value, about["kind"])
    return "" if good else f"`{f.name}` must be {allowed(f)}; got {value!r}"


_TRUTHS = dict.fromkeys(("yes", "true", "on", "1"), True) | dict.fromkeys(("no", "false", "off", "0"), False)


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
