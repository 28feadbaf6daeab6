"""Audits share no code with methods: what each of them imports is on a short list."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import querycloak

SOURCE = Path(querycloak.__file__).parent
AUDITS = sorted([*SOURCE.glob("methods/*/audit.py"), *SOURCE.glob("audits/*.py")])
ALLOWED = {"audits", "guarantee", "errors", "log"}
OTHERS = {"numpy", "numba", "scipy", "polars"}
STANDARD = {
    "__future__",
    "collections",
    "dataclasses",
    "functools",
    "itertools",
    "math",
    "operator",
    "re",
    "secrets",
    "typing",
    "unicodedata",
}


def imported(path: Path) -> set[str]:
    """Name the modules that a file imports, ours without the name of the package."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", AUDITS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_an_audit_imports_nothing_of_a_method(path):
    for name in imported(path):
        first, _, rest = name.partition(".")
        if first == "querycloak":
            assert rest.partition(".")[0] in ALLOWED, name
        else:
            assert first in OTHERS | STANDARD, name


def test_every_folder_of_a_method_has_an_audit():
    folders = {p.parent for p in SOURCE.glob("methods/*/__init__.py")} - {SOURCE / "methods" / "shared"}
    assert folders == {path.parent for path in AUDITS if path.name == "audit.py"}
