"""Types the blocks of pages again and writes down what commands and examples print now.

Usage: python -m tests.docs.update [PAGE]...    all pages if none is named

Only outputs without `...` are changed, and lines in which it stands for the last word, such as the
seconds that a command took. Read the diff before you keep it.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import sys
import tempfile
from pathlib import Path

from querycloak.registry import METHODS
from tests.docs.pages import Block, blocks, name_of, pages
from tests.docs.runner import Reader, execute


def renewed(shown: list[str], told: list[str]) -> list[str]:
    """Give what a page should show for a command that now prints `told`."""
    open_ended = [line for line in shown if "..." in line]
    last_words = all(line.endswith("  ...") for line in open_ended) and len(shown) == len(told)
    if not shown or (open_ended and not last_words):
        return shown
    if not open_ended:
        return told
    pairs = zip(shown, told, strict=True)
    return [now.rpartition(" ")[0] + " ..." if then in open_ended else now for then, now in pairs]


class Updater(Reader):
    """A reader that takes notes instead of comparing."""

    def __init__(self, page: Path) -> None:
        super().__init__(page)
        self.renewed: list[tuple[Block, list[str]]] = []

    def _console(self, block: Block) -> None:
        lines: list[str] = []
        for command in block.commands():
            _, output = execute(command.text)
            told = [line.rstrip() for line in output.rstrip().splitlines()]
            lines += [f"$ {command.text}", *renewed(command.shown, told)]
        if "\\" not in block.text:
            self.renewed.append((block, lines))

    def _python(self, block: Block) -> None:
        if ">>>" not in block.text:
            super()._python(block)
            return
        lines: list[str] = []
        for example in doctest.DocTestParser().get_examples(block.text):
            told = io.StringIO()
            with contextlib.redirect_stdout(told):
                exec(compile(example.source, "page", "single"), self.names)
            first, *more = example.source.rstrip("\n").split("\n")
            shown = example.want if "..." in example.want else told.getvalue()
            lines += [f">>> {first}", *(f"... {line}".rstrip() for line in more), *shown.splitlines()]
        self.renewed.append((block, lines))


def update(page: Path) -> None:
    """Rewrite one page."""
    updater, home = Updater(page), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = os.path.join(folder, "state-home")
        os.environ["HOME"] = folder
        os.chdir(folder)
        sys.path.insert(0, folder)
        try:
            for block in blocks(page.read_text("utf-8")):
                updater.run(block)
        finally:
            os.chdir(home)
            sys.path.remove(folder)
            METHODS.added.clear()
    lines = page.read_text("utf-8").splitlines()
    for block, fresh in reversed(updater.renewed):
        lines[block.line : block.line + len(block.lines)] = fresh
    fresh = "\n".join(lines) + "\n"
    if fresh != page.read_text("utf-8"):
        page.write_text(fresh, "utf-8")
        print(f"changed {name_of(page)}")


if __name__ == "__main__":
    for each in [Path(name).resolve() for name in sys.argv[1:]] or pages():
        update(each)
