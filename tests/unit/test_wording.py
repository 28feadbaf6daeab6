"""Docstrings open with an imperative verb or a noun, and no module is named by a metaphor."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "querycloak"
#: Packages whose wording is still to be revised.
LATER = ("formats",)
BANNED = re.compile(r"(Give|Say|Tell|Let|Put)s? ")
METAPHORS = {
    *("door", "errands", "heritage", "board", "onlooker", "told", "asked", "asking", "doings", "manners"),
    *("sights", "telling", "entrance", "keeping", "quick", "seating", "vacancies", "news", "packed", "pace"),
    *("mates", "askers", "acquaintance", "lane", "frozen", "recode", "crew", "knowing", "standing", "alike"),
    *("unlinked", "shown"),
}


def modules() -> list[Path]:
    found = sorted(SOURCE.rglob("*.py"))
    return [path for path in found if not str(path.relative_to(SOURCE)).startswith(LATER)]


def openings(source: str) -> list[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [text.splitlines()[0] for text in texts if BANNED.match(text)]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_docstring_opens_with_a_banned_verb(path):
    assert openings(path.read_text("utf-8")) == []


def test_a_banned_verb_is_found():
    assert openings('def f():\n    """Give it back."""') == ["Give it back."]


def test_no_module_is_named_by_a_metaphor():
    known = {path.stem for path in modules()} | {path.parent.name for path in modules()}
    assert not known & METAPHORS
