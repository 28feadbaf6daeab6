"""`usr` and `hybrid` (paper 004, sections 2.2 and 5.2): what other people of the log asked."""

from __future__ import annotations

import numpy as np

from querycloak.clients.obfuscation.draws import Draws
from querycloak.clients.obfuscation.fakes import Fakes, FromPeople
from querycloak.clients.obfuscation.searches import Searches
from querycloak.clients.obfuscation.settings import Settings
from querycloak.clients.obfuscation.timing import by_machine
from querycloak.errors import DataError
from querycloak.log import MISSING, IntArray


class Usr(FromPeople):
    """All that another person asked, when she asked it, with her clicks."""

    def __init__(self, searches: Searches, settings: Settings, key: bytes) -> None:
        super().__init__(searches, settings, key)
        refuse_alone(searches, settings.method)

    def fakes(self, person: int, draws: Draws) -> Fakes:
        """Take over another person's searches as they are."""
        chosen = self._others(person, draws)
        return self._as_asked(chosen, self.searches.time[chosen])

    def _others(self, person: int, draws: Draws) -> IntArray:
        """Choose one other person, or as many as it takes; of the last one, only what is still missing."""
        begins, lenders = self.searches.begins, self.searches.lenders
        alone = {person} & set(lenders)
        if self.settings.fakes is None and self.settings.method == "usr":
            other = lenders.start + draws.pick(len(lenders) - len(alone))
            return self.searches.of_person(other + (bool(alone) and other >= person))
        missing = draws.whole(self.settings.per_real * float(begins[person + 1] - begins[person]))
        taken, seen = [np.zeros(0, np.int64)], alone
        while missing and len(seen) < len(lenders):
            other = lenders.start + draws.pick(len(lenders))
            if other in seen:
                continue
            seen.add(other)
            hers = self.searches.of_person(other)
            taken.append(hers if hers.size <= missing else np.sort(hers[draws.order(hers.size)[:missing]]))
            missing -= taken[-1].size
        return np.concatenate(taken)


class Hybrid(Usr):
    """Another person's queries, sent and clicked by a machine, so that nothing of her rhythm is left."""

    def __init__(self, searches: Searches, settings: Settings, key: bytes) -> None:
        super().__init__(searches, settings, key)
        self._begins, self._clicks = clicks_by_query(searches)
        self._many = np.diff(self._begins)
        lent = searches.query[searches.begins[searches.lenders.start] :]
        known = int((self._many[lent] > 0).sum())
        self._chance = min(1.0, searches.clicked_share * lent.size / max(known, 1))

    def fakes(self, person: int, draws: Draws) -> Fakes:
        """Shuffle them, time them by machine, and click on what anybody clicked for that query."""
        chosen = self._others(person, draws)
        chosen = chosen[draws.order(chosen.size)]
        real = self.searches.time[self.searches.of_person(person)]
        timing = self.settings.timing or "random"
        time = by_machine(timing, chosen.size, real, self.searches.span, draws)
        return Fakes(np.arange(chosen.size), time, self.searches.first[chosen], self._clicked(chosen, draws))

    def _clicked(self, chosen: IntArray, draws: Draws) -> IntArray:
        """Choose at most one click for each, all known ones alike."""
        query = self.searches.query[chosen]
        begins, many = self._begins[query], self._many[query]
        place = begins + draws.below(many, chosen.size)
        clicks = (many > 0) & (draws.uniform(chosen.size) < self._chance)
        return np.where(clicks, self._clicks[np.where(clicks, place, 0)], MISSING) if clicks.any() else (
            np.full(chosen.size, MISSING)
        )  # fmt: skip


def clicks_by_query(searches: Searches) -> tuple[IntArray, IntArray]:
    """Give, for each distinct query, where the lenders' rows with a click begin in a list of such rows."""
    start = searches.begins[searches.lenders.start]
    clicked = start + np.flatnonzero(searches.clicks[start:] > 0)
    rows, which = searches.rows_of(clicked)
    query = searches.query[clicked][which]
    name = "url" if "url" in searches.frame.columns else "rank"
    good = searches.frame[name].is_not_null().to_numpy()[rows] if rows.size else np.zeros(0, bool)
    rows, query = rows[good], query[good]
    by_query = np.argsort(query, kind="stable")
    many = np.bincount(query, minlength=len(searches.texts))
    return np.concatenate([[0], np.cumsum(many)]), rows[by_query]


def refuse_alone(searches: Searches, method: str) -> None:
    """Say that a log of one person has nobody to borrow from."""
    if searches.people == 1 and not searches.lent:
        raise DataError(
            f"`{method}` borrows from other people, and the log has one person only",
            hint="name another log with `--pool`, or use `tmn`",
        )
