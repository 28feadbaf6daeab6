"""`link-time`: a kept time tells when the author's token came in, and which records make a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from querycloak.attacks.base import Attack, AttackerView, Attribution
from querycloak.attacks.link_repeat import (
    LinkRepeat,
    Window,
    by_string,
    cohorts,
    commonest,
    in_parts,
    run_em,
    window,
)
from querycloak.attacks.link_window import reach_of
from querycloak.attacks.release_order import ReleaseStream, author_em, read_stream, sessions, windows
from querycloak.attacks.searches import words_of
from querycloak.errors import NotApplicable
from querycloak.kernels.order import group
from querycloak.log import NO_TIME, IntArray
from querycloak.settings import setting

#: Candidates that a record keeps for the vote of its session, records of a session, rounds of voting.
CANDIDATES, SESSION, ROUNDS = 8, 64, 4
#: How likely somebody who is near one record of a session is near another by chance. From made-up logs.
MET_BY_CHANCE = 0.01
#: E|x - m| / m of an exponential delay with mean m.
SPREAD_OF_DELAYS = 2 / np.e
MICROSECONDS = 60 * 1_000_000


class LinkTime(Attack):
    """Adds what kept times tell to `link-repeat`: when each record came in, and who searched on.

    The author's token came in with the record, at a time that the release shows; it left later, never
    earlier. So the window begins there instead of reaching to both sides. Then records that follow each
    other within `gap` minutes and share a word that is rare enough for the time between them are taken
    for one session, across all categories, and vote for an author they have in common.

    Limits: needs times as they were. Coarse times are noticed by how little they say about the order of
    release; then only the sessions are used. Against `cohort` sessions say which records belong together,
    and nothing about which member of the cohort it was: right once in k.
    """

    name = "link-time"
    game = "attribution"
    columns = frozenset({"user", "query", "time"})

    @dataclass(frozen=True, kw_only=True)
    class Settings(LinkRepeat.Settings):
        """Settings of `link-time`."""

        gap: float = setting(
            30.0, at_least=0.0, help="minutes after which a search is not of the same session"
        )
        chance: float = setting(
            0.03, at_least=0.0, help="records with the same word expected by chance in between"
        )

    def guess(self, view: AttackerView) -> Attribution:
        """Guess an author for each row that has a label."""
        chosen: Any = self.settings
        k, level = view.assumed_k(chosen.k), view.assumed_level(chosen.level)
        seen = read_stream(view.release, level)
        if seen.time is None:
            raise NotApplicable("the release has no time")
        grouped = by_string(seen)
        details: dict[str, Any] = {"attacker_k": k, "attacker_level": level}
        session, linked = find_sessions(seen, chosen.gap * MICROSECONDS, chosen.chance)
        details["records_in_sessions"] = linked
        if not view.never_author:
            sets = cohorts(seen, grouped, k)
            return Attribution(seen.spell(commonest(seen, session, sets)), details)
        around, details["records_held"] = entry_window(seen, k, reach_of(chosen.reach, k))
        who, belief = run_em(seen, grouped, around, chosen.spread, chosen.rounds, CANDIDATES)

        def work(groups: IntArray) -> None:
            workspace = author_em.workspace(seen.people, SESSION, CANDIDATES)
            shared = np.float32(MET_BY_CHANCE), np.float32(1), ROUNDS
            sessions.settle_lists(workspace, session[0], groups, who, belief, *shared)

        in_parts(work, session[1])
        return Attribution(seen.spell(who[:, 0]), details)


def find_sessions(seen: ReleaseStream, gap: float, chance: float) -> tuple[tuple[IntArray, IntArray], int]:
    """Group places by session; say how many are in one with others."""
    assert seen.time is not None
    words = words_of(seen.strings.texts())
    by_time = np.argsort(seen.time, kind="stable")[np.count_nonzero(seen.time == NO_TIME) :]
    span = max(1, int(np.ptp(seen.time[by_time]))) if by_time.size else 1
    frequency = words.counts(seen.string) / span
    of = sessions.chain(
        by_time, seen.time, seen.string, words.begins, words.word, frequency, gap, chance, SESSION
    )
    members, groups = group(of, of.size)
    return (members, groups), int(of.size - np.count_nonzero(np.diff(groups) == 1))


def entry_window(seen: ReleaseStream, k: int, reach: int) -> tuple[Window, float | None]:
    """Begin each window where its record came in; where times are too coarse for that, look to both sides."""
    assert seen.time is not None
    order = np.lexsort((seen.time, seen.category))
    arrival = np.empty_like(order)
    arrival[order] = np.arange(order.size)
    held = float(np.abs(arrival - np.arange(order.size)).mean()) / SPREAD_OF_DELAYS if order.size else 0.0
    if not 0.7 * k <= held <= 10 * k or np.any(seen.time == NO_TIME):
        return window(seen, k, reach), None
    first, last = seen.starts[seen.category], seen.starts[seen.category + 1] - 1
    centre = np.clip(np.rint(sessions.entries(arrival) - np.sqrt(held) / 2), first, last)
    before, after = windows.falling(1.0, 5), windows.falling(held, 2 * reach)
    return (centre.astype(np.int32), before, after), round(held, 1)
