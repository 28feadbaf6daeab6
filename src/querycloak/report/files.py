"""Puts a document into a file, written as its name asks for."""

from __future__ import annotations

from pathlib import Path

from querycloak.errors import UsageError
from querycloak.keys import write_private
from querycloak.report import as_html, as_markdown
from querycloak.report.document import Document

_WRITERS = {".html": as_html.render, ".htm": as_html.render, ".md": as_markdown.render}


def check_target(path: Path) -> None:
    """Refuse a name that says no format, or a place where no file can be, before any work is done."""
    if path.suffix.lower() not in _WRITERS:
        raise UsageError("a page is written as .html or .md", hint="give the file one of these endings")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError("a file to be written has no folder, or is one", hint="make the folder first")


def write(document: Document, path: Path, *, private: bool = False) -> None:
    """Write a document under its final name only when complete; a private one is for its owner alone."""
    check_target(path)
    content = _WRITERS[path.suffix.lower()](document).encode()
    try:
        write_private(path, content) if private else _write(path, content)
    except OSError as error:
        raise UsageError(f"the page cannot be written: {error.strerror}") from None


def _write(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)
