"""The classifier: queries a second, and how often it is right."""

from __future__ import annotations

import csv
import random
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common import timed
from querycloak.text.classifier import CONFIDENT, Evidence, LexicalClassifier
from querycloak.text.lexicon import Lexicon
from querycloak.text.taxonomy import Taxonomy, load

#: Fifths of the lexicon whose phrases are hidden to test the confidence.
FOLDS = (0, 1)
LABELLED = Path(__file__).parents[1] / "tests" / "data" / "topics" / "labelled.csv"


def synthetic_queries(size: int, seed: int = 7) -> list[str]:
    """Return distinct queries from the lexicon's phrases, a third misspelt or of unknown words."""
    lexicon, draw = load().lexicon, random.Random(seed)
    words = [text for text, node in zip(lexicon.texts, lexicon.curated_category, strict=True) if node > 0]
    queries: dict[str, None] = {}
    while len(queries) < size:
        query = " ".join(draw.choices(words, k=draw.choice((1, 1, 2))))
        at, kind = draw.randrange(len(query)), draw.random()
        if kind < 0.2:
            query = query[:at] + draw.choice("aeiorstn") + query[at + 1 :]
        elif kind < 0.35:
            query = "".join(draw.choices("bdgklmnprstaeiou", k=draw.randint(5, 10))) + draw.choice(
                ("", ".com")
            )
        queries[query + f" {draw.randrange(100)}" * (draw.random() < 0.3)] = None
    return list(queries)


def measure(scale: float) -> dict[str, Any]:
    """Time loading, known words alone, and the whole chain, in distinct queries a second."""
    queries = synthetic_queries(int(200_000 * scale))
    classifier, load_time = timed(_loaded)
    texts = pl.Series(queries, dtype=pl.String)
    _, by_words = timed(lambda: classifier.classify_urls(texts))
    answer, by_all = timed(lambda: classifier.classify(texts))
    return {
        "load_seconds": load_time["seconds"],
        "lexical_per_second": len(queries) / by_words["seconds"],
        "whole_per_second": len(queries) / by_all["seconds"],
        "lexical_per_cpu_second": len(queries) / by_words["cpu_seconds"],  # steadier on a shared machine
        "whole_per_cpu_second": len(queries) / by_all["cpu_seconds"],
        "answered": float(np.mean(answer.category >= 0)),
        "confident": float(np.mean(answer.confidence >= CONFIDENT)),
        "how": {
            kind.name.lower(): float(np.mean(answer.evidence == kind))
            for kind in Evidence
            if (answer.evidence == kind).any()
        },
    }


def _loaded() -> LexicalClassifier:
    classifier = LexicalClassifier()
    classifier.classify(pl.Series(["warm up", "wrmup qqzx"]))
    return classifier


def labelled(split: str) -> list[tuple[str, str]]:
    """Read one half of the labelled set."""
    with LABELLED.open(encoding="utf-8", newline="") as file:
        return [(row["query"], row["category"]) for row in csv.DictReader(file) if row["split"] == split]


def accuracy(classifier: Any, split: str = "dev") -> dict[str, Any]:
    """Compare answers with labels: shares right at level 1 and 2, and level-1 confusion counts."""
    rows = labelled(split)
    answer = classifier.classify(pl.Series([query for query, _ in rows]))
    given = [classifier.taxonomy.path(node).split("/") if node >= 0 else [""] for node in answer.category]
    wanted = [category.split("/") for _, category in rows]
    right = np.array([g[0] == w[0] for g, w in zip(given, wanted, strict=True)])
    domain = np.array([g[:2] == w[:2] for g, w in zip(given, wanted, strict=True)])
    sure = answer.confidence >= CONFIDENT
    return {
        "n": len(rows),
        "level1": float(right.mean()),
        "level2": float(domain.mean()),
        "answered": float((answer.category >= 0).mean()),
        "confident": float(sure.mean()),
        "precision_when_confident": float(right[sure].mean()) if sure.any() else float("nan"),
        "confusion": Counter((w[0], g[0]) for g, w in zip(given, wanted, strict=True)),
    }


