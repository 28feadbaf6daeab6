"""The runner of the pages fails when a page is wrong: a check of the checker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Command, blocks
from tests.docs.runner import Reader, check_not_run, fits

WRONG = {
    "wrong output": "```console\n$ echo two\nthree\n```\n",
    "wrong status": "```console\n$ exit 3\n```\n",
    "status that does not come": "<!-- exit: 4 -->\n```console\n$ echo fine\n```\n",
    "earlier status": "<!-- exit: 3 -->\n```console\n$ false\n$ exit 3\n```\n",
    "unknown command": "```console\n$ querycloak protekt\n```\n",
    "broken pipe line": "```console\n$ false | cat\n```\n",
    "python error": "```python\nassert 1 == 2\n```\n",
    "python output": "```python\n>>> 1 + 1\n3\n```\n",
    "no command": "```console\nquerycloak methods\n```\n",
    "unknown extra": "```console\n$ pip install '.[magic]'\n```\n",
    "unknown target": "```console\n$ make magic\n```\n",
}

RIGHT = """
<!-- file: data/some.txt -->
```text
one
```
```console
$ cat data/some.txt
one
$ echo a long \\
    line
a ... line
```
<!-- exit: 2 -->
```console
$ querycloak protekt
... did you mean `protect`?
```
```python
>>> x = 2
```
```python
assert x == 2
```
"""


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_page_fails(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(WRONG[what], "utf-8")
    with pytest.raises(AssertionError):
        Reader(page).read()


def test_a_right_page_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(RIGHT, "utf-8")
    Reader(page).read()


def test_blocks_are_found_with_their_notes() -> None:
    file, first, second, *_ = blocks(RIGHT)
    assert (file.file, file.lines) == ("data/some.txt", ["one"])
    assert [command.text for command in first.commands()] == ["cat data/some.txt", "echo a long line"]
    assert (second.exit, first.exit) == (2, 0)


def test_output_is_claimed_only_where_it_is_shown() -> None:
    assert fits(Command("x"), "anything")
    assert fits(Command("x", ["a ... c"]), "a b c\n")
    assert not fits(Command("x", ["a"]), "b\n")


def test_known_targets_and_extras_pass() -> None:
    check_not_run(["make", "demo", "test"])
    check_not_run(["pip", "install", ".[dp,nlp,sign]"])
