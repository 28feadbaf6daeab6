"""Snapshots of a stream, and what must fit before one is carried on from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from querycloak._version import __version__
from querycloak.engines import state_codec
from querycloak.errors import DataError, Refused, UsageError
from querycloak.keys import derive
from querycloak.service.settings import Setup
from querycloak.service.stream.stream import Stream
from querycloak.service.wal import Snapshots

Keys = Sequence[tuple[bytes, int, bytes]]


class Keeper:
    """Saves a stream together with what made it, and refuses to carry on with anything else."""

    def __init__(self, snapshots: Snapshots, setup: Setup, secret: bytes) -> None:
        self._snapshots = snapshots
        self._secret = derive(secret, "whose state this is").hex()
        self._methods = [[stage.method, stage.settings.as_dict()] for stage in setup.stages]
        #: What may change from start to start, but not while entries wait to be applied again.
        chosen = setup.settings
        self._readers = [__version__, chosen.classify, _content(chosen.taxonomy), chosen.click_seconds]

    def save(self, position: int, stream: Stream, keys: Keys) -> None:
        """Save the stream as it is after so many entries of the journal."""
        made_by: dict[str, Any] = {"methods": self._methods, "readers": self._readers, "secret": self._secret}
        made_by |= {"keys": list(keys)}
        self._snapshots.save(position, state_codec.dump(stream.snapshot() | made_by))

    def restore(self, stream: Stream, journal: int) -> tuple[int, Keys]:
        """Carry on from the newest snapshot; give its place in the journal, and the retry keys."""
        found = self._snapshots.newest()
        if found is None:
            return self._begin(stream, journal)
        position, data = found
        parts = state_codec.load(data)
        self._check(parts, position, journal)
        stream.restore(parts)
        return position, [(bytes(key), at, bytes(answer)) for key, at, answer in parts["keys"]]

    def _begin(self, stream: Stream, journal: int) -> tuple[int, Keys]:
        """Save an empty stream at the very first start, so that every later one knows what made the state."""
        if journal:
            raise DataError("the journal has entries, but its snapshot is missing", hint=_TOGETHER)
        self.save(0, stream, ())
        return 0, ()

    def _check(self, parts: dict[str, Any], position: int, journal: int) -> None:
        if parts["secret"] != self._secret:
            raise Refused(
                "this state was made with another secret or seed, and nobody in it could be found again",
                hint="put the secret back that was beside it, or use another `--state` folder",
            )
        if parts["methods"] != self._methods:
            raise Refused(
                "this state was made with other methods or settings",
                hint="use the same ones, or another `--state` folder",
            )
        if journal < position:
            raise DataError("the journal ends before its own snapshot", hint=_TOGETHER)
        if parts["readers"] != self._readers and journal > position:
            raise Refused(
                f"version {parts['readers'][0]} left work to do in this state, or was set up otherwise",
                hint="start it as it was and stop it once, so that it can finish",
            )


def _content(path: str) -> str:
    """Tell one content of a file from another."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else ""
    except OSError as error:
        raise UsageError(f"the taxonomy cannot be read: {error.strerror}") from None


_TOGETHER = "snapshot and journal belong together: restore both from the same copy"
