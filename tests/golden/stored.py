"""The stored files: how values are written, read, and compared."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
#: Figures are stored with this many digits.
DIGITS = 12
#: Figures are equal within this relative distance: fused additions of another processor change the order of
#: nearly equal scores, which moved one area under a curve by 2e-10.
SAME = 1e-8


def plain(value: Any) -> Any:
    """Return a value as JSON holds it, with figures cut to the stored digits."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def read(group: str) -> dict[str, Any]:
    """Return the stored cases of a group."""
    path = FOLDER / f"{group}.json"
    held: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return held


def groups() -> list[str]:
    """List the groups that are stored."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def write(group: str, cases: dict[str, Any]) -> None:
    """Write the cases of a group: one line for what is small, so that a change shows as one line."""
    (FOLDER / f"{group}.json").write_text(_text(cases, "") + "\n", "utf-8")


def _text(value: Any, indent: str) -> str:
    short = json.dumps(value, ensure_ascii=False)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    nested = any(isinstance(part, dict | list) for part in parts)
    if not nested and (not isinstance(value, dict) or len(indent) + len(short) <= 140):
        return short
    deeper = indent + " "
    if isinstance(value, list):
        parts = [_text(part, deeper) for part in value]
        return "[\n" + ",\n".join(deeper + part for part in parts) + f"\n{indent}]"
    named = [f"{json.dumps(name, ensure_ascii=False)}: {_text(part, deeper)}" for name, part in value.items()]
    return "{\n" + ",\n".join(deeper + part for part in named) + f"\n{indent}}}"


def differences(where: str, stored: Any, found: Any) -> Iterator[str]:
    """Yield a line for each value that is not as stored: where it is, what it was, what it is now."""
    if isinstance(stored, dict) and isinstance(found, dict):
        for name in [*stored, *(name for name in found if name not in stored)]:
            place = f"{where} › {name}"
            if name not in found:
                yield f"{place}: gone; was {_short(stored[name])}"
            elif name not in stored:
                yield f"{place}: new: {_short(found[name])}"
            else:
                yield from differences(place, stored[name], found[name])
    elif isinstance(stored, list) and isinstance(found, list) and len(stored) == len(found):
        for number, (was, now) in enumerate(zip(stored, found, strict=True)):
            yield from differences(f"{where} › {number}", was, now)
    elif isinstance(stored, list) and isinstance(found, list):
        yield from (f"{where}: gone: {_short(was)}" for was in stored if was not in found)
        yield from (f"{where}: new: {_short(now)}" for now in found if now not in stored)
    elif not _same(stored, found):
        yield f"{where}: was {_short(stored)}, is {_short(found)}"


def _same(stored: Any, found: Any) -> bool:
    figures = isinstance(stored, float) and isinstance(found, float | int) and not isinstance(found, bool)
    return math.isclose(stored, found, rel_tol=SAME) if figures else bool(stored == found)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else text[:300] + "…"
