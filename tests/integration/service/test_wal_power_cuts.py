"""Killed, unplugged, full and failing, over and over: what was acknowledged is there; no alarm is false."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from querycloak.errors import JournalBroken, JournalFull
from querycloak.service.wal.wal import WriteAheadLog
from tests.integration.service.power import Disk, Killed

LIVES = 12


class Story:
    """One journal through many lives, beside what it must hold."""

    def __init__(self, folder: Path, draw: random.Random, disk: Disk) -> None:
        self.folder, self.draw, self.disk = folder, draw, disk
        self.acknowledged: list[bytes] = []
        self.attempted: list[bytes] = []
        self.forgotten = 0
        self.made = 0

    def live(self) -> None:
        """Open, work, and end in some way; an attempt that was not answered may be kept in part."""
        self.disk.left = self.draw.choice([-1, self.draw.randrange(60)])
        self.disk.fails = self.draw.choice([-1, self.draw.randrange(60)])
        self.disk.error = self.draw.choice([errno.EIO, errno.ENOSPC])
        journal = WriteAheadLog(self.folder, segment_bytes=3000)
        try:
            journal.open()
            self.compare(journal)
            for _ in range(self.draw.randrange(8)):
                self.work(journal)
            journal.close()
        except (Killed, JournalBroken, JournalFull):
            pass
        self.disk.end_process()
        if self.draw.random() < 0.5:
            self.disk.power_cut()

    def compare(self, journal: WriteAheadLog) -> None:
        found = [payload for _, payload in journal.read_after(self.forgotten)]
        whole = (self.acknowledged + self.attempted)[self.forgotten :]
        assert len(self.acknowledged) <= journal.last_number == self.forgotten + len(found)
        assert found == whole[: len(found)]
        self.acknowledged = (self.acknowledged + self.attempted)[: journal.last_number]
        self.attempted = []

    def work(self, journal: WriteAheadLog) -> None:
        if self.acknowledged and self.draw.random() < 0.2:
            self.forgotten = self.draw.randrange(self.forgotten, len(self.acknowledged) + 1)
            journal.truncate(self.forgotten)
            return
        self.attempted = [self.payload() for _ in range(self.draw.randrange(1, 5))]
        try:
            journal.append(self.attempted)
        except JournalFull:
            self.attempted = []  # nothing of it may ever show up
            return
        self.acknowledged += self.attempted
        self.attempted = []

    def payload(self) -> bytes:
        self.made += 1
        return b"%d " % self.made * self.draw.randrange(200)


@pytest.mark.parametrize("seed", range(80))
def test_what_was_acknowledged_is_there_whatever_happens(tmp_path, monkeypatch, seed):
    draw = random.Random(seed)
    with monkeypatch.context() as patch:
        story = Story(tmp_path / "j", draw, Disk(tmp_path / "j", draw, patch))
        for _ in range(LIVES):
            story.live()
        story.disk.left = story.disk.fails = -1
        journal = WriteAheadLog(tmp_path / "j")
        journal.open()
        story.compare(journal)
        journal.close()
