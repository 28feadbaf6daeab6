"""A thread that feeds the door from a file, as fast as what it feeds can be made durable."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from querycloak.errors import Busy, QueryCloakError, Unavailable
from querycloak.service.ingest.parse import ParsedBody
from querycloak.service.sources.lines import FAULTS, Form, before_last_search, sieve
from querycloak.service.sources.rotation import Place
from querycloak.service.sources.tail import GRACE, LONGEST, PIECE, Piece, Tail

#: How long to sleep when there is nothing to read, or the door is too busy.
PAUSE: Final = 0.2
Submit = Callable[[ParsedBody, Mapping[str, int]], Future[dict[str, Any]]]
_log = logging.getLogger("querycloak.service")


class Feeder:
    """Follows a file of JSON lines, of Excite, or of TSV or CSV with a header.

    Nothing is read twice or left out. The rows of a search stay together: its last ones so far wait for
    the next line, or until the file has been quiet for a while.
    """

    def __init__(self, path: Path, read: Mapping[str, int], submit: Submit, grace: float = GRACE) -> None:
        self._tail, self._submit, self._grace = Tail(path, read, grace), submit, grace
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="querycloak-tail", daemon=True)
        self._size = PIECE
        self._end, self._end_seen = (0, 0), 0.0
        self.skipped = 0
        self.trouble = ""

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more; what was handed on is durable or will be read again."""
        self._stop.set()
        self._thread.join()
        self._tail.close()

    def _run(self) -> None:
        """Read on whatever happens: what cannot be read now is tried again, since it may be mended."""
        while not self._stop.is_set():
            try:
                moved = self._step()
                self.trouble = ""
            except QueryCloakError as error:
                moved = self._troubled(error.message)
            except FAULTS as error:  # it may hold data, its type does not
                moved = self._troubled(f"the file to follow could not be read ({type(error).__name__})")
            if not moved:
                self._stop.wait(PAUSE)

    def _troubled(self, message: str) -> bool:
        if message != self.trouble:
            self.trouble = message
            _log.warning("following the file failed", extra={"trouble": message})
        return False

    def _step(self) -> bool:
        """Hand on the next lines; say whether there is reason to look for others at once."""
        piece = self._tail.piece(self._size)
        if piece is None:
            return False
        try:
            return self._hand_on(Form(self._tail.header()), piece)
        except QueryCloakError:
            self._tail.give_up()
            raise

    def _hand_on(self, form: Form, piece: Piece) -> bool:
        begin = form.begin if piece.place.offset == 0 else 0
        lines = piece.data[begin:]
        try:
            whole = form.read(lines)
            parsed, size = before_last_search(whole, form.begins(lines), len(lines))
            if size or not lines:
                return self._insist(parsed, piece.place.later(begin + size))
            return self._one_search(whole, piece)
        except QueryCloakError:
            raise
        except FAULTS:
            every = [line + b"\n" for line in lines.split(b"\n")[:-1]]
            good = sieve(every, form.can_read)
            if len(good) == len(every):  # then it is not their fault
                raise
            done = self._insist(form.read(b"".join(good)), piece.end)
            self.skipped += len(every) - len(good)
            return done

    def _one_search(self, parsed: ParsedBody, piece: Piece) -> bool:
        """Wait for the end of a search, unless it is very long or nothing more comes."""
        if piece.more and self._size < LONGEST:
            self._size *= 2
            return True
        return (piece.more or self._quiet(piece.end)) and self._insist(parsed, piece.end)

    def _quiet(self, end: Place) -> bool:
        """Say whether a file has ended here for a while."""
        now = time.monotonic()
        if (end.inode, end.offset) != self._end:
            self._end, self._end_seen = (end.inode, end.offset), now
        return now - self._end_seen >= self._grace

    def _insist(self, parsed: ParsedBody, place: Place) -> bool:
        """Hand records on until they are durable: only then is what follows them read."""
        while True:
            try:
                answer = self._submit(parsed, place.as_read()).result()
            except (Busy, Unavailable) as error:
                self._troubled(error.message)
                if self._stop.wait(PAUSE):
                    return False
                continue
            self.skipped += sum(len(rows) for rows in answer["skipped"].values())
            self._tail.go_on(place)
            self._size = PIECE
            return True
