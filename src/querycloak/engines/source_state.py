"""State that is kept across the releases of a source: its ledger, and the tables of methods."""

from __future__ import annotations

import contextlib
import hashlib
import io as std_io
import json
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from querycloak.engines.pipeline import Pipeline, Stage
from querycloak.errors import DataError, QueryCloakError, Refused, UsageError
from querycloak.files import FolderLock, sync_folder
from querycloak.keys import write_private
from querycloak.ledger import Entry, Ledger, default_state
from querycloak.log import IntArray
from querycloak.protector import Protector, StoredState
from querycloak.registry import traits_of

#: State that earlier releases left to a method: a table, None if there is none, or `missing`.
Stored = pl.DataFrame | Literal["missing"] | None


def load_state(protector: Protector, stored: Stored) -> IntArray:
    """Load the state of earlier releases into a method; return the users in it."""
    if stored is None or protector.source_state is None:
        return np.empty(0, np.int64)
    return protector.source_state.load(stored if isinstance(stored, pl.DataFrame) else None)


def save_state(protector: Protector) -> pl.DataFrame | None:
    """Return the table that the next release of the source loads, if the method keeps one."""
    return None if protector.source_state is None else protector.source_state.save()


class SourceFiles:
    """The files of one named source: its ledger with the earlier releases, and the tables of methods.

    A table is written beside the current one, then entered into the ledger by its hash, then renamed. So a
    release that stops between two of these steps leaves either the old table or one that the ledger names.
    """

    def __init__(self, source: str, folder: Path | None) -> None:
        self.source = source
        self._prefix = hashlib.sha256(source.encode()).hexdigest()[:16]
        self._folder = folder or default_state()
        self._locks: list[FolderLock] = []
        self._saved: dict[str, Path] = {}
        try:
            # Before the ledgers are read: another release would change what was released before.
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._locks.append(self._take_lock(self._folder))
            if (home := self._other_home()) is not None and home.is_dir() and os.access(home, os.W_OK):
                self._locks.append(self._take_lock(home))
            self.ledger = Ledger(self._folder)
            self.earlier = self.ledger.of_source(source)
        except BaseException:
            self.unlock()
            raise

    @classmethod
    def of(cls, source: str | None, folder: Path | None) -> SourceFiles | None:
        """Return the files of a named source; None without a name, since nothing is kept then."""
        if source is not None:
            return cls(source, folder)
        if folder is not None:
            raise UsageError(
                "`--state` needs to know whose state it is", hint="name the log's source with `--source`"
            )
        return None

    def _path(self, kept: StoredState) -> Path:
        return self._folder / f"{self._prefix}.{kept.name}.parquet"

    def load(self, stages: list[Stage], pipeline: Pipeline) -> list[Stored]:
        """Load the stored state of every method. Raise Refused if it is missing or an older one."""
        found = self._read_all(stages)
        for protector, stored in zip(pipeline, found, strict=True):
            pipeline.register_users(load_state(protector, stored))
        return found

    def _read_all(self, stages: list[Stage]) -> list[Stored]:
        found: list[Stored] = [None] * len(stages)
        for place, stage in enumerate(stages):
            kept = stage.traits.stored_state
            if kept is None:
                continue
            if kept.shared and any(before.traits.fresh_labels for before in stages[:place]):
                raise Refused(
                    "what people spend is kept by their own ids, and an earlier method gives them other ones",
                    hint=f"use `labels=fresh` with `{stage.method}` itself",
                )
            path = self._path(kept)
            self._check_with_ledger(stage, kept)
            if path.exists():
                found[place] = self._read(path, stage)
            elif self._was_released(kept) and kept.shared:
                found[place] = "missing"
            elif self._was_released(kept):
                raise Refused(
                    f"this source was released with `{stage.method}` before, and its book is not here: two "
                    "independent cohort assignments of the same users can be intersected to find the authors",
                    hint="give the `--state` of the earlier release",
                )
        return found

    def _check_with_ledger(self, stage: Stage, kept: StoredState) -> None:
        """Raise Refused if a table is not the one that the ledger names; finish a rename that was cut off."""
        path, named = self._path(kept), self._digest_in_ledger(kept)
        unfinished = _unfinished(path)
        if unfinished.exists():
            if named is not None and self._digest(unfinished, path.with_suffix(".json")) == named:
                unfinished.replace(path)
                sync_folder(self._folder)
            else:
                unfinished.unlink()  # of a release that was never entered
        if not path.exists():
            return
        if named is not None and self._digest(path, path.with_suffix(".json")) != named:
            fault = "is not the one of the last release that the ledger names"
        elif named is None and not any(_is_unkeyed(entry) for entry in self.earlier):
            fault = "belongs to no release that the ledger names"
        else:  # entries of earlier versions do not name it
            return
        raise Refused(
            f"`{stage.method}`: the stored state of this source {fault}; one of them was put back or changed",
            hint="put back the whole state folder, with its ledger, as it was after the last release",
        )

    def _digest_in_ledger(self, kept: StoredState) -> str | None:
        found = [entry["state"][kept.name] for entry in self.earlier if kept.name in entry.get("state", {})]
        return str(found[-1]) if found else None

    def _digest(self, table: Path, settings: Path) -> str:
        try:
            return self.ledger.digest("state", settings.read_bytes(), table.read_bytes())
        except OSError:
            return ""

    def _take_lock(self, folder: Path) -> FolderLock:
        """Raise Refused if another release of this source is being made: both would read the same state."""
        try:
            return FolderLock(folder / f"{self._prefix}.lock")
        except BlockingIOError:
            raise Refused(
                "another release of this source is being made", hint="try again when it is done"
            ) from None

    def unlock(self) -> None:
        """Release the locks, so that others can make a release of the source."""
        for lock in self._locks:
            lock.release()

    def _read(self, path: Path, stage: Stage) -> pl.DataFrame:
        try:
            table = pl.read_parquet(path)
            kept = json.loads(path.with_suffix(".json").read_text("utf-8"))
        except (OSError, ValueError, pl.exceptions.PolarsError):
            raise DataError(f"the book of `{stage.method}` cannot be read") from None
        settings = stage.settings.as_dict()
        kept = {name: value for name, value in kept.items() if name in settings}  # others were removed since
        now = {name: settings[name] for name in kept}
        if kept != now:
            raise Refused(
                f"`{stage.method}` was used with {kept} for this source before",
                hint="cohorts are for good: use the same settings, or another source",
            )
        return table

    def save(self, stages: list[Stage], tables: list[pl.DataFrame | None]) -> None:
        """Write the tables of methods for the next release, beside those of the last one."""
        for stage, table in zip(stages, tables, strict=True):
            kept = stage.traits.stored_state
            if table is None or kept is None:
                continue
            buffer = std_io.BytesIO()
            table.write_parquet(buffer)
            settings = stage.settings.as_dict()
            fixed = {name: settings[name] for name in kept.fixed_settings}
            # The settings first: a table without them cannot be read.
            write_private(self._path(kept).with_suffix(".json"), json.dumps(fixed).encode())
            write_private(_unfinished(self._path(kept)), buffer.getvalue())
            self._saved[kept.name] = self._path(kept)

    def note(
        self, release: str, stages: list[Stage], sha256: str, input_sha256: str | None
    ) -> dict[str, Any]:
        """Enter a release into the ledger, and the source into the list of those ever released here.

        From then on its tables count. Return what the certificate states about the entry.
        """
        methods = [{"method": stage.method, "settings": stage.settings.as_dict()} for stage in stages]
        state = {
            name: self._digest(_unfinished(path), path.with_suffix(".json"))
            for name, path in self._saved.items()
        }
        entry = {"source": self.source, "release": release, "methods": methods, "sha256": sha256}
        added = self.ledger.append(entry | {"state": state}, input_sha256)
        for path in self._saved.values():
            _unfinished(path).replace(path)
        if self._saved:
            sync_folder(self._folder)
        if (home := self._other_home()) is not None:
            elsewhere = {"source": self.source, "elsewhere": True, "methods": methods}
            with contextlib.suppress(OSError):  # it warns of a second folder; the state itself is safe
                Ledger(home).append(elsewhere, input_sha256)
        earlier = len(self.earlier)
        return {"head": added["hash"], "entry": added["number"], "earlier_releases_of_source": earlier}

    def _other_home(self) -> Path | None:
        """Return the default folder of state, if it can be named and this state is in another one."""
        try:
            home = default_state()
            return None if home.resolve() == self._folder.resolve() else home
        except (OSError, RuntimeError):  # an account without a home
            return None

    def _was_released(self, kept: StoredState) -> bool:
        """Whether the ledger of this state, or of this account, has a release with such stored state."""
        home = self._other_home()
        entries = self.earlier + (Ledger(home).of_source(self.source) if home is not None else [])
        parts = [part for entry in entries for part in entry["methods"]]
        traits = [traits_of(part) for part in parts]
        return any(one is not None and one.stored_state == kept for one in traits)


def earlier_releases_of(sha256: str, source: str | None) -> int | None:
    """Return how often an input file was released before, other than for this source.

    Only the ledger in the default folder is read. Return None if it cannot be.
    """
    try:
        entries = Ledger(default_state()).of_input(sha256)
    except (OSError, RuntimeError, QueryCloakError):
        return None
    return len([entry for entry in entries if source is None or entry["source"] != source])


def enter_without_source(release: str, sha256: str) -> None:
    """Enter a release without a source into the ledger in the default folder, if it can be written."""
    with contextlib.suppress(OSError, RuntimeError, QueryCloakError):
        Ledger(default_state()).append({"source": None, "release": release}, sha256)


def _unfinished(path: Path) -> Path:
    """Return the name of a table until the ledger names it."""
    return path.with_name(f"{path.stem}.next{path.suffix}")


def _is_unkeyed(entry: Entry) -> bool:
    return not entry.get("keyed")
