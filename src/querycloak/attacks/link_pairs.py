"""`link-pairs`: did one person write both of these records?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from querycloak import settings as declared
from querycloak.attacks.finding import NotApplicable
from querycloak.attacks.protocol import Attack, AttackerView, Linkage
from querycloak.attacks.words import words_of
from querycloak.kernels import pairs as kernel
from querycloak.log import NO_TIME
from querycloak.settings import setting

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

#: How much each sign speaks for one author, fitted once on made-up logs (never on a truth):
#: the share of words in common, the same string, closeness in time, the same label, the same topic.
WEIGHTS = {"words": 3.0, "string": 1.0, "minutes": 2.5, "label": 1.5, "topic": 0.5}


class LinkPairs(Attack):
    """Scores pairs of records by text, time, label and topic: the higher, the likelier one author.

    Pairs are drawn half from records that share a rare word and half at random, so that there is
    something to find. Labels that tell nothing (as in `cohort`) leave text and time to it.

    Limits: it never says who the author is, only that there is one; no bound is claimed against it.
    """

    name = "link-pairs"
    game = "linkage"

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings of `link-pairs`."""

        pairs: int = setting(200_000, kind=int, at_least=2, help="pairs of records to judge")
        seed: int = setting(0, kind=int, help="which pairs")

    def guess(self, view: AttackerView) -> Linkage:
        """Score pairs of released rows."""
        chosen: Any = self.settings
        release = view.release
        if release.height < 2:
            raise NotApplicable("the release has fewer than two records")
        draws = np.random.default_rng(chosen.seed)
        words = words_of(release)
        first, second = self._pairs(release.height, words, chosen.pairs, draws)
        signs = _signs(release, words, first, second)
        score = sum((WEIGHTS[name] * values for name, values in signs.items()), np.zeros(first.size))
        return Linkage(first, second, score, {"pairs": int(first.size), "signs": sorted(signs)})

    @staticmethod
    def _pairs(
        rows: int, words: pl.DataFrame, count: int, draws: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        near = _neighbours(words)
        chosen = near[draws.permutation(len(near))[: count // 2]]
        first = np.concatenate([chosen[:, 0], draws.integers(0, rows, count - len(chosen))])
        second = np.concatenate([chosen[:, 1], draws.integers(0, rows, count - len(chosen))])
        pairs = np.unique(np.sort(np.stack([first, second], axis=1), axis=1)[first != second], axis=0)
        return pairs[:, 0].copy(), pairs[:, 1].copy()


def _neighbours(words: pl.DataFrame) -> IntArray:
    """Pair each row with the next one that has the same rare word."""
    table = words.sort("word", "row").with_columns(
        other=pl.col("row").shift(-1), same=pl.col("word") == pl.col("word").shift(-1)
    )
    return table.filter("same").select("row", "other").unique(maintain_order=True).to_numpy()


def _signs(
    release: pl.DataFrame, words: pl.DataFrame, first: IntArray, second: IntArray
) -> dict[str, FloatArray]:
    """Measure what speaks for one author, from whatever columns were released."""
    table = words.sort("row", "word")
    starts = np.searchsorted(table["row"].to_numpy(), np.arange(release.height + 1))
    signs = {"words": kernel.shared_words(first, second, starts, table["word"].to_numpy())}
    for name, column in (("string", "query"), ("label", "user"), ("topic", "category")):
        if column in release.columns and release[column].null_count() < release.height:
            text = pl.col(column).str.split("/").list.first() if column == "category" else pl.col(column)
            codes = release.select(text.hash(8)).to_series().to_numpy()
            signs[name] = (codes[first] == codes[second]).astype(np.float64)
    if "time" in release.columns and release["time"].null_count() < release.height:
        time = release["time"].to_physical().fill_null(NO_TIME).to_numpy().astype(np.float64)
        minutes = np.abs(time[first] - time[second]) / 60e6
        signs["minutes"] = np.exp(-minutes / 30)
    return signs
