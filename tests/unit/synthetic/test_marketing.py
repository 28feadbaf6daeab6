"""Marketing figures: one row per term, and the signs of the paper's Table 3."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from querycloak.errors import DataError
from querycloak.log import Log
from querycloak.synthetic import generate, marketing

#: Paper 001, Table 3: the only negative correlation is that of bid and clicks.
PAIRS = [
    ("frequency", "revenue"), ("frequency", "impressions"), ("frequency", "clicks"), ("frequency", "bid"),
    ("frequency", "users"), ("users", "revenue"), ("users", "impressions"), ("users", "clicks"),
    ("users", "bid"), ("bid", "revenue"), ("bid", "impressions"), ("clicks", "revenue"),
    ("clicks", "impressions"), ("impressions", "revenue"),
]  # fmt: skip


@pytest.fixture(scope="module")
def log() -> Log:
    return generate(2_000, seed=7)


def table(log: Log, seed: int) -> pl.DataFrame:
    """Join the figures to terms counted here, in another way than the generator counts them."""
    frequency: dict[str, int] = {}
    users: dict[str, set[str]] = {}
    for user, query in log.frame.select("user", "query").iter_rows():
        for term in "".join(letter if letter.isalnum() else " " for letter in query).split():
            frequency[term] = frequency.get(term, 0) + 1
            users.setdefault(term, set()).add(user)
    counted = pl.DataFrame(
        {
            "term": list(frequency),
            "frequency": list(frequency.values()),
            "users": [len(users[t]) for t in frequency],
        }
    )
    figures = marketing(log, seed).join(counted, on="term", how="full", coalesce=True)
    return figures.with_columns(revenue=pl.col("bid") * pl.col("clicks"))


def correlation(figures: pl.DataFrame, a: str, b: str) -> float:
    both = figures.select(a, b).drop_nulls()
    return float(np.corrcoef(both[a].to_numpy(), both[b].to_numpy())[0, 1])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_correlations_have_the_signs_of_table_3(log: Log, seed: int) -> None:
    figures = table(log, seed)
    signs = {pair: correlation(figures, *pair) > 0 for pair in PAIRS}
    assert all(signs.values()), signs
    assert correlation(figures, "bid", "clicks") < 0


def test_every_term_has_a_row_and_sensible_figures(log: Log) -> None:
    figures = table(log, 0)
    assert figures.select("bid", "impressions", "frequency").null_count().sum_horizontal().item() == 0
    assert figures["bid"].min() >= 0.05
    assert figures["impressions"].min() >= 1
    assert figures["clicks"].drop_nulls().min() >= 1


def test_nearly_half_of_the_terms_have_no_click_estimate(log: Log) -> None:
    assert marketing(log)["clicks"].is_null().mean() == pytest.approx(0.45, abs=0.001)


def test_figures_follow_from_log_and_seed(log: Log) -> None:
    assert marketing(log, 3).equals(marketing(log.frame, 3))
    assert not marketing(log, 3).equals(marketing(log, 4))


def test_terms_are_split_at_everything_but_letters_and_digits() -> None:
    frame = pl.DataFrame({"user": ["1", "1"], "query": ["ad-placement www.zvok.com", "O'Neil's 2006 ça"]})
    assert marketing(frame)["term"].to_list() == sorted(
        ["ad", "placement", "www", "zvok", "com", "o", "neil", "s", "2006", "ça"]
    )


def test_a_log_without_terms_has_no_figures() -> None:
    assert marketing(pl.DataFrame({"user": ["1"], "query": ["--"]})).height == 0


def test_a_missing_column_is_named() -> None:
    with pytest.raises(DataError, match="`user`"):
        marketing(pl.DataFrame({"query": ["boat"]}))
