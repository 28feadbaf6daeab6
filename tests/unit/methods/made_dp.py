"""What the tests of `dp-semantic` share: small logs, another reader of queries, settings to try."""

from __future__ import annotations

from itertools import pairwise

import polars as pl

import querycloak as qc
from querycloak.text.senses import ConceptMapper, concept_lexicon

TREE = ("animal", "animal/dog", "animal/dog/poodle", "animal/cat", "tool", "tool/hammer", "tool/saw")


def made(*pairs, **columns):
    """Make a log of (user, query) pairs."""
    frame = pl.DataFrame(pairs, schema={"user": pl.String, "query": pl.String}, orient="row")
    return qc.Log(frame.with_columns(**columns).with_row_index("row").cast({"row": pl.Int64}))


def protect(log, **settings):
    return qc.protect(log, "dp-semantic", **({"seed": 3} | settings))


def meant(queries, concepts=None, **how):
    """Give the concepts that queries mean, by a reader of our own."""
    mapped = ConceptMapper(concepts or concept_lexicon(), **how).read(queries)
    bounds = mapped.start.tolist()
    return [mapped.concept[a:b].tolist() for a, b in pairwise(bounds)]


def beside(log, release):
    """Put each released row beside the one that it came from."""
    old = log.frame.rename({name: f"old_{name}" for name in log.frame.columns if name != "row"})
    new = release.log.frame.drop("row").with_columns(row=release.truth["original_row"])
    return new.join(old, on="row", how="left", maintain_order="left")


def part(release):
    return release.certificate["methods"][0]


SETTINGS = [
    {},
    {"criterion": "sqc1", "epsilon": 0.001},
    {"criterion": "none", "per": "query", "epsilon": 8.0},
    {"domain": "topic", "topics": "paper-4"},
    {"prior": "microagg-semantic", "group": 2},
    {"max_queries": 10_000},
    {"rebuild": "form", "time": "drop"},
    {"rebuild": "paper", "labels": "fresh"},
]
