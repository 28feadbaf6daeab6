"""A disk that loses what was not synced: it watches the journal's calls and then pulls the plug.

After a power cut each 512 bytes that were written since a file's last sync are there or not, in any order;
names that were made or removed since the folder's last sync are there up to some moment. A failed sync loses
the written bytes for good while the system goes on showing them, as Linux does.
"""

from __future__ import annotations

import errno
import os
import random
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

SECTOR = 512
CALLS = ("open", "close", "pwrite", "ftruncate", "fsync", "fdatasync", "replace", "unlink")


class Killed(BaseException):
    """The process ends here: nothing of it runs any more."""


@dataclass
class File:
    """What is durable of a file, and what was asked for since."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # (place, bytes) or (length, None)

    def apply(self, place: int, data: bytes | None) -> None:
        if data is None:
            del self.durable[place:]
            return
        self.durable.extend(bytes(max(0, place + len(data) - len(self.durable))))
        self.durable[place : place + len(data)] = data

    def sync(self) -> None:
        for place, data in self.pending:
            self.apply(place, data)
        self.pending = []

    def lose_some(self, draw: random.Random) -> None:
        chance = draw.choice([0, 0.5, 0.9, 1])
        for place, data in self.pending:
            if data is None:
                if draw.random() < chance:
                    self.apply(place, None)
                continue
            begin = place
            while begin < place + len(data):
                end = min((begin // SECTOR + 1) * SECTOR, place + len(data))
                if draw.random() < chance:
                    self.apply(begin, data[begin - place : end - place])
                begin = end
        self.pending = []


class Disk:
    """Stands between the journal and one folder."""

    def __init__(self, folder: Path, draw: random.Random, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.draw = folder, draw
        self.names: dict[str, File] = {}  # durable
        self.shown: dict[str, File] = {}
        self.renamed: list[dict[str, File]] = []  # each state of the names since the last sync
        self.handles: dict[int, File | None] = {}  # None is the folder
        self.left = self.fails = -1  # calls until the process is killed, or a call fails
        self.error = 0
        folder.mkdir()
        self.real = {name: getattr(os, name) for name in CALLS}
        for name in self.real:
            patch.setattr(os, name, getattr(self, name))

    def open(self, path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        path = Path(path)
        if path.parent != self.folder and path != self.folder:
            return self.real["open"](path, flags, mode, **more)
        self._tick()
        descriptor = self.real["open"](path, flags, mode, **more)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            self.handles[descriptor] = None
            return descriptor
        if path.name not in self.shown:
            self._rename(self.shown | {path.name: File()})
        elif flags & os.O_TRUNC:
            self.shown[path.name].pending.append((0, None))
        self.handles[descriptor] = self.shown[path.name]
        return descriptor

    def close(self, descriptor: int) -> None:
        self.handles.pop(descriptor, None)
        self.real["close"](descriptor)

    def pwrite(self, descriptor: int, data: Any, at: int) -> int:
        file = self.handles.get(descriptor)
        if file is None:
            return int(self.real["pwrite"](descriptor, data, at))
        part = (
            bytes(data[: self.draw.randrange(len(data) + 1)])
            if self.left == 0 or self.fails == 0
            else bytes(data)
        )
        self.real["pwrite"](descriptor, part, at)
        file.pending.append((at, part))
        self._tick()
        return len(part)

    def ftruncate(self, descriptor: int, size: int) -> None:
        self._tick()
        self.real["ftruncate"](descriptor, size)
        if file := self.handles.get(descriptor):
            file.pending.append((size, None))

    def fsync(self, descriptor: int) -> None:
        if descriptor not in self.handles:
            return self.real["fsync"](descriptor)
        file = self.handles[descriptor]
        if self.fails == 0 and file and self.error == errno.EIO:
            file.pending = []
        self._tick()
        if file is None:
            self.names, self.renamed = self.shown, []
        else:
            file.sync()
        return None

    def fdatasync(self, descriptor: int) -> None:
        self.fsync(descriptor)

    def replace(self, old: Any, new: Any) -> None:
        self._tick()
        self.real["replace"](old, new)
        names = dict(self.shown)
        names[Path(new).name] = names.pop(Path(old).name)
        self._rename(names)

    def unlink(self, path: Any, **more: Any) -> None:
        if Path(path).parent != self.folder:
            return self.real["unlink"](path, **more)
        self._tick()
        self.real["unlink"](path, **more)
        self._rename({name: file for name, file in self.shown.items() if name != Path(path).name})
        return None

    def power_cut(self) -> None:
        """Keep some of what was not synced, and show only that."""
        self.shown = self.draw.choice([self.names, *self.renamed])
        self.names, self.renamed = self.shown, []
        for path in self.folder.iterdir():
            self.real["unlink"](path)
        for name, file in self.shown.items():
            file.lose_some(self.draw)
            (self.folder / name).write_bytes(file.durable)

    def end_process(self) -> None:
        """Close what a killed process had open."""
        self.left = self.fails = -1
        for descriptor in list(self.handles):
            self.close(descriptor)

    def _rename(self, names: dict[str, File]) -> None:
        self.shown = names
        self.renamed.append(names)

    def _tick(self) -> None:
        """Count a call; end the process or fail when its time has come."""
        self.left -= 1
        self.fails -= 1
        if self.left == -1:
            raise Killed
        if self.fails == -1:
            raise OSError(self.error, os.strerror(self.error))
        self.left, self.fails = max(self.left, -1), max(self.fails, -1)
