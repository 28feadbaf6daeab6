"""What all sources share: a thread that submits records and continues only when they are durable."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final

from querycloak.errors import Busy, Unavailable
from querycloak.service.ingest.group_commit import PendingRequest
from querycloak.service.ingest.parse import ParsedBody

#: Seconds to wait when there is nothing to read, or the service is too busy.
PAUSE: Final = 0.2
#: Appends a request to the write-ahead log.
Submit = Callable[[PendingRequest], Future[dict[str, Any]]]
_log = logging.getLogger("querycloak.service")


class Source(ABC):
    """A thread that reads records. Nothing is read twice or left out, also after a crash.

    The positions up to which it has read are in the write-ahead log, in the entry of what was read.
    """

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._stopping = threading.Event()
        self._submit: Submit
        self._read: dict[str, int] = {}
        self._trouble = ""
        self.skipped: Counter[str] = Counter()

    def start(self, submit: Submit, read: Mapping[str, int]) -> None:
        """Start to read from the stored positions."""
        self._submit, self._read = submit, dict(read)
        self._thread.start()

    def stop(self) -> None:
        """Stop reading. What is not durable is read again after a restart."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def health(self) -> str:
        """Return why nothing can be read now; empty if all is well."""
        return self._trouble

    @abstractmethod
    def _run(self) -> None:
        """Read until `_stopping` is set."""

    def _until_durable(self, parsed: ParsedBody, read: Mapping[str, int]) -> bool:
        """Submit records until they are durable. Return False if the source is stopped before."""
        while True:
            try:
                request = PendingRequest("records", parsed, facts={"read": dict(read)})
                answer = self._submit(request).result()
            except (Busy, Unavailable) as error:
                self._report(error.message)
                if self._stopping.wait(PAUSE):
                    return False
                continue
            self.skipped.update({reason: len(rows) for reason, rows in answer["skipped"].items()})
            self._read |= read
            self._trouble = ""
            return True

    def _report(self, trouble: str) -> None:
        """Store why nothing is read, and log it when it changes."""
        if trouble != self._trouble:
            self._trouble = trouble
            _log.warning("reading the source failed", extra={"trouble": trouble})
