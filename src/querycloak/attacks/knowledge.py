"""The parts of a case that attackers may be said to know: never the truth about whom they attack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl

from querycloak.attacks.acquaintance import Circle
from querycloak.attacks.case import Case
from querycloak.attacks.finding import NotApplicable
from querycloak.attacks.learned.searches import Searches
from querycloak.attacks.link_overlap import in_terms

#: Who has fewer rows in a trace is not worth an attack: there must be pairs to tell apart.
_FEWEST_ROWS: Final = 4


@dataclass(frozen=True)
class Known:
    """What an attacker knows beside the release, and who the people in it are (for scoring only)."""

    frame: pl.DataFrame
    people: Mapping[str, str] = field(default_factory=dict)


def _volumes(case: Case, settings: Any) -> Known:
    """Count each user's searches, under the labels by which they go in the release."""
    counts = case.original.group_by("user", maintain_order=True).agg(count=pl.len().cast(pl.Int64))
    goes_by = pl.DataFrame({"user": case.answers.user, "label": case.answers.label})
    if not goes_by["user"].equals(goes_by["label"], check_names=False):
        labels = goes_by.unique("user", keep="first")
        counts = counts.join(labels, on="user", maintain_order="left")
        counts = counts.select(pl.col("label").alias("user"), "count")
    return Known(counts.sort("user"))


def _samples(case: Case, settings: Any) -> Known:
    """Draw some people and some searches of each. Their names are made up: a user's id would tell all."""
    if getattr(settings, "known", "queries") == "terms":
        return _term_samples(case, settings)
    draws = np.random.default_rng(settings.seed)
    people, queries = settings.targets, settings.queries
    sizes = case.original.group_by("user").agg(n=pl.len()).filter(pl.col("n") >= queries).sort("user")
    chosen = draws.permutation(sizes.height)[:people]
    named = sizes[chosen].select(
        "user", target=pl.Series([f"target {n}" for n in range(chosen.size)], dtype=pl.String)
    )
    theirs = case.original.join(named, on="user", how="inner", maintain_order="left")
    shuffled = theirs.with_columns(draw=pl.Series(draws.random(theirs.height))).sort("target", "draw")
    sample = shuffled.group_by("target", maintain_order=True).head(queries)
    people_of = dict(zip(named["target"], named["user"], strict=True))
    return Known(sample.select(pl.col("target").alias("user"), "query"), people_of)


def _term_samples(case: Case, settings: Any) -> Known:
    """Draw some people who have enough different terms, and some different terms of each."""
    draws = np.random.default_rng(settings.seed)
    people = case.original.select("user").drop_nulls().unique().sort("user")
    people = people[draws.permutation(people.height)]
    found = [pl.DataFrame(schema={"user": pl.String, "term": pl.List(pl.String)})]
    start, step = 0, settings.targets
    # In growing steps: the terms of a whole large log would be many, and are seldom needed.
    while start < people.height and sum(part.height for part in found) < settings.targets:
        found.append(_some_terms(case.original, people[start : start + step], settings.queries, draws))
        start, step = start + step, 2 * step
    known = pl.concat(found)[: settings.targets]
    names = pl.Series("target", [f"target {n}" for n in range(known.height)], dtype=pl.String)
    people_of = dict(zip(names, known["user"], strict=True))
    return Known(known.select(names.alias("user"), "term").explode("term"), people_of)


def _some_terms(
    original: pl.DataFrame, people: pl.DataFrame, number: int, draws: np.random.Generator
) -> pl.DataFrame:
    """Draw so many terms of each of these people, as `user, term` with lists; who has fewer is left out."""
    rows = original.join(people, on="user", how="semi").select("user", thing="query").drop_nulls().unique()
    terms = in_terms(rows).unique().sort("user", "thing")
    shuffled = terms.with_columns(draw=pl.Series(draws.random(terms.height))).sort("user", "draw")
    each = shuffled.group_by("user").agg(term=pl.col("thing").head(number), n=pl.len())
    enough = each.filter(pl.col("n") >= number).select("user", "term")
    return people.join(enough, on="user", how="inner", maintain_order="left")


def _histories(case: Case, settings: Any) -> Known:
    """Show whole histories: who searched for what."""
    shown = [name for name in ("user", "query", "category") if name in case.original.columns]
    users = case.original["user"].unique().to_list()
    return Known(case.original.select(shown), dict(zip(users, users, strict=True)))


