"""Whom an attacker of a release knows: targets by some history, others by their records too, most not.

All of it is drawn anew from the case and the settings whenever somebody asks, and comes out the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.attacks.case import Case, rows_of
from querycloak.attacks.learned.searches import Searches, in_time
from querycloak.attacks.learned.training import PEOPLE

Flags = npt.NDArray[np.bool_]

#: Searches of a target that are known where the settings do not say.
HISTORY: Final = 20
#: Who has fewer rows in the original is not attacked: some must be known, and some be left to find.
_FEWEST_ROWS: Final = 4


@dataclass(frozen=True)
class Circle:
    """The people that an attacker knows something of, each as `user` and a made-up `name`."""

    case: Case
    targets: pl.DataFrame
    others: pl.DataFrame
    history: int
    seed: int

    @classmethod
    def of(cls, case: Case, settings: Any) -> Circle:
        """Draw targets, at most half of all people, and of those left at most half to learn from."""
        sizes = case.original.group_by("user").agg(n=pl.len()).drop_nulls("user").sort("user")
        usable = sizes.filter(pl.col("n") >= _FEWEST_ROWS).select("user")
        order = np.random.default_rng(settings.seed).permutation(usable.height)
        wanted = min(settings.targets, sizes.height // 2)
        left = order[wanted:]
        learned_from = left[: min(-(-left.size // 2), settings.functions * PEOPLE)]
        return cls(
            case,
            _named(usable[order[:wanted]], "target"),
            _named(usable[learned_from], "other"),
            settings.history or HISTORY,
            settings.seed,
        )

    @property
    def people(self) -> Mapping[str, str]:
        """Lead from the made-up names of targets to users."""
        return dict(zip(self.targets["name"], self.targets["user"], strict=True))

    def known(self, people: pl.DataFrame) -> pl.DataFrame:
        """Give the rows of each one's first searches, with `row` and `name`; at least half stay unknown."""
        numbered = self.case.original.with_columns(row=rows_of(self.case.original))
        rows = in_time(numbered.join(people, on="user", how="inner", maintain_order="left"))
        searches = Searches.of(rows)
        heads = rows[searches.first_row].select(
            nth=pl.int_range(pl.len()).over("user"), most=pl.len().over("user") // 2
        )
        early = (heads["nth"] < heads["most"].clip(upper_bound=self.history)).to_numpy()
        return rows.filter(pl.Series(early[searches.of_row], dtype=pl.Boolean))

    def records_of_others(self) -> pl.DataFrame:
        """Give `user`, a made-up name, and `released_row` of what the others wrote after what is known."""
        known = {part["user"][0]: part for part in self.known(self.others).partition_by("user")}
        release = self.case.release.with_columns(_author=self.case.answers.user, _origin=self.case.origins)
        theirs = release.join(self.others.rename({"user": "_author"}), on="_author", how="inner")
        found = [pl.DataFrame(schema={"user": pl.String, "released_row": theirs.schema["released_row"]})]
        for rows in theirs.partition_by("_author", maintain_order=True):
            if (before := known.get(rows["_author"][0])) is not None:
                later = rows.filter(pl.Series(~told_by(before, rows, rows["_origin"]), dtype=pl.Boolean))
                found.append(later.select("released_row", user="name").select("user", "released_row"))
        return pl.concat(found)

    def candidates(self, most: int) -> pl.DataFrame:
        """Give the rows of all searches of targets, and of so many of people not known at all."""
        author = self.case.answers.user
        free = author.is_not_null() & ~author.is_in(self.others["user"].implode())
        rows = self.case.release.with_columns(_author=author).filter(free)
        searches = Searches.of(rows)
        hers = rows["_author"].is_in(self.targets["user"].implode()).to_numpy()[searches.first_row]
        strange = np.flatnonzero(~hers)
        drawn = np.random.default_rng([self.seed, 1]).permutation(strange)[:most]
        chosen = hers.copy()
        chosen[drawn] = True
        return rows.filter(pl.Series(chosen[searches.of_row], dtype=pl.Boolean)).select("released_row")


def told_by(known: pl.DataFrame, released: pl.DataFrame, origin: pl.Series) -> Flags:
    """Mark released rows about which a person's known searches leave nothing to find out, hers or not.

    Those are the searches themselves; of rows that a method made up, those with the very text of one; and all
    until the last of them: he knows whatever she asked until then.
    """
    told = origin.cast(pl.Int64).is_in(known["row"].cast(pl.Int64).implode()).fill_null(value=False)
    told |= origin.is_null() & released["query"].is_in(known["query"].implode()).fill_null(value=False)
    if "time" in known.columns and "time" in released.columns and known["time"].max() is not None:
        told |= (released["time"] <= known["time"].max()).fill_null(value=False)
    return told.to_numpy()


def _named(people: pl.DataFrame, kind: str) -> pl.DataFrame:
    names = pl.Series("name", [f"{kind} {n}" for n in range(people.height)], dtype=pl.String)
    return people.with_columns(names)
