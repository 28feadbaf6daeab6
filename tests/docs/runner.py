"""Runs the blocks of a page in order, in one folder, as a reader would type them."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from querycloak.cli import main
from tests.docs.pages import ROOT, Block, Command, blocks

#: Characters that need a shell; a plain `querycloak` command runs in this process, which is faster.
_SHELL = re.compile(r"[|<>;&$`*?~]")
_ELLIPSIS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Reader:
    """Types what a page says; `cwd` must be the folder to do it in."""

    def __init__(self, page: Path) -> None:
        self.page = page
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def read(self) -> None:
        """Run every block of the page."""
        for block in blocks(self.page.read_text("utf-8")):
            self.run(block)

    def run(self, block: Block) -> None:
        if block.file:
            path = Path(block.file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")
        elif block.kind == "python":
            self._python(block)
        elif block.kind == "console":
            self._console(block)

    def _python(self, block: Block) -> None:
        where = f"{self.page.name}:{block.line}"
        if ">>>" not in block.text:
            exec(compile(block.text, where, "exec"), self.names)
            return
        test = doctest.DocTestParser().get_doctest(block.text, self.names, where, where, block.line)
        told: list[str] = []
        result = doctest.DocTestRunner(optionflags=_ELLIPSIS).run(test, out=told.append, clear_globs=False)
        self.names |= test.globs
        assert not result.failed, "".join(told)

    def _console(self, block: Block) -> None:
        commands = block.commands()
        assert commands, f"{self.page.name}:{block.line}: a console block without a command"
        for command in commands:
            expected = block.exit if command is commands[-1] else 0
            status, output = execute(command.text)
            where = f"{self.page.name}:{block.line}: $ {command.text}\n{output}"
            assert status == expected, f"{where}\nexit status {status}, the page says {expected}"
            assert fits(command, output), f"{where}\nthe page shows\n" + "\n".join(command.shown)


def fits(command: Command, output: str) -> bool:
    """Compare output with what the page shows; nothing shown means that nothing is claimed."""
    shown = "\n".join(command.shown).strip()
    return not shown or doctest.OutputChecker().check_output(shown + "\n", output.strip() + "\n", _ELLIPSIS)


def execute(command: str) -> tuple[int, str]:
    """Run one command; give its exit status and all that it prints."""
    words = shlex.split(command, comments=True)
    if words[0] in ("pip", "make"):
        check_not_run(words)
        return 0, ""
    if words[0] == "querycloak" and not _SHELL.search(command):
        done = CliRunner().invoke(main, words[1:], prog_name="querycloak")
        return done.exit_code, done.output
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = ["bash", "-o", "pipefail", "-c", command]
    env = os.environ | {"PATH": path}
    run = subprocess.run(
        shell, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, check=False
    )
    return run.returncode, run.stdout


def check_not_run(words: list[str]) -> None:
    """Check what a test cannot run: `make` targets exist, `pip install` names extras that are declared."""
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text("utf-8")
        for target in words[1:]:
            assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), (
                f"make has no target {target}"
            )
        return
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for listed in re.findall(r"\[(.+?)\]", " ".join(words)):
        unknown = set(listed.split(",")) - set(extras)
        assert not unknown, f"pyproject.toml declares no extra {unknown}"