def _frequencies(case: Case, settings: Any) -> Known:
    """Count how often each query was asked, by whomever."""
    counts = case.original.select("query").drop_nulls().group_by("query").agg(count=pl.len().cast(pl.Int64))
    return Known(counts.sort("query"))


def _drawn(case: Case, settings: Any) -> pl.DataFrame:
    """Draw who is attacked, by what the release shows; at least half of the people are left to learn from."""
    sizes = case.release.group_by("user").agg(n=pl.len()).drop_nulls("user").sort("user")
    usable = sizes.filter(pl.col("n") >= _FEWEST_ROWS)
    order = np.random.default_rng(settings.seed).permutation(usable.height)
    return usable[order[: min(settings.targets, sizes.height // 2)]].select("user")


def _targets(case: Case, settings: Any) -> Known:
    """Name the people under attack."""
    drawn = _drawn(case, settings)
    return Known(drawn, {user: user for user in drawn["user"]})


def _labelled(case: Case, settings: Any) -> Known:
    """Show the rows of all who are not under attack, and which of them are fake."""
    if case.answers.fake is None:
        raise NotApplicable("the truth does not say which searches are fake")
    rows = case.release.with_columns(fake=pl.Series(case.answers.fake))
    return Known(rows.join(_drawn(case, settings), on="user", how="anti", maintain_order="left"))


def _told(case: Case, settings: Any) -> Known:
    """Tell the first `history` real searches of each person under attack, as rows of the release."""
    fake = pl.Series(np.zeros(case.release.height, bool) if case.answers.fake is None else case.answers.fake)
    hers = case.release.filter(~fake).join(_drawn(case, settings), on="user", how="semi")
    hers = hers.sort("time", maintain_order=True) if "time" in hers.columns else hers
    first = hers[Searches.of(hers).first_row]
    few = first.filter(pl.int_range(pl.len()).over("user") < settings.history)
    return Known(few.select("user", "released_row"))


def _remembered(case: Case, settings: Any) -> Known:
    """Show the first searches of each target, as they were before any method; their names are made up."""
    circle = Circle.of(case, settings)
    return Known(circle.known(circle.targets).drop("row", "user").rename({"name": "user"}), circle.people)


def _acquainted(case: Case, settings: Any) -> Known:
    """Show the first searches of some other people, whose records the attacker has found before."""
    circle = Circle.of(case, settings)
    return Known(circle.known(circle.others).drop("row", "user").rename({"name": "user"}))


def _theirs(case: Case, settings: Any) -> Known:
    """Say which released records the acquainted wrote after those searches."""
    return Known(Circle.of(case, settings).records_of_others())


def _candidates(case: Case, settings: Any) -> Known:
    """Draw the records that may be the targets': all of theirs, unmarked, among those of further people."""
    return Known(Circle.of(case, settings).candidates(settings.candidates))


#: What an attack may ask for in `knows`; the truth is not among it.
#: volumes    `user` (as labelled in the release), `count`: all searches of each in the original
#: samples    `user` (a made-up name of a target), `query`; needs the settings `targets`, `queries`, `seed`;
#:            with a setting `known` that is `terms`: `user`, `term`, of which `queries` different ones
#: histories  `user`, `query`, `category` of the original
#: frequencies  `query`, `count` in the original, nobody's in particular
#: targets    `user`: who is attacked in a trace with fakes; needs the settings `targets`, `seed`
#: labelled   rows of the trace with `fake`, of everybody but the targets: the attacker ran or watched their
#:            obfuscation; needs the settings `targets`, `seed`
#: told       `user`, `released_row`: the first `history` real searches of each target; none if that is 0
#: In a release without fakes; all four need the settings `targets`, `functions`, `history`, `seed`:
#: remembered  `user` (a made-up name of a target) and the other columns of the original: her first searches
#: acquainted  the same of some other people
#: theirs     `user` (a made-up name of one of those people), `released_row`: what else of hers was released
#: candidates  `released_row`: records of targets and of strangers; also needs the setting `candidates`
KNOWLEDGE: dict[str, Callable[[Case, Any], Known]] = {
    "volumes": _volumes,
    "samples": _samples,
    "histories": _histories,
    "frequencies": _frequencies,
    "targets": _targets,
    "labelled": _labelled,
    "told": _told,
    "remembered": _remembered,
    "acquainted": _acquainted,
    "theirs": _theirs,
    "candidates": _candidates,
}
