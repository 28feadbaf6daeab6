"""A folder with small made-up logs, and a way to run commands in it and to reuse what they wrote."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from click.testing import CliRunner

from querycloak import api
from querycloak.cli import main

SEED = ("--seed", "1")


class Desk:
    """Runs commands in a folder of its own; what costs time is made once and kept by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, Any] = {}

    def run(self, *words: object, status: int = 0) -> dict[str, Any]:
        """Run a command with `--json`, and return what it printed."""
        asked = [str(word) for word in words] + ["--json"]
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            done = CliRunner().invoke(main, asked)
        finally:
            os.chdir(before)
        assert done.exit_code == status, f"querycloak {' '.join(asked)}: {done.exit_code}\n{done.stderr}"
        return json.loads(done.stdout) if done.stdout else {}

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Make something, unless it was made under this name before."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def path(self, name: str) -> Path:
        """Return the path of a file in the folder."""
        return self.folder / name

    def log(self) -> str:
        """Return the name of the log that methods and attacks are tried on: people with categories."""
        words = ("--users", 90, "--days", 12, "--seed", 5, "--categories", "--marketing", "marketing.csv")
        self.once("log", lambda: self.run("generate", *words, "-o", "log.csv"))
        return "log.csv"

    def frame(self) -> pl.DataFrame:
        """Return that log as a frame."""
        self.log()
        frame: pl.DataFrame = self.once("frame", lambda: api.read(str(self.path("log.csv"))).frame)
        return frame

    def release(self, name: str, *words: object, log: str | None = None) -> dict[str, Any]:
        """Protect the log into the file of that name, with its truth beside it; return what was printed."""
        used = log or self.log()
        asked = ("protect", used, *words, "-o", name, "--truth", f"{name}.truth", *SEED)
        told: dict[str, Any] = self.once(name, lambda: self.run(*asked))
        return told


def digest(content: bytes | str) -> str:
    """Return the first 64 bits of the SHA-256: enough to see a change."""
    return hashlib.sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()[:16]


def file_digest(path: Path) -> str:
    """Return the digest of a file; of a folder, that of its files in the order of their names."""
    if path.is_dir():
        parts = (f"{file.name} {file_digest(file)}" for file in sorted(path.iterdir()))
        return digest("\n".join(parts))
    return digest(path.read_bytes())


def table_digest(path: Path) -> dict[str, Any]:
    """Return columns with types, rows, and a digest of the cells of a Parquet file."""
    frame = pl.read_parquet(path)
    cells = frame.with_columns(pl.selectors.list().list.eval(pl.element().cast(pl.String)).list.join(" "))
    return {
        "columns": [f"{name} {kind}" for name, kind in frame.schema.items()],
        "rows": frame.height,
        "cells": digest(cells.write_csv()),
    }
