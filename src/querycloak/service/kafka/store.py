"""Where lanes are kept between two owners: snapshots, and what was asked of them since."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from querycloak.errors import DataError
from querycloak.keys import write_private
from querycloak.service.kafka.lane import Mark
from querycloak.service.wal import Cipher, Journal, Snapshots
from querycloak.service.wal.disk import private_folder


class LaneStore(Protocol):
    """Keeps lanes, one for each partition. A folder of this machine does, or a topic that services share.

    A store that is shared names its `owner`: the service, as others know it. Each write has the lane's mark,
    as Kafka knows it, with which the store proves that the lane is still this service's.
    """

    @property
    def owner(self) -> str:
        """The name under which this service has lanes; empty if no other service could have them."""

    def agree(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the facts of a source for good; give those that were kept first."""

    def join(self, member: Callable[[], Any]) -> None:
        """Be ready to write; `member` gives the proof of being in the group. Also after being shut out."""

    def inherit(self, partitions: Sequence[int]) -> None:
        """Give up what earlier owners left unfinished who are gone from the group."""

    def open(self, partition: int, mark: Mark | None) -> None:
        """Take a lane; refuse if another process has it."""

    def close(self, partition: int) -> None:
        """Let a lane go."""

    def newest(self, partition: int) -> tuple[int, bytes] | None:
        """Give a lane's newest snapshot and the input offset that it stands at; once after `open`."""

    def save(self, partition: int, mark: Mark, state: bytes) -> int:
        """Keep a snapshot of a lane, and give its place; older ones go, and the requests that are in it."""

    def note(self, partition: int, mark: Mark, request: bytes) -> int:
        """Keep a request (an erasure, an epoch) before it takes effect; give its number, from 1 on."""

    def notes(self, partition: int, after: int) -> Iterator[tuple[int, bytes]]:
        """Give the requests behind a number, in order."""

    def size(self) -> int:
        """Count the bytes of all requests that are kept."""

    def leave(self) -> None:
        """Let all connections go."""


class LocalLanes:
    """Lanes in a folder of this machine: `lanes/0`, `lanes/1`, … each with snapshots and a small journal."""

    owner = ""

    def __init__(self, folder: Path, cipher: Cipher | None = None) -> None:
        self._folder, self._cipher = folder, cipher
        self._journals: dict[int, Journal] = {}

    def agree(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the facts of a source for good; give those that were kept first."""
        private_folder(self._folder)
        path = self._folder / "source.json"
        if not path.exists():
            write_private(path, json.dumps(dict(facts)).encode())
        try:
            return dict(json.loads(path.read_bytes()))
        except ValueError:
            raise DataError(f"`{path}` is damaged") from None

    def join(self, member: Callable[[], Any]) -> None:
        """Need no proof: a lock on the folder is enough."""

    def inherit(self, partitions: Sequence[int]) -> None:
        """Have nothing to give up."""

    def open(self, partition: int, mark: Mark | None) -> None:
        """Take a lane; refuse if another process has it."""
        journal = Journal(self._of(partition) / "journal", self._cipher)
        journal.open()
        self._journals[partition] = journal

    def close(self, partition: int) -> None:
        """Let a lane go."""
        self._journals.pop(partition).close()

    def newest(self, partition: int) -> tuple[int, bytes] | None:
        """Give a lane's newest snapshot and the input offset that it stands at."""
        return self._snapshots(partition).newest()

    def save(self, partition: int, mark: Mark, state: bytes) -> int:
        """Keep a snapshot of a lane; older ones go, and the requests that are in it."""
        self._snapshots(partition).save(mark.offset, state)
        self._journals[partition].forget(mark.requests)
        return mark.kept

    def note(self, partition: int, mark: Mark, request: bytes) -> int:
        """Keep a request before it takes effect; give its number, from 1 on."""
        return self._journals[partition].append([request])

    def notes(self, partition: int, after: int) -> Iterator[tuple[int, bytes]]:
        """Give the requests behind a number, in order."""
        return self._journals[partition].read(after)

    def size(self) -> int:
        """Count the bytes of all requests that are kept."""
        return sum(journal.size() for journal in list(self._journals.values()))

    def leave(self) -> None:
        """Have nothing to let go: `close` did."""

    def _of(self, partition: int) -> Path:
        return self._folder / str(partition)

    def _snapshots(self, partition: int) -> Snapshots:
        return Snapshots(self._of(partition) / "snapshots", self._cipher)
