"""The files that tell a comparison: a page to look at, and the same numbers for programs and for paper."""

from __future__ import annotations

from pathlib import Path

from querycloak.errors import MissingExtra
from querycloak.report.comparison.result import Comparison
from querycloak.report.comparison.tables import csv_text, markdown


def write_all(comparison: Comparison, folder: Path) -> list[str]:
    """Write all forms of a comparison; say which there are, the one to look at first."""
    texts = {
        "comparison.md": markdown(comparison),
        "comparison.csv": csv_text(comparison),
        "comparison.json": comparison.as_json(),
    }
    try:
        from querycloak.report.comparison.page import html

        texts = {"report.html": html(comparison), **texts}
    except MissingExtra:
        pass  # the tables are there without it
    for name, text in texts.items():
        unfinished = folder / f".{name}.unfinished"
        unfinished.write_text(text, "utf-8")
        unfinished.replace(folder / name)
    return list(texts)
