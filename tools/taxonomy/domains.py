"""The two upper levels: sixteen topics and their domains, with the terms that people type for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path


def all_domains(path: Path, lexicon: Iterable[str]) -> list[str]:
    """Read `Topic: Domain, Domain, ...` lines as `Topic/Domain` paths, and add what only the lexicon has."""
    lines = [line.split(":") for line in path.read_text(encoding="utf-8").splitlines() if ":" in line]
    listed = [f"{topic.strip()}/{name.strip()}" for topic, names in lines for name in names.split(",")]
    added = [category for category in lexicon if category not in listed]
    if unknown := {category.partition("/")[0] for category in added} - {topic.strip() for topic, _ in lines}:
        raise ValueError(f"no such topic: {', '.join(sorted(unknown))}")
    return listed + added


def read_lexicon(folder: Path) -> dict[str, dict[str, float]]:
    """Read all term files: `{category: {term: weight}}`, a term's first mention in a domain counting."""
    lexicon: dict[str, dict[str, float]] = {}
    for path in sorted(folder.glob("*.txt")):
        topic = path.stem.capitalize()
        for domain, term, weight in _terms(path):
            lexicon.setdefault(f"{topic}/{domain}", {}).setdefault(term, weight)
    return lexicon


def _terms(path: Path) -> Iterator[tuple[str, str, float]]:
    domain = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            domain = line.lstrip("#").strip()
            continue
        for item in line.split(","):
            term, _, weight = item.partition("*")
            if words := " ".join(term.lower().split()):
                yield domain, words, float(weight or 1)
