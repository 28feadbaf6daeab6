"""Scores guesses against the truth: the only place where both are seen together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak.attacks import intervals
from querycloak.attacks.finding import NotApplicable, Unit, reaches_down_to
from querycloak.attacks.protocol import Attribution, Identification, Linkage, Meanings
from querycloak.dictionary import distinct
from querycloak.errors import DataError, UsageError

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

#: How often one author asked a string in the release: name, from, to.
_REPEATS = (("1", 1, 1), ("2-4", 2, 4), ("5+", 5, np.iinfo(np.int64).max))


@dataclass(frozen=True)
class Score:
    """What scoring found, before the runner adds the attack's name, its bound and its time."""

    unit: Unit
    share: intervals.Share
    median_user: float | None = None
    worst_decile_user: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    #: What fakes left to people, by the names that a finding has for it.
    privacy: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """The truth about each released row, in the order of release.

    `user` is who wrote a row, `label` what a right guess says; `author` and `string` are codes of the user
    and of the query (-1 where there is none), by which rows belong together; `repeats` counts how often
    the author asked the row's query in this release. `shown` is the label that a row carries, `behind` the
    user for whom that label stands, where the truth says so, and `users` are those of the original. `fake`
    says which rows nobody asked, where fakes were added.
    """

    released_row: IntArray
    user: pl.Series
    label: pl.Series
    author: IntArray
    string: IntArray | None
    repeats: IntArray | None
    shown: pl.Series | None = None
    behind: pl.Series | None = None
    users: pl.Series | None = None
    fake: npt.NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, release: pl.DataFrame, truth: pl.DataFrame, users: pl.Series | None = None) -> Answers:
        """Line the truth up with the rows of a release."""
        truth = aligned(release, truth)
        label = truth["original_label" if "original_label" in truth.columns else "original_user"]
        author = _codes(truth["original_user"]).copy()
        if "made_up" in truth.columns:
            author[truth["made_up"].to_numpy()] = -1  # nobody wrote what a method made up
        fake = truth["fake"].to_numpy() if "fake" in truth.columns else None
        if fake is not None:
            author[fake] = -1
        who = (release["released_row"].cast(pl.Int64).to_numpy(), truth["original_user"], label, author)
        labels = (
            release.get_column("user", default=None),
            truth.get_column("label_user", default=None),
            users,
            fake,
        )
        if "query" not in release.columns or release["query"].null_count() == release.height:
            return cls(*who, None, None, *labels)
        string = _codes(release["query"])
        both = pl.DataFrame({"both": author * (int(string.max(initial=0)) + 1) + string})
        repeats = both.select(pl.len().over("both")).to_series().cast(pl.Int64).to_numpy()
        return cls(*who, string, repeats, *labels)

    def known(self) -> npt.NDArray[np.bool_]:
        """Say which rows have an author at all: fakes and made-up rows have none."""
        return self.author >= 0

    def has_only_parts(self) -> bool:
        """Say whether no label is anybody's own: each stands for a part of somebody's history."""
        if self.shown is None or self.behind is not None or self.users is None:
            return False
        own = pl.concat([self.label.rename("own"), self.users.rename("own")]).drop_nulls().unique()
        return self.shown.null_count() < self.shown.len() and not self.shown.is_in(own.implode()).any()

    def labels(self) -> pl.DataFrame:
        """Give every label that is right for a person, as `user, label`: her own, and those of her parts."""
        own = pl.DataFrame({"user": self.user, "label": self.label}).drop_nulls().unique("user", keep="first")
        if self.shown is None:
            return own
        return pl.concat([own, self._parts(self.shown, own)]).unique()

    def _parts(self, shown: pl.Series, own: pl.DataFrame) -> pl.DataFrame:
        """Find labels that are nobody's own, and under which only one person's rows were released.

        A method may split a history into parts with labels of their own: all of them are right for her. Where
        labels are swapped, each is somebody's own, and who wrote the rows under it does not make it hers.
        """
        rows = pl.DataFrame({"label": shown, "user": self.user}).with_columns(
            behind=pl.lit(None, pl.String) if self.behind is None else self.behind
        )
        # Some whose labels are shown wrote none of the rows. Kept labels are their ids, fresh ones say it.
        named = (
            [own["label"]] if self.users is None or self.behind is not None else [own["label"], self.users]
        )
        taken = pl.DataFrame({"label": pl.concat([names.rename("label") for names in named])})
        silent = pl.col("behind").is_not_null() & ~pl.col("behind").is_in(own["user"].implode())
        parts = rows.drop_nulls("label").join(taken, on="label", how="anti").with_columns(silent=silent)
        found = parts.group_by("label").agg(
            pl.col("user").first(), hers=(pl.col("user").n_unique() == 1) & ~pl.col("silent").any()
        )
        return found.filter("hers").select("user", "label").drop_nulls()

    def clusters(self, rows: Any) -> list[IntArray]:
        """Give the ways in which these rows belong together."""
        found = [self.author[rows]]
        if self.string is not None:
            found.append(self.string[rows] + 1)  # rows without a query are one cluster
        return found


