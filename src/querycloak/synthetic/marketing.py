"""Synthetic advertising figures per search term, related to each other as in paper 001, Table 3."""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np
import polars as pl

from querycloak.errors import DataError
from querycloak.log import Log
from querycloak.synthetic.rng import FloatArray, stream
from querycloak.text.normalise import words

#: Share of terms without an estimate of clicks.
NO_CLICKS: Final = 0.45
#: The sign of Pearson's correlation of each two figures in the paper's Table 3.
_FIGURES: Final = ("frequency", "users", "bid", "clicks", "impressions", "revenue")
SIGNS: Final = dict.fromkeys(combinations(_FIGURES, 2), 1) | {("bid", "clicks"): -1}
#: Half of the paper's correlations are next to nothing, so a draw may miss a sign: draw again.
MOST_DRAWS: Final = 400
#: So few terms have no correlations to speak of, and are drawn once.
FEW_TERMS: Final = 30
#: A correlation this close to zero may change its sign when somebody counts terms a little differently.
MARGIN: Final = 0.002


def marketing(log: Log | pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    """Return synthetic bid, impressions and clicks for each term of a log; 45 % of terms have no clicks.

    Bids are in dollars, impressions and clicks per month. The figures are drawn again until each pair
    of them correlates with the sign of the paper's Table 3, or 400 times (a log of a
    few users needs about ten, a large one one or two).

    >>> import polars as pl
    >>> figures = marketing(pl.DataFrame({"user": ["1", "2"], "query": ["red boat", "boat"]}))
    >>> figures.columns, figures.height
    (['term', 'bid', 'impressions', 'clicks'], 2)
    """
    counted = count_terms(log)
    for attempt in range(MOST_DRAWS if counted.height >= FEW_TERMS else 1):
        figures = _draw(counted, stream(seed, attempt, "marketing"))
        if signs_agree(figures):
            break
    return figures.select("term", "bid", "impressions", "clicks")


def count_terms(log: Log | pl.DataFrame) -> pl.DataFrame:
    """Count how often, and by how many users, each term of a log was used; sorted by term."""
    frame = log.frame if isinstance(log, Log) else log
    if missing := [name for name in ("user", "query") if name not in frame.columns]:
        raise DataError(f"marketing figures need the column `{missing[0]}`")
    asked = frame.lazy().select("user", "query").group_by("user", "query").len("times")
    terms = asked.with_columns(term=words(pl.col("query")))
    spread = terms.select("user", "times", "term").explode("term").drop_nulls("term")
    counts = spread.group_by("term").agg(frequency=pl.col("times").sum(), users=pl.col("user").n_unique())
    return counts.sort("term").collect()


def correlations(figures: pl.DataFrame) -> dict[tuple[str, str], float]:
    """Compute the paper's Table 3 for a table of terms with all six figures."""
    return {
        (a, b): _pearson(pair[a].cast(pl.Float64).to_numpy(), pair[b].cast(pl.Float64).to_numpy())
        for a, b in SIGNS
        for pair in [figures.select(a, b).drop_nulls()]
    }


def signs_agree(figures: pl.DataFrame) -> bool:
    """Check whether every correlation has the sign that the paper found, and is not next to zero."""
    return all(value * SIGNS[pair] > MARGIN for pair, value in correlations(figures).items())


def with_revenue(figures: pl.DataFrame) -> pl.DataFrame:
    """Add what a term earns: its clicks times its bid."""
    return figures.with_columns(revenue=pl.col("clicks") * pl.col("bid"))


def _draw(counted: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Draw the figures of all terms once.

    More users mean more impressions and, barely, a higher bid; a high bid means fewer clicks per
    impression, since dear terms are contested.
    """
    size = counted.height
    users = counted["users"].to_numpy().astype(np.float64)
    interest = np.log1p(users)
    impressions = np.rint(40.0 * users**0.7 * np.exp(1.5 * rng.standard_normal(size)) + 20.0)
    dear = rng.standard_normal(size)
    bid = np.round(0.05 + 0.30 * np.exp(1.9 * dear) * (1.0 + 0.5 * interest), 2)
    rate = 0.01 * np.exp(1.1 * rng.standard_normal(size) - 0.3 * dear)
    clicks = np.maximum(np.rint(impressions * rate), 1.0)
    known = _known(impressions, rng.random(size))
    figures = counted.with_columns(
        bid=pl.Series(bid),
        impressions=pl.Series(impressions.astype(np.int64)),
        clicks=pl.Series(clicks.astype(np.int64)).scatter(np.flatnonzero(~known), None),
    )
    return with_revenue(figures)


def _known(impressions: FloatArray, uniform: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Leave the clicks of 45 % of the terms open, rather those of rarely shown ones."""
    order = np.argsort(np.log(impressions) + 3.0 * uniform, kind="stable")
    known = np.ones(impressions.size, np.bool_)
    known[order[: round(NO_CLICKS * impressions.size)]] = False
    return known


def _pearson(a: FloatArray, b: FloatArray) -> float:
    a, b = a - a.mean() if a.size else a, b - b.mean() if b.size else b
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else 0.0
