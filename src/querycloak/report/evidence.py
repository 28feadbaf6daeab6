"""Read findings and measures, as `attack --json` and `measure --json` write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from querycloak.attacks.finding import Finding
from querycloak.errors import DataError, UsageError
from querycloak.formatting import percent
from querycloak.report.numbers import printable

_NUMBERS = ("success", "low", "high", "bound")
_LARGEST = 64 << 20


def findings_of(path: Path) -> list[Finding]:
    """Read the findings of a file: `{"findings": [...]}`, or one list of them."""
    content = _read(path, "findings")
    found = content.get("findings") if isinstance(content, dict) else content
    return checked(found)


def measures_of(path: Path) -> dict[str, Any]:
    """Read the measures of a file: `{"measures": {...}}`."""
    content = _read(path, "measures")
    found = content.get("measures") if isinstance(content, dict) else None
    if not isinstance(found, dict):
        raise DataError("the file of measures is not what `measure --json` writes")
    return found


def _read(path: Path, what: str) -> Any:
    try:
        if path.stat().st_size > _LARGEST:
            raise DataError(f"the file of {what} is larger than 64 MiB")
        return json.loads(path.read_bytes())
    except OSError:
        raise UsageError(f"there is no file of {what} to read", hint="check the path") from None
    except (ValueError, RecursionError):
        raise DataError(f"the file of {what} is not JSON", hint="write it with `--json > FILE`") from None


def checked(found: Any) -> list[Finding]:
    """Return findings whose numbers are shares; raise DataError for anything else."""
    if not isinstance(found, list):
        raise DataError("the findings are not what `attack --json` writes")
    return [_finding(one, place) for place, one in enumerate(found, start=1)]


def _finding(one: Any, place: int) -> Finding:
    named = isinstance(one, Mapping) and all(isinstance(one.get(n), str) for n in ("attack", "game", "unit"))
    if not named or not all(_is_share(one.get(name)) for name in _NUMBERS):
        raise DataError(f"finding {place} is not what `attack --json` writes")
    numbers = {name: one.get(name) for name in _NUMBERS}
    if None in (numbers["success"], numbers["low"], numbers["high"]):
        numbers |= {"success": None, "low": None, "high": None}
    size = one.get("n")
    count = size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else 0
    words = {name: one.get(name) for name in ("attack", "game", "unit", "not_applicable")}
    return Finding(**words, **numbers, n=count)


def _is_share(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def in_words(finding: Finding) -> str:
    """Return a finding as text: success and interval, or why there is none."""
    if finding.success is None:
        return f"not applicable ({printable(finding.not_applicable)})"
    return f"{percent(finding.success)} ({percent(finding.low)} … {percent(finding.high)})"


def of_games(findings: Sequence[Finding], *games: str) -> list[Finding]:
    """Return the findings of some games that have numbers."""
    return [one for one in findings if one.game in games and one.success is not None]
