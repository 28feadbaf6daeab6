"""Real faults: processes killed at any instant, a file that may not grow, disks that are full or fail."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from querycloak.errors import JournalBroken, JournalFull
from querycloak.service.wal.frames import FRAME_BYTES
from querycloak.service.wal.wal import WriteAheadLog
from tests.unit.service.wal.logs import contents, files, opened

KILLS = 30

#: Appends groups for ever and says what was acknowledged; payloads are made from their numbers.
CHILD = """
import random, sys
from pathlib import Path
from querycloak.service.wal.wal import WriteAheadLog
journal = WriteAheadLog(Path(sys.argv[1]), segment_bytes=20_000)
journal.open()
draw = random.Random(int(sys.argv[2]))
print("open", journal.last_number, flush=True)
while True:
    first, count = journal.last_number + 1, draw.randrange(1, 9)
    print(journal.append([b"%d " % n * (n % 300) for n in range(first, first + count)]), flush=True)
    if draw.random() < 0.02:
        journal.truncate(max(0, journal.last_number - 500))
"""

#: Appends until the file may not grow any more, then says so, makes room and goes on.
LIMITED = """
import json, resource, sys
from pathlib import Path
from querycloak.errors import JournalFull
from querycloak.service.wal.wal import WriteAheadLog
journal = WriteAheadLog(Path(sys.argv[1]))
journal.open()
journal.append([b"before"])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
try:
    journal.append([b"too much"] * 1000)
    told = ""
except JournalFull as error:
    told = error.message
