"""Brings lanes to where they stood, whoever had them before, and keeps them for whoever has them next."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from querycloak._version import __version__
from querycloak.engines import state_codec
from querycloak.engines.pipeline import Stage
from querycloak.errors import DataError, Refused
from querycloak.keys import derive
from querycloak.service import entries
from querycloak.service.entries import Entry
from querycloak.service.kafka.lane import Lane, Mark
from querycloak.service.kafka.store import LaneStore
from querycloak.service.pseudonyms import Pseudonyms
from querycloak.service.sinks.profiles import Profiles
from querycloak.service.stream import Stream
from querycloak.service.tally import Tally

_RESET: Final = "did the group's offsets expire, or were they reset? start anew with another group and folder"


class Loader:
    """Makes a lane out of its snapshot and what Kafka knows of it."""

    def __init__(
        self,
        stages: list[Stage],
        store: LaneStore,
        stream: Callable[[bytes], Stream],
        profiles: Callable[[str], Profiles],
        secret: bytes,
    ) -> None:
        self._stages, self._store, self._stream = stages, store, stream
        self._profiles, self._secret = profiles, secret

    @property
    def shared(self) -> bool:
        """Whether other services may have had a lane before."""
        return bool(self._store.owner)

    def join(self, member: Callable[[], Any]) -> None:
        """Be ready to keep lanes; `member` proves that they are this service's."""
        self._store.join(member)

    def inherit(self, partitions: list[int]) -> None:
        """Give up what earlier owners of partitions left unfinished."""
        self._store.inherit(partitions)

    def leave(self) -> None:
        """Let the store go."""
        self._store.leave()

    def load(self, partition: int, committed: Mark | None, first: int, low: int) -> Lane:
        """Load a lane; a new one begins at input offset `first`. `low` is the first offset that Kafka has."""
        self._store.open(partition, committed)
        try:
            return self._loaded(partition, committed, first, low)
        except BaseException:
            self._store.close(partition)
            raise

    def _loaded(self, partition: int, committed: Mark | None, first: int, low: int) -> Lane:
        secret = derive(self._secret, "lane", str(partition))
        stream = self._stream(secret)
        found = self._store.newest(partition)
        kept = committed.kept if committed is not None else -1
        if found is None:
            kept, found = self._begin(partition, committed, first, stream)
        offset, parts = found[0], state_codec.load(found[1])
        if committed is None and int(parts["own/accepted"]):
            raise DataError(
                f"partition {partition}: the state stands at {offset:,}, the group nowhere",
                hint=_RESET,
            )
        mark = replace(committed or Mark(offset), kept=kept, by=self._store.owner)
        self._check(partition, parts, mark, low)
        lane = Lane(partition, stream, Pseudonyms(secret, 0), Tally(self._profiles(_name(partition))), mark)
        noted = self._store.notes(partition, int(parts["lane"]["requests"]))
        lane.restore(parts, [(number, entries.decode(data)) for number, data in noted])
        return lane

    def _begin(
        self, partition: int, committed: Mark | None, first: int, stream: Stream
    ) -> tuple[int, tuple[int, bytes]]:
        """Keep a lane that nobody had before; give its place, and what is kept."""
        if committed is not None:
            raise DataError(
                f"partition {partition}: the group has a committed offset, but no state belongs to it",
                hint="put the state back, or start anew with another group: `?group=NAME`",
            )
        lane = {"offset": first, "released": 0, "requests": 0, "skipped": {}}
        state = self._frozen(stream.snapshot() | {"lane": lane})
        mark = Mark(first, by=self._store.owner)
        return self._store.save(partition, mark, state), (first, state)

    def _check(self, partition: int, parts: dict[str, Any], mark: Mark, low: int) -> None:
        own = parts["lane"]
        here = Mark(int(own["offset"]), int(own["released"]), int(own["requests"]))
        if parts["methods"] != self._methods():
            raise Refused(
                "this state was made with other methods or settings",
                hint="use the same ones, or another `--state` folder and group",
            )
        if (here.offset, here.released, here.requests) > (mark.offset, mark.released, mark.requests):
            raise DataError(
                f"partition {partition}: the state stands at {here.offset:,}, the group at {mark.offset:,}",
                hint=_RESET,
            )
        if here != mark and parts["version"] != __version__:
            raise Refused(
                f"this state was left by version {parts['version']} with work to do",
                hint="start that version and stop it once, so that it can finish",
            )
        if here.offset < low:
            raise DataError(
                f"partition {partition}: offset {here.offset:,} is needed, but Kafka's first is {low:,}",
                hint="the topic's retention is too short for the time that the service was away",
            )

    def save(self, lane: Lane) -> None:
        """Keep a lane; first the profiles, so that none of its lines is counted never."""
        lane.tally.flush()
        while lane.stream.unwanted:
            lane.tally.forget(lane.stream.unwanted[-1])
            lane.stream.unwanted.pop()
        lane.kept = self._store.save(lane.partition, lane.mark, self._frozen(lane.snapshot()))
        lane.saved, lane.saved_at = lane.mark, time.monotonic()
        lane.committed = replace(lane.committed, kept=lane.kept)

    def _frozen(self, parts: dict[str, Any]) -> bytes:
        return state_codec.dump(parts | {"methods": self._methods(), "version": __version__})

    def note(self, lane: Lane, entry: Entry) -> int:
        """Note a request before it takes effect; give its number."""
        return self._store.note(lane.partition, lane.committed, entries.encode(entry))

    def drop(self, lane: Lane) -> None:
        """Let a lane go."""
        lane.tally.store.close()
        self._store.close(lane.partition)

    def _methods(self) -> list[Any]:
        return [[stage.method, stage.settings.as_dict()] for stage in self._stages]


def _name(partition: int) -> str:
    return f"partition-{partition}"
