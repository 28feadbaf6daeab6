"""The workload of paper 001: histories as entries, and what each term is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from papers.p001.results import COLUMNS
from querycloak.dictionary import Dictionary
from querycloak.log import Batch
from querycloak.methods.km import deletion
from querycloak.methods.km.deletion import HistoryTerms
from querycloak.methods.shared.terms import TermOccurrences, Tokenizer
from querycloak.synthetic import generate
from querycloak.synthetic.marketing import marketing

USERS = 367_803
SEARCHES = 5  # of each user, about as many as in the paper's one day
KEY = b"paper 001, made-up log, one key."


def left_of(target: str, entries: HistoryTerms, kept: Any, values: Any) -> float:
    """Return how much of what a target counts is left."""
    left = entries[kept]
    if target == "distinct":
        return float(np.count_nonzero(left.supports()))
    if target == "users":
        return float(np.unique(left.person).size)
    own = values if values is not None and target in (*deletion.MARKETING, "file") else np.ones(entries.terms)
    return float((own[left.term] * left.times).sum())


@dataclass(frozen=True)
class Workload:
    """The first searches of many users as entries, and what each term is worth by target."""

    entries: HistoryTerms
    values: dict[str, Any]
    about: dict[str, Any]

    @classmethod
    def of(cls, users: int, seed: int) -> Workload:
        """Generate a log; keep the first searches of each user; clicks do not count twice."""
        log = generate(users, seed=seed).frame.select("user", "query", "time").unique(maintain_order=True)
        log = log.sort("time", "user", "query").group_by("user", maintain_order=True).head(SEARCHES)
        figures = marketing(log, seed=seed)
        queries, terms = Dictionary(), Dictionary()
        people, code = Dictionary().encode(log["user"]), queries.encode(log["query"])
        held = Batch.of({"row": np.arange(log.height), "user": people, "query": code}, None)  # type: ignore[arg-type]
        uses = TermOccurrences.of(held, Tokenizer(queries, terms), None)
        prints = terms.fingerprints(np.arange(len(terms.texts())), KEY)
        keyed = np.random.default_rng(seed).integers(0, 1 << 63, int(people.max()) + 1).astype(np.uint64)
        entries, _ = HistoryTerms.of(uses, people, np.arange(keyed.size), keyed, prints, KEY)
        worth = pl.DataFrame({"term": terms.texts()}).join(
            figures, on="term", how="left", maintain_order="left"
        )
        worth = worth.with_columns(revenue=pl.col("bid") * pl.col("clicks"))
        values = {name: worth[name].fill_null(0.0).cast(pl.Float64).to_numpy() for name in deletion.MARKETING}
        sizes = np.bincount(entries.history)
        about = {
            "users": int(sizes.size),
            "terms": entries.terms,
            "user_terms": len(entries),
            "occurrences": int(entries.times.sum()),
            "longest_history": int(sizes.max()),
            "pairs_of_terms_in_histories": int((sizes * (sizes - 1) // 2).sum()),
        }
        return cls(entries, values, about | {"correlations": correlations(entries, values)})

    def retention(self, alive: Any) -> dict[str, float]:
        """Return in percent what is left of the seven things that the paper looks at."""
        every = np.ones(len(self.entries), np.bool_)
        return {
            name: 100
            * left_of(name, self.entries, alive, self.values.get(name))
            / left_of(name, self.entries, every, self.values.get(name))
            for name in COLUMNS
        }


def correlations(entries: HistoryTerms, values: dict[str, Any]) -> dict[str, float]:
    """Return Pearson's correlation of each two figures of terms, as the paper's Table 3."""
    own = {
        "term frq.": np.bincount(entries.term, entries.times, minlength=entries.terms),
        "user frq.": entries.supports().astype(np.float64),
    } | values
    names = list(own)
    return {
        f"{a} / {b}": round(float(np.corrcoef(own[a], own[b])[0, 1]), 3)
        for place, a in enumerate(names)
        for b in names[place + 1 :]
    }