small = journal.append([b"small"])
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
print(json.dumps([told, small, journal.append([b"too much"] * 1000)]))
"""


def payload(number: int) -> bytes:
    return b"%d " % number * (number % 300)


def run_and_kill(folder: Path, seed: int, seconds: float) -> int:
    """Let a child append, kill it, and give the last number that it acknowledged."""
    command = [sys.executable, "-c", CHILD, str(folder), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        assert first.startswith("open "), first
        time.sleep(seconds)
        child.kill()
        lines = child.stdout.read().split("\n")[:-1]  # the last line may be cut off
    return int(lines[-1]) if lines else int(first.split()[1])


def test_killed_at_any_instant_it_holds_all_that_was_acknowledged(tmp_path):
    draw = random.Random(9)
    total = 0
    for seed in range(KILLS):
        acknowledged = run_and_kill(tmp_path / "j", seed, draw.random() * 0.06)
        with opened(tmp_path / "j") as journal:
            assert journal.last_number >= max(acknowledged, total)
            there = files(tmp_path / "j")  # none yet if the first child was killed before it wrote
            kept = int(there[0].stem) if there else total + 1
            found = list(journal.read_after(kept - 1))
        assert found == [(n, payload(n)) for n in range(kept, journal.last_number + 1)]
        assert there or not total
        total = journal.last_number
    assert total > KILLS


def test_a_file_that_may_not_grow_is_a_full_disk_and_writing_goes_on_when_it_may(tmp_path):
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "j")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told, small, large = json.loads(done.stdout)
    assert "File too large" in told
    assert (small, large) == (2, 1002)
    payloads = [b"before", b"small", *[b"too much"] * 1000]
    assert contents(tmp_path / "j") == list(enumerate(payloads, start=1))


@contextlib.contextmanager
def failing(name: str, number: int, after_bytes: int = 0) -> Iterator[None]:
    """Let a call of the system fail; a write first takes some bytes."""
    real = getattr(os, name)
    calls = 0

    def call(descriptor: int, *arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 1 and after_bytes:
            data, at = arguments
            return real(descriptor, memoryview(data)[:after_bytes], at)
        raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, name, call)
        yield


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize(("call", "taken"), [("pwrite", 0), ("pwrite", 1), ("pwrite", 77), ("fdatasync", 0)])
def test_a_full_disk_keeps_nothing_of_the_write_and_the_next_one_works(tmp_path, call, taken, number):
    with opened(tmp_path / "j") as journal:
        journal.append([b"one"])
        size = journal.size()
        with failing(call, number, taken), pytest.raises(JournalFull, match="no room") as told:
            journal.append([b"not kept", b"x" * 100])
        assert told.value.http_status == 503
        assert (journal.last_number, journal.size()) == (1, size)
        assert sum(path.stat().st_size for path in files(tmp_path / "j")) == size
        assert list(journal.read_after(0)) == [(1, b"one")]
        assert journal.append([b"two"]) == 2
    assert contents(tmp_path / "j") == [(1, b"one"), (2, b"two")]


def test_a_full_disk_before_the_first_write_leaves_nothing(tmp_path):
    with opened(tmp_path / "j") as journal:
        with failing("pwrite", errno.ENOSPC), pytest.raises(JournalFull):
            journal.append([b"not kept"])
        assert [path.name for path in (tmp_path / "j").iterdir()] == ["lock"]
        assert journal.append([b"one"]) == 1
    assert contents(tmp_path / "j") == [(1, b"one")]


def test_room_for_the_write_but_not_for_its_mark_is_enough(tmp_path):
    real = os.pwrite

    def no_marks(descriptor: int, data: memoryview, at: int) -> int:
        if len(data) == FRAME_BYTES:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data, at)

    with opened(tmp_path / "j", segment_bytes=100) as journal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pwrite", no_marks)
        for number in range(1, 7):
            assert journal.append([b"x" * 40]) == number
    assert contents(tmp_path / "j") == [(number, b"x" * 40) for number in range(1, 7)]


@pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
def test_after_a_failed_sync_nothing_more_is_taken_until_it_is_opened_again(tmp_path, call):
    journal = WriteAheadLog(tmp_path / "j")
    journal.open()
    journal.append([b"one"])
    with (
        failing(call, errno.EIO),
        pytest.raises(JournalBroken, match="cannot be written: Input/output error"),
    ):
        journal.append([b"in doubt"])
    for refused in (lambda: journal.append([b"two"]), lambda: journal.truncate(1)):
        with pytest.raises(JournalBroken, match="no more records are accepted"):
            refused()
    assert (journal.last_number, list(journal.read_after(0))) == (1, [(1, b"one")])
    journal.close()
    journal.open()
    assert journal.last_number == (1 if call == "pwrite" else 2)
    last = journal.append([b"after"])
    journal.close()
    assert contents(tmp_path / "j", after=last - 1) == [(last, b"after")]


def test_what_is_in_doubt_is_written_once_more_before_it_counts(tmp_path):
    """After a failed sync the system shows bytes that it will never write, unless they are written anew."""
    journal = WriteAheadLog(tmp_path / "j")
    journal.open()
    journal.append([b"one"])
    with failing("fdatasync", errno.EIO), pytest.raises(JournalBroken):
        journal.append([b"in doubt"])
    journal.close()
    calls: list[tuple[str, bytes]] = []
    write, sync = os.pwrite, os.fsync
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            os, "pwrite", lambda d, data, at: calls.append(("write", bytes(data))) or write(d, data, at)
        )
        patch.setattr(os, "fsync", lambda d: calls.append(("sync", b"")) or sync(d))
        journal.open()
    journal.close()
    assert [name for name, _ in calls][:2] == ["write", "sync"]
    assert b"in doubt" in calls[0][1]


def test_a_full_disk_while_forgetting_frees_what_it_can(tmp_path):
    with opened(tmp_path / "j", segment_bytes=100) as journal:
        for _ in range(5):
            journal.append([b"x" * 80])
        with failing("pwrite", errno.ENOSPC), pytest.raises(JournalFull):
            journal.truncate(5)
        assert len(files(tmp_path / "j")) == 1
        assert journal.append([b"six"]) == 6
        journal.truncate(6)
        assert journal.size() == files(tmp_path / "j")[0].stat().st_size
    with opened(tmp_path / "j") as journal:
        assert journal.last_number == 6
