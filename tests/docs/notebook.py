"""Runs the tutorial notebook; `python -m tests.docs.notebook` writes its outputs into it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT

NOTEBOOK = ROOT / "docs" / "tutorials" / "tour.ipynb"


def executed(path: Path = NOTEBOOK) -> Any:
    """Run a notebook in an empty folder; give it with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        book = nbformat.read(path, as_version=4)
        NotebookClient(
            book, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    for cell in book.cells:
        cell.get("metadata", {}).pop("execution", None)  # when it ran
    return book


def shown(book: Any) -> list[str]:
    """Give what a reader sees below each cell."""
    return [
        "".join(
            output.get("text", "") + "".join(output.get("data", {}).get("text/html", ""))
            for output in cell.outputs
        )
        for cell in book.cells
        if cell.cell_type == "code"
    ]


if __name__ == "__main__":
    import nbformat

    nbformat.write(executed(), NOTEBOOK)
