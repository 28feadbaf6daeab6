"""What one service asks of all lanes, and what lanes answer: a partition that every service reads."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from querycloak.errors import QueryCloakError, Unavailable
from querycloak.service.kafka import client
from querycloak.service.kafka.address import Address
from querycloak.service.kafka.pieces import Pieces
from querycloak.service.kafka.reading import GIVEN_UP, Reader, fed
from querycloak.service.wal import Cipher

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

Kind = Literal["erasure", "export", "epoch"]
Answers = dict[int, dict[str, Any]]
_ASKED: Final = "asked/"
_ANSWER: Final = "answer/"
#: The newest epoch that was asked for; it stays.
_EPOCH: Final = "epoch"
_TICK: Final = "tick"
#: The fact of an erasure that names earlier ones of the same person: a lane's answer counts what they did.
SINCE: Final = "since"
#: Seconds between two messages that mean nothing.
REFRESHED: Final = 3600.0
#: Seconds after which what is done is cleared away for a service that did not do so itself.
LEFT_OVER: Final = 600.0
#: Seconds after which nobody waits for an answer any more, at any service.
GIVEN_UP_ON: Final = 180.0
#: Earlier requests that a request names, at most.
_NAMED: Final = 100
_log = logging.getLogger("querycloak.service")


@dataclass(frozen=True)
class Asked:
    """Something that every lane is to carry out and answer."""

    id: str
    kind: Kind
    facts: Mapping[str, Any] = field(repr=False)
    at: float


class Board:
    """Puts requests to all lanes and gathers their answers; lanes may be at any service, or moving.

    A request is durable before any lane sees it. It stays until all lanes have answered, whatever becomes of
    the service that was asked.
    """

    def __init__(self, address: Address, lanes: int, cipher: Cipher) -> None:
        self.address, self.lanes = address, lanes
        self._pieces = Pieces(cipher, address.topic, lanes)
        self._sender: Producer = client.sender(address)
        self._sending = threading.Lock()
        self._consumer: Consumer = client.consumer(address)
        self._found: dict[str, bytes] = {}
        self._requests: dict[str, Asked] = {}
        self._posted: dict[str, Asked] = {}  # written by this service, and not read back yet
        self._waiting: dict[str, list[Future[Answers]]] = {}
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="querycloak-board", daemon=True)
        self._tidied = self._refreshed = time.monotonic()
        self.trouble = ""

    def start(self) -> None:
        """Read what is there, then follow what comes."""
        reader = Reader(self.address)
        try:
            start = reader.end(self.lanes)
            self._found = reader.read(self.lanes, 0, GIVEN_UP)
        finally:
            reader.close()
        for key in list(self._found):
            self._noted(key)
        place = client.library().TopicPartition(self.address.topic, self.lanes, start)
        self._consumer.assign([place])
        self._thread.start()

    def stop(self) -> None:
        """End; what was asked stays."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._consumer.close()
        with self._lock:
            for future in [one for some in self._waiting.values() for one in some]:
                future.set_exception(Unavailable("the service ends", hint="ask another one"))
            self._waiting.clear()

    # Who asks

    def ask(self, kind: Kind, facts: Mapping[str, Any], patience: float) -> Answers:
        """Have something carried out in all lanes; give what each answers. May be asked again."""
        future: Future[Answers] = Future()
        with self._lock:
            asked, new = self._asked(kind, facts)
            self._waiting.setdefault(asked.id, []).append(future)
        try:
            if new:
                self._post(asked)
                self._supersede(asked)
            found = future.result(patience)
        except TimeoutError:
            raise self._unanswered(asked) from None
        finally:
            self._wait_no_more(asked.id, future)
        self.clear(asked.id)
        for earlier in asked.facts.get(SINCE, ()):
            if self._complete(earlier) and earlier not in self._waiting:
                self.clear(earlier)
        return found

    def _post(self, asked: Asked) -> None:
        with self._lock:
            self._posted[asked.id] = asked
        try:
            self._write(self._pieces.cut(_ASKED + asked.id, _packed(asked)))
        except BaseException:
            with self._lock:
                self._posted.pop(asked.id, None)
            raise

    def _wait_no_more(self, asked: str, future: Future[Answers]) -> None:
        with self._lock:
            left = [one for one in self._waiting.pop(asked, []) if one is not future]
            if left:
                self._waiting[asked] = left

    def _asked(self, kind: Kind, facts: Mapping[str, Any]) -> tuple[Asked, bool]:
        """Make a request, or find the same one under way; say whether it is new.

        An epoch that is under way is the one that is meant. An erasure is not: a lane may have carried the
        earlier one out, and the person may have searched again. It is carried out anew, and names those
        before it whose answers nobody was given.
        """
        alike = [
            one
            for one in (self._posted | self._requests).values()
            if (one.kind, _subject(one.facts)) == (kind, _subject(facts))
        ]
        waiting = [one for one in alike if not self._complete(one.id)]
        if kind == "epoch" and waiting:
            return waiting[0], False
        named: dict[str, Any] = {}
        if kind == "erasure":
            before = [name for one in alike for name in (*one.facts.get(SINCE, ()), one.id)]
            named[SINCE] = list(dict.fromkeys(before))[-_NAMED:]
        return Asked(secrets.token_hex(8), kind, dict(facts) | named, time.time()), True

    def _supersede(self, asked: Asked) -> None:
        """Remove requests before this one that nobody waits for: else each that is asked again would stay."""
        old = time.time() - GIVEN_UP_ON
        before = [self._requests.get(name) for name in asked.facts.get(SINCE, ())]
        for one in before:
            if one is not None and one.at < old and one.id not in self._waiting:
                self.clear(one.id)

    def _unanswered(self, asked: Asked) -> Unavailable:
        count = self.lanes - sum(self.answered(asked.id, lane) for lane in range(self.lanes))
        if asked.kind == "export":
            self.clear(asked.id)
        return Unavailable(
            f"{count} of {self.lanes} lanes have not answered; it is done when they have",
            hint="ask again later",
        )

    def next_epoch(self) -> int:
        """Give the epoch that comes next, or one that is under way, and keep it in mind for good."""
        with self._lock:
            open_ones = [one for one in self._requests.values() if one.kind == "epoch"]
            under_way = [int(one.facts["epoch"]) for one in open_ones if not self._complete(one.id)]
            known = self._pieces.join(_EPOCH, self._found)
        if under_way:
            return max(under_way)
        epoch = 1 + (int(known) if known is not None else 0)
        self._write(self._pieces.cut(_EPOCH, str(epoch).encode()))
        return epoch

    def clear(self, asked: str) -> None:
        """Remove a request and its answers."""
        keys = [key for key in list(self._found) if _id_of(key) == asked]
        self._write(dict.fromkeys([*keys, _ASKED + asked], None))

    def _write(self, messages: Mapping[str, bytes | None]) -> None:
        """Send messages, and return when Kafka has them."""
        failed: list[Any] = []
        kafka = client.library()
        with self._sending:
            try:
                for key, value in messages.items():
                    self._sender.produce(
                        self.address.topic,
                        value,
                        key,
                        self.lanes,
                        on_delivery=lambda error, _: failed.append(error) if error else None,
                    )
                left = self._sender.flush(client.PATIENCE)
            except (kafka.KafkaException, BufferError):
                left = 1
        if failed or left:
            raise Unavailable("Kafka does not take what was asked", hint="ask again later")

    # Who answers

    def requests(self) -> list[Asked]:
        """Give what is asked now, oldest first."""
        with self._lock:
            return sorted(self._requests.values(), key=lambda one: (one.at, one.id))

    def answered(self, asked: str, lane: int) -> bool:
        """Say whether a lane's answer is there."""
        return answer_name(asked, lane) in self._found

    def _complete(self, asked: str) -> bool:
        return all(self.answered(asked, lane) for lane in range(self.lanes))

    # What comes

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                for message in self._consumer.consume(500, 0.1):
                    with self._lock:
                        if fed(self._found, message):
                            self._noted((message.key() or b"").decode("utf-8", "replace"))
                self._tidy()
                self.trouble = ""
            except QueryCloakError as error:
                self.trouble = error.message
                self._stop.wait(0.5)
            except client.library().KafkaException as error:
                self.trouble = client.unavailable(error).message
                self._stop.wait(0.5)

    def _noted(self, key: str) -> None:
        """Look at what has changed under a key."""
        asked = _id_of(key)
        if key == _ASKED + asked:
            whole = self._pieces.join(key, self._found)
            self._posted.pop(asked, None)
            if whole is None:
                self._requests.pop(asked, None)
            else:
                self._requests[asked] = _unpacked(whole)
        elif asked in self._waiting and self._complete(asked):
            answers = {lane: self._answer(asked, lane) for lane in range(self.lanes)}
            for future in self._waiting.pop(asked):
                future.set_result(answers)

    def _answer(self, asked: str, lane: int) -> dict[str, Any]:
        whole = self._pieces.join(answer_name(asked, lane), self._found)
        return dict(msgspec.msgpack.decode(whole or b"\x80"))

    def _tidy(self) -> None:
        """Clear away, now and then, what other services left that did not live to see the answers.

        Kafka compacts no file that it writes to: so something new is written now and then, and what was
        removed goes.
        """
        if time.monotonic() - self._tidied < LEFT_OVER / 10:
            return
        self._tidied = time.monotonic()
        old = time.time() - LEFT_OVER
        with self._lock:
            done = {one.id for one in self._requests.values() if one.at < old and self._complete(one.id)}
            orphans = {_id_of(key) for key in self._found if key.startswith(_ANSWER)} - set(self._requests)
        for asked in done | orphans:
            self.clear(asked)
        if self._tidied - self._refreshed >= REFRESHED:
            self._refreshed = self._tidied
            self._write({_TICK: b"tick"})


def _subject(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Give what a request is about, whatever was asked before it."""
    return {name: value for name, value in facts.items() if name != SINCE}


def answer_name(asked: str, lane: int) -> str:
    """Give the name under which a lane's answer stands."""
    return f"{_ANSWER}{asked}/{lane}"


def packed(answer: Mapping[str, Any]) -> bytes:
    """Write an answer as bytes."""
    return msgspec.msgpack.encode(dict(answer))


def _packed(asked: Asked) -> bytes:
    return msgspec.msgpack.encode((asked.id, asked.kind, dict(asked.facts), asked.at))


def _unpacked(data: bytes) -> Asked:
    return Asked(*msgspec.msgpack.decode(data))


def _id_of(key: str) -> str:
    """Give the request that a key belongs to; empty if to none."""
    parts: Iterable[str] = key.split("/")
    first, *rest = parts
    return rest[0] if first in ("asked", "answer") and rest else ""
