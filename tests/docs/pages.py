"""Finds the pages of the project and the blocks in them that can run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>[\w-]*)\s*$")
_NOTE = re.compile(r"^ *<!-- (?P<name>file|exit): (?P<value>.+?) -->\s*$")


@dataclass
class Command:
    """A line behind a `$`, and the output that the page shows for it."""

    text: str
    shown: list[str] = field(default_factory=list)


@dataclass
class Block:
    """A fenced block. `file` says under which name to save it, `exit` how its last command ends."""

    kind: str
    line: int
    lines: list[str]
    file: str = ""
    exit: int = 0

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def commands(self) -> list[Command]:
        """Split a console block into commands and what they print."""
        found: list[Command] = []
        for line in self.lines:
            if line.startswith("$ "):
                found.append(Command(line[2:]))
            elif found and found[-1].text.endswith("\\") and not found[-1].shown:
                found[-1].text = found[-1].text[:-1] + line.lstrip("> ")
            elif found:
                found[-1].shown.append(line)
        return found


def pages() -> list[Path]:
    """List every page that a reader may open."""
    top = list(ROOT.glob("*.md"))
    rooms = [
        path
        for room in ("docs", "tests", "benchmarks", "requirements")
        for path in (ROOT / room).rglob("*.md")
    ]
    return sorted(top + rooms)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(text: str) -> Iterator[Block]:
    """Give the fenced blocks of a page, with the notes in comments right above them."""
    notes: dict[str, str] = {}
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if note := _NOTE.match(line):
            notes[note["name"]] = note["value"]
        elif fence := _FENCE.match(line):
            body = []
            for _, inner in lines:
                if inner.strip() == "```":
                    break
                body.append(inner.removeprefix(fence["indent"]))
            yield Block(fence["kind"], number, body, notes.get("file", ""), int(notes.get("exit", "0")))
            notes = {}
        elif line.strip():
            notes = {}


def prose(text: str) -> str:
    """Give a page without its blocks."""
    kept, inside = [], False
    for line in text.splitlines():
        if _FENCE.match(line) or (inside and line.strip() == "```"):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)