def print_confusion(confusion: Counter[tuple[str, str]]) -> None:
    """Print rows of true topics against columns of answers."""
    topics = sorted({true for true, _ in confusion})
    given = [*topics, *sorted({name for _, name in confusion} - set(topics))]
    print(f"{'true / given':12}" + "".join(f"{name[:4]:>5}" for name in given))
    for true in topics:
        print(f"{true:12}" + "".join(f"{confusion[true, name] or '.':>5}" for name in given))


def report_accuracy(scale: float) -> dict[str, Any]:
    """Print accuracy on both halves of the labelled set, and the confusion on the test half."""
    found = {split: accuracy(LexicalClassifier(), split) for split in ("dev", "test")}
    confusions = {split: one.pop("confusion") for split, one in found.items()}
    print_confusion(confusions["test"])
    return found


def hide(taxonomy: Taxonomy, fold: int, folds: int = 5) -> tuple[Taxonomy, dict[str, set[int]]]:
    """Take a fifth of the lexicon's phrases out of a taxonomy; return it and the topics of what was taken."""
    terms = taxonomy.lexicon
    phrase = np.repeat(np.arange(len(terms)), np.diff(terms.start))
    chosen = np.array([zlib.crc32(text.encode()) % folds == fold for text in terms.texts])
    hidden = terms.curated & chosen[phrase]
    left = np.bincount(phrase[~hidden], minlength=len(terms))
    texts = [text for text, count in zip(terms.texts, left, strict=True) if count]
    start = np.concatenate([[0], np.cumsum(left[left > 0])]).astype(np.int32)
    rest = Lexicon(texts, start, terms.node[~hidden], terms.weight[~hidden], terms.curated[~hidden])
    topics: dict[str, set[int]] = {}
    for i in np.flatnonzero(hidden & (terms.weight >= 1)):
        topics.setdefault(terms.texts[phrase[i]], set()).add(int(taxonomy.at_level(terms.node[i], 1)))
    return Taxonomy(taxonomy.parent, taxonomy.names, rest), topics


def judged(classifier: LexicalClassifier, topics: dict[str, set[int]]) -> tuple[Any, Any]:
    """Return the confidence of each answer, and whether its topic is right."""
    answer = classifier.classify(pl.Series(list(topics)))
    given = classifier.taxonomy.at_level(np.maximum(answer.category, 0), 1).tolist()
    return answer.confidence, np.array([g in t for g, t in zip(given, topics.values(), strict=True)])


def print_reliability(sure: Any, right: Any) -> None:
    """Print the share of right answers by confidence."""
    for low in np.arange(0, 1, 0.1):
        inside = (sure >= low) & (sure < low + 0.1)
        if inside.any():
            print(f"  {low:.1f}-{low + 0.1:.1f}  n={inside.sum():5}  right={right[inside].mean():.3f}")
    confident = sure >= CONFIDENT
    print(f"  from {CONFIDENT}: {confident.mean():.3f} of all, right={right[confident].mean():.3f}")


def report_reliability(scale: float) -> dict[str, Any]:
    """Print, by confidence, the share of right answers on dev and on hidden phrases of the lexicon."""
    taxonomy = load()
    dev = {query: {taxonomy.node(path.partition("/")[0])} for query, path in labelled("dev")}
    hidden = [hide(taxonomy, fold) for fold in FOLDS]
    found = [judged(LexicalClassifier(rest), topics) for rest, topics in hidden]
    pools = {
        "dev": judged(LexicalClassifier(taxonomy), dev),
        "hidden": (np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])),
    }
    for name, (sure, right) in pools.items():
        print(f"{name}: n={sure.size} right={right.mean():.3f}")
        print_reliability(sure, right)
    return {}