def aligned(release: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Order the truth by the rows of a release; a row that it does not know is an error."""
    rows, truth = release["released_row"].cast(pl.Int64), truth.cast({"released_row": pl.Int64})
    if truth.height == rows.len() and bool((truth["released_row"] == rows).all()):
        return truth
    found = pl.DataFrame({"released_row": rows}).join(
        truth, on="released_row", how="left", maintain_order="left"
    )
    if found.height != rows.len() or found["released_after"].null_count():
        raise DataError(
            "the truth does not belong to this release: its rows are others",
            hint="give the file that `protect --truth` wrote with this very release",
        )
    return found


def _codes(texts: pl.Series) -> IntArray:
    """Number texts from 0, nothing as -1, by a 64-bit hash: two that share a number by chance do no harm."""
    numbers = texts.hash(0).rank("dense").cast(pl.Int64) - 1
    return numbers.set(texts.is_null(), -1).to_numpy()


def attribution(guesses: Attribution, answers: Answers, bound: float | None = None) -> Score:
    """Score one guess a row: the share of rows whose author's label was named; no guess is a miss."""
    if len(guesses.guess) != len(answers.label):
        raise UsageError(f"the attack made {len(guesses.guess):,} guesses for {len(answers.label):,} rows")
    right = (guesses.guess.cast(pl.String) == answers.label.cast(pl.String)).fill_null(False).to_numpy()
    rows = np.flatnonzero(answers.known())
    hits = right[rows].astype(np.float64)
    found = _share(hits, answers.clusters(rows))
    if not right.any() and answers.has_only_parts():
        raise NotApplicable("each label is of a part of somebody's history, and none is its author's own")
    details = {"guessed": 1.0 - guesses.guess.null_count() / len(guesses.guess)} | guesses.details
    if answers.repeats is not None:
        details |= _by_repeats(hits, rows, answers, bound)
    return Score("record", found, *_over_users(hits, answers.author[rows]), details)


def _share(hits: FloatArray, clusters: list[IntArray]) -> intervals.Share:
    found = intervals.share(hits, clusters)
    if found is None:
        raise NotApplicable("there is nothing to score: no released row has an author")
    return found


def _by_repeats(hits: FloatArray, rows: IntArray, answers: Answers, bound: float | None) -> dict[str, Any]:
    """Split success by how often a row's author asked its query: repeated strings tell most."""
    assert answers.repeats is not None
    often = answers.repeats[rows]
    parts: dict[str, Any] = {}
    for name, least, most in _REPEATS:
        chosen = np.flatnonzero((often >= least) & (often <= most))
        part = intervals.share(hits[chosen], answers.clusters(rows[chosen]))
        parts[name] = _as_dict(part, bound) if part else None
    return {"by_repeats": parts, "repeated": parts["5+"]}


def _as_dict(part: intervals.Share, bound: float | None) -> dict[str, Any]:
    values = asdict(part)
    return {"success": values.pop("value")} | values | {"holds": reaches_down_to(bound, part.low)}


def _over_users(hits: FloatArray, author: IntArray) -> tuple[float, float]:
    """Give the median author's success and that of the author at the worst tenth."""
    sizes = np.bincount(author)
    rates = np.bincount(author, weights=hits)[sizes > 0] / sizes[sizes > 0]
    median, worst = np.quantile(rates, [0.5, 0.9])
    return float(median), float(worst)


def linkage(guesses: Linkage, answers: Answers, seed: int = 0) -> Score:
    """Score pairs: how often "one author or two?" is answered right on as many of one as of the other.

    The attacker calls the better-scored half of the balanced pairs one author's; 0.5 is chance.
    """
    first, second = (places(rows, answers.released_row) for rows in (guesses.first, guesses.second))
    scored = answers.known()[first] & answers.known()[second] & ~np.isnan(guesses.score)
    first, second, score = first[scored], second[scored], guesses.score[scored]
    same = answers.author[first] == answers.author[second]
    chosen = _balanced(same, seed)
    hits = _decided(score[chosen], same[chosen])
    clusters = [answers.author[first[chosen]], answers.author[second[chosen]]]
    details = guesses.details | {
        "chance": 0.5,
        "area_under_curve": area_under_curve(score, same),
        "precision_at_true_pairs": precision_at(score, same, int(same.sum())),
        "pairs": int(same.size),
        "true_pairs": int(same.sum()),
    }
    return Score("pair", _share(hits, clusters), *_over_users(hits, clusters[0]), details)


def places(rows: IntArray, released_row: IntArray) -> IntArray:
    """Find where released rows stand in the release; they come in increasing order."""
    places = np.searchsorted(released_row, rows)
    if rows.size and (places.max() >= released_row.size or np.any(released_row[places] != rows)):
        raise UsageError("the attack named rows that the release does not have")
    return places.astype(np.int64)


def _balanced(same: npt.NDArray[np.bool_], seed: int) -> IntArray:
    """Draw equally many pairs of both kinds."""
    kinds = np.flatnonzero(same), np.flatnonzero(~same)
    size = min(kind.size for kind in kinds)
    if not size:
        raise NotApplicable("there are not both pairs of one author and pairs of two among those scored")
    draws = np.random.default_rng(seed)
    return np.sort(np.concatenate([draws.choice(kind, size, replace=False) for kind in kinds]))


def _decided(score: FloatArray, same: npt.NDArray[np.bool_]) -> FloatArray:
    """Call the upper half one author's; pairs that tie at the cut are right as often as a coin would be."""
    half = score.size // 2
    cut = np.partition(score, half)[half]
    above, ties = score > cut, score == cut
    called = np.where(ties, (half - above.sum()) / ties.sum(), above.astype(np.float64))
    hits: FloatArray = np.where(same, called, 1.0 - called)
    return hits


def area_under_curve(score: FloatArray, same: npt.NDArray[np.bool_]) -> float:
    """Give the chance that a pair of one author scores above a pair of two; ties count half."""
    order = np.sort(score[~same])
    true = score[same]
    if not order.size or not true.size:
        return float("nan")
    below, upto = np.searchsorted(order, true, "left"), np.searchsorted(order, true, "right")
    return float((below + upto).mean() / 2 / order.size)


def precision_at(score: FloatArray, same: npt.NDArray[np.bool_], count: int) -> float:
    """Give the share of one author's pairs among the best `count`; ties at the cut count by their mean."""
    if not count:
        return float("nan")
    cut = np.partition(score, score.size - count)[score.size - count]
    above, ties = score > cut, score == cut
    room = count - int(above.sum())
    return float((same[above].sum() + room * same[ties].mean()) / count)


def meanings(guesses: Meanings, answers: Answers, asked: pl.Series) -> Score:
    """Score one guess a phrase: the share whose concept was there before.

    Rows whose query was not read as so many phrases when it came in tell nothing, and are left out.
    """
    texts, number = distinct(asked)
    concept, start = guesses.meaning(texts)
    size = np.diff(start)[number]
    shown = np.zeros(len(asked), np.int64)
    np.maximum.at(shown, guesses.row, guesses.turn + 1)
    kept = answers.known()[guesses.row] & (size[guesses.row] == shown[guesses.row])
    row, turn = guesses.row[kept], guesses.turn[kept]
    right = concept[start[number[row]] + turn] == guesses.guess[kept]
    hits = right.astype(np.float64)
    found = _share(hits, answers.clusters(row))
    details = guesses.details | {"phrases": int(guesses.row.size), "left_out": int((~kept).sum())}
    return Score("concept", found, *_over_users(hits, answers.author[row]), details)


def identification(guesses: Identification, answers: Answers, people: Mapping[str, str]) -> Score:
    """Score one guess a target: a label by which she goes, a row of hers, or a list of either.

    `people` leads from the attack's names of targets to users of the original. A list counts by the
    share of it that is hers: of t labels, one of them right, each would be named once in t times. No
    guess is a miss.
    """
    table = pl.DataFrame({"target": guesses.target.cast(pl.String), "guess": guesses.guess})
    table = table.with_columns(user=pl.col("target").replace_strict(people, default=None))
    if table["user"].null_count():
        raise UsageError("the attack named targets that it was not given")
    kind = _found_labels if table.schema["guess"] in (pl.String, pl.List(pl.String)) else _found_rows
    hits = kind(table.with_row_index("place"), answers)
    details = guesses.details | {
        "targets": len(hits),
        "guessed": 1.0 - table["guess"].null_count() / len(hits),
    }
    if guesses.candidates is not None and guesses.candidates.size:
        sizes = guesses.candidates
        details["chance"] = float(np.where(sizes > 0, 1.0 / np.maximum(sizes, 1), 0.0).mean())
    share = _share(hits, [_codes(table["user"])])
    return Score("user", share, *_over_users(hits, _codes(table["user"])), details)


def _found_labels(table: pl.DataFrame, answers: Answers) -> FloatArray:
    """Compare guessed labels with those that the targets go by; several guesses count by their share."""
    labels = table.explode("guess") if isinstance(table.schema["guess"], pl.List) else table
    goes_by = answers.labels().select("user", guess="label", right=pl.lit(1.0))
    found = labels.join(goes_by, on=["user", "guess"], how="left")
    shares = found.group_by("place").agg(pl.col("right").fill_null(0.0).mean())
    return shares.sort("place")["right"].to_numpy()


def _found_rows(table: pl.DataFrame, answers: Answers) -> FloatArray:
    """Look up who wrote the guessed rows; several rows of one target count by their share."""
    rows = table.explode("guess") if isinstance(table.schema["guess"], pl.List) else table
    wrote = pl.DataFrame({"guess": answers.released_row, "wrote": answers.user})
    found = rows.with_columns(pl.col("guess").cast(pl.Int64)).join(wrote, on="guess", how="left")
    right = (pl.col("wrote") == pl.col("user")).fill_null(False).cast(pl.Float64).mean().alias("right")
    return found.group_by("place").agg(right).sort("place")["right"].to_numpy()
