"""Paper 003's measures as `querycloak measure` runs them: for each person, then put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.measures.exposure import information
from querycloak.measures.on_logs import LogMeasure, NotApplicable, Pair
from querycloak.measures.people import Histories, drawn

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

#: Paper 003 calls a person exposed when more than this percentage of the history is.
EXPOSED: Final = 60.0
#: Sums that should be 100 may be so much above.
ROUNDING: Final = 1e-9
#: The deepest level that is looked at; paper 003 stops here too.
DEEPEST: Final = 5
#: Linkage compares histories with everybody's: of more people than this, so many are drawn.
MOST_LINKED: Final = 5000


def _kinds(pair: Pair) -> Iterator[tuple[str, Histories]]:
    """Give histories of queries and, where both logs have them, of categories."""
    yield "queries", Histories.of(pair, "query")
    try:
        yield "categories", Histories.of(pair, "category")
    except NotApplicable:
        return


def exposures(histories: Histories) -> FloatArray:
    """Give each person's `profile_exposure`."""
    people = histories.people
    person, asked, shown = histories.common()
    all_asked, all_shown = (side.totals(people)[person] for side in (histories.before, histories.after))
    told = information(asked, shown, all_asked.astype(float), all_shown.astype(float))
    return _percent(_sums(person, told, people), histories.before.entropies(people))


def loss_ratios(histories: Histories) -> FloatArray:
    """Give each person's `information_loss_ratio`."""
    before, after = (side.entropies(histories.people) for side in (histories.before, histories.after))
    return _percent(np.abs(before - after), before)


def _sums(person: IntArray, values: FloatArray, people: int) -> FloatArray:
    return np.bincount(person, values, minlength=people).astype(np.float64)


def _percent(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.where(whole > 0, 100.0 * part / np.where(whole > 0, whole, 1.0), np.nan)


def _by_kind(
    pair: Pair, each: Callable[[Histories], FloatArray], figures: Callable[[FloatArray], dict[str, Any]]
) -> dict[str, Any]:
    """Measure people by queries and by categories; those of whom it is not defined do not count."""
    found: dict[str, Any] = {}
    for kind, histories in _kinds(pair):
        values = each(histories)
        known = values[~np.isnan(values)]
        if known.size:
            named = figures(known) | {"people": int(known.size)}
            found |= {f"{kind}_{name}": figure for name, figure in named.items()}
    if not found:
        raise NotApplicable("nobody has more than one distinct query in the original")
    return found


class ProfileExposure(LogMeasure):
    """How much of people's histories the releases under their labels expose: PEL of paper 003.

    What is above 100 for a person counts as 100; `over_100` is the share of people of whom that is so.
    """

    name = "profile_exposure"
    help = (
        "percent of people's queries and categories exposed: mean and median (each person's clipped "
        "at 100, `over_100` says how many), and the share of people above 60 percent"
    )

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Put together the people with two distinct queries or more."""
        return _by_kind(pair, exposures, _exposure_figures)


def _exposure_figures(raw: FloatArray) -> dict[str, Any]:
    shown = np.minimum(raw, 100.0)
    return {
        "mean": float(shown.mean()),
        "median": float(np.median(shown)),
        "above_60": float((raw > EXPOSED).mean()),
        "over_100": float((raw > 100.0 + ROUNDING).mean()),
    }


class InformationLossRatio(LogMeasure):
    """By how much the variety of people's histories has changed: ILR of paper 003."""

    name = "information_loss_ratio"
    help = "percent by which the entropy of people's queries and categories has changed: mean and median"

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Put together the people with two distinct queries or more."""
        return _by_kind(
            pair, loss_ratios, lambda lost: {"mean": float(lost.mean()), "median": float(np.median(lost))}
        )


class SemanticRemain(LogMeasure):
    """The share of people's categories that is still there, level by level: SRP of paper 003.

    Categories that do not reach a level do not count there. Levels go down to 5, as in the paper.
    """

    name = "semantic_remain"
    help = "mean share of people's categories that are still there, for each level from 1 to 5"

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Average over the people who have categories at the level."""
        histories = Histories.of(pair, "category")
        found: dict[str, Any] = {}
        for level in range(1, DEEPEST + 1):
            cut = _cut(histories, level)
            reached = cut.before.totals(cut.people)
            if not reached.any():
                break
            person, theirs, ours = cut.common()
            kept = _sums(person, np.minimum(theirs, ours), cut.people)
            found[f"level_{level}"] = float((kept[reached > 0] / reached[reached > 0]).mean())
        return found


def _cut(histories: Histories, level: int) -> Histories:
    """Cut categories at a level; those that do not reach it are left out."""
    names = pl.col("path").str.split("/")
    cut = pl.when(names.list.len() >= level).then(names.list.head(level).list.join("/"))
    table = histories.things.rename("path").to_frame().select(path=cut)
    numbers = table.drop_nulls().unique(maintain_order=True).with_row_index("code")
    code = table.join(numbers, on="path", how="left", maintain_order="left")["code"].cast(pl.Int64)
    return histories.translated(code.fill_null(-1).to_numpy(), numbers["path"])


class RecordLinkage(LogMeasure):
    """How many released histories lead back to the right person: RL of paper 003.

    Compares each released history with everybody's original one. Of more than 5,000 people, 5,000 are
    drawn, always the same ones; `people` says how many were linked, or could have been.
    """

    name = "record_linkage"
    help = "percent of released histories that lead back to their people, by queries and by categories"

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Link by queries and by categories."""
        found: dict[str, Any] = {}
        for kind, histories in _kinds(pair):
            asked = np.unique(histories.before.person)
            targets = drawn(asked, MOST_LINKED)
            share = linked(histories, targets)
            found |= {kind: float(100.0 * share.mean()), f"{kind}_people": int(targets.size)}
        return found


def linked(histories: Histories, targets: IntArray) -> FloatArray:
    """Give for each target the chance that the released history leads to her, ties shared."""
    people, before, after = histories.people, histories.before, histories.after
    order = np.lexsort((before.person, before.thing))
    who, many = before.person[order], before.count[order]
    holders = np.searchsorted(before.thing[order], np.arange(histories.things.len() + 1))
    own = after.starts(people)
    found = np.zeros(targets.size)
    for place, target in enumerate(targets.tolist()):
        common = np.zeros(people, np.int64)
        for i in range(own[target], own[target + 1]):
            span = slice(holders[after.thing[i]], holders[after.thing[i] + 1])
            common[who[span]] += np.minimum(many[span], after.count[i])  # nobody is in a span twice
        best = common.max()
        if best and common[target] == best:
            found[place] = 1.0 / np.count_nonzero(common == best)
    return found
