"""People's requests in the lanes that are here, and in all lanes wherever they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from querycloak.errors import Unavailable
from querycloak.service.kafka.board import SINCE, Asked, Board, answer_name, packed
from querycloak.service.kafka.lane import Lane

if TYPE_CHECKING:
    from querycloak.service.kafka.runner import Runner
    from querycloak.service.kafka.shared import KafkaLanes

T = TypeVar("T")
#: Seconds that a person's request may take until it is in all state.
PATIENCE: Final = 60.0
#: Requests that a lane carries out between two snapshots, at most.
_TOGETHER: Final = 100


class Errands(Protocol):
    """Carries requests out in every lane, and gives what each lane answers."""

    def erase(self, user: str) -> list[dict[str, int]]:
        """Forget a person; return when no state holds what was there before."""

    def export(self, user: str) -> list[dict[str, Any]]:
        """Give what is held of a person, and how many records of hers have left."""

    def rotate(self) -> tuple[int, list[dict[str, int]]]:
        """Start a new epoch; give its number too."""

    def attend(self) -> None:
        """Do what is due; in the thread that reads, between two batches."""


class OwnErrands:
    """For a service that has all lanes itself."""

    def __init__(self, worker: Runner) -> None:
        self._worker = worker

    def erase(self, user: str) -> list[dict[str, int]]:
        """Forget a person in every lane."""
        told = self._ask(lambda: [_erased(self._worker, lane, user) for lane in self._worker.in_order()])
        self._ask(self._worker.keep_all)
        return told

    def export(self, user: str) -> list[dict[str, Any]]:
        """Give what every lane holds of a person."""
        return self._ask(lambda: [exported(lane, user) for lane in self._worker.in_order()])

    def rotate(self) -> tuple[int, list[dict[str, int]]]:
        """Start a new epoch in every lane; one that a crash left behind is brought up to the others first."""

        def turn() -> tuple[int, list[dict[str, int]]]:
            lanes = self._worker.in_order()
            newest = max((lane.stream.epoch for lane in lanes), default=0)
            behind = [lane for lane in lanes if lane.stream.epoch < newest] or lanes
            told = [self._worker.carry_out(lane, "epoch") for lane in behind]
            return max((lane.stream.epoch for lane in lanes), default=0), told

        found = self._ask(turn)
        self._ask(self._worker.keep_all)
        return found

    def attend(self) -> None:
        """Have nothing to do: requests are put to the worker itself."""

    def _ask(self, work: Callable[[], T]) -> T:
        try:
            return self._worker.ask(work).result(PATIENCE)
        except TimeoutError:
            raise Unavailable(
                "the lanes are not at rest; it will be done when they are", hint="ask again later"
            ) from None


class SharedErrands:
    """For services that share lanes: requests go over a board, and each lane's owner carries them out.

    A lane's answer is written when its snapshot is: an answer says that nothing that was there before is in
    the newest snapshot. Who takes a lane over finds request and answers in its state, and does nothing twice.
    """

    def __init__(self, worker: Runner, board: Board, store: KafkaLanes, patience: float = PATIENCE) -> None:
        self._worker, self._board, self._store, self._patience = worker, board, store, patience
        self._told: set[tuple[str, int]] = set()

    def erase(self, user: str) -> list[dict[str, int]]:
        """Forget a person in every lane, wherever it is."""
        return list(self._board.ask("erasure", {"user": user}, self._patience).values())

    def export(self, user: str) -> list[dict[str, Any]]:
        """Give what every lane holds of a person, wherever it is."""
        return list(self._board.ask("export", {"user": user}, self._patience).values())

    def rotate(self) -> tuple[int, list[dict[str, int]]]:
        """Start a new epoch in every lane, wherever it is."""
        epoch = self._board.next_epoch()
        return epoch, list(self._board.ask("epoch", {"epoch": epoch}, self._patience).values())

    def attend(self) -> None:
        """Carry out what is asked in the lanes that are here; answer what is in a snapshot."""
        asked = self._board.requests()
        self._told &= {(one.id, lane) for one in asked for lane in range(self._board.lanes)}
        for lane in self._worker.in_order() if asked else []:
            if lane.at_rest:
                due = [one for one in asked if self._is_due(one, lane)]
                self._attend(lane, due[:_TOGETHER])

    def _is_due(self, asked: Asked, lane: Lane) -> bool:
        told = (asked.id, lane.partition) in self._told
        return not told and not self._board.answered(asked.id, lane.partition)

    def _attend(self, lane: Lane, due: list[Asked]) -> None:
        for asked in due:
            if asked.kind != "export" and asked.id not in lane.answers:
                self._carry_out(asked, lane)
        if due and lane.at_rest:  # else what it did is to be committed first
            self._worker.keep([lane])
            self._answer(lane, due)

    def _carry_out(self, asked: Asked, lane: Lane) -> None:
        if asked.kind == "erasure":
            _erased(self._worker, lane, str(asked.facts["user"]), asked=asked.id)
            return
        dropped = 0
        while lane.stream.epoch < int(asked.facts["epoch"]):
            dropped += self._worker.carry_out(lane, "epoch", asked=asked.id)["dropped"]
        lane.answer(asked.id, {"dropped": dropped})

    def _answer(self, lane: Lane, due: list[Asked]) -> None:
        answers: Mapping[str, Mapping[str, Any]] = {
            one.id: exported(lane, str(one.facts["user"])) if one.kind == "export" else _told(lane, one)
            for one in due
        }
        messages = {answer_name(name, lane.partition): packed(told) for name, told in answers.items()}
        self._worker.insist(lambda: self._store.tell(lane.partition, lane.committed, messages))
        self._told |= {(one.id, lane.partition) for one in due}


def _told(lane: Lane, asked: Asked) -> dict[str, int]:
    """Say what became of a request in a lane, with what earlier ones did that nobody was told of."""
    found = Counter(lane.answers[asked.id])
    for earlier in asked.facts.get(SINCE, ()):
        found.update(lane.answers.get(earlier, {}))
    return dict(found)


def exported(lane: Lane, user: str) -> dict[str, Any]:
    """Give what a lane holds of a person, and how many records of hers have left it."""
    held, left = lane.stream.person(_pseudonym(lane, user))
    return {"held": held.to_dicts(), "released": left}


def _erased(worker: Runner, lane: Lane, user: str, **more: Any) -> dict[str, int]:
    """Erase a person by her pseudonym, and those of earlier epochs."""
    names = {"user": _pseudonym(lane, user), "before": lane.pseudonyms.before(user)}
    return worker.carry_out(lane, "erasure", **names, **more)


def _pseudonym(lane: Lane, user: str) -> str:
    return lane.pseudonyms.of([user])[0]
