"""Stored results of a study: a JSON line for each measurement; the first line describes log and machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
#: Folder of the results and pages of quick runs.
QUICK = ROOT / "build" / "papers"
Line = dict[str, Any]


def stored(study: str, quick: bool = False) -> Path:
    """Return the file with a study's results."""
    return QUICK / f"{study}.jsonl" if quick else ROOT / "papers" / study / "results.jsonl"


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a file; a last line that was cut off while it was written does not count."""
    lines = []
    for text in path.read_text("utf-8").splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            break
    return lines


@dataclass(frozen=True)
class Results:
    """One run: the log, the machine, and the lines by name, of which many may be missing so far."""

    about: Line
    machine: Line
    lines: dict[str, Line]
    wall_seconds: float

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the results in a file."""
        return cls.of(read_lines(path))

    @classmethod
    def of(cls, lines: list[Line]) -> Self:
        """Return the results of lines; the first describes log and machine."""
        first, *rest = lines
        named = {one["name"]: one for one in rest if one.get("name")}
        return cls(
            first["about"], first["machine"], named,
            sum(one["seconds"] for one in rest if one.get("part") == "time"),
        )  # fmt: skip

    def get(self, name: str, *path: str) -> Any:
        """Return a number, or another part, of a line; None where it was not measured."""
        found: Any = self.lines.get(name)
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def part(self, part: str, method: str | None = None) -> Iterator[Line]:
        """Yield the lines of a part of the study, of one method or of all."""
        for line in self.lines.values():
            if line.get("part") == part and method in (None, line.get("method")):
                yield line
