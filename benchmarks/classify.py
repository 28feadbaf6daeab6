"""How fast and how right the classifiers are.

Usage: python benchmarks/classify.py             speed on made-up queries
       python benchmarks/classify.py --accuracy  accuracy on the labelled set, with the confusion at level 1
       python benchmarks/classify.py --reliability  whether confidence is the share of right answers
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src")]


from querycloak.text.classifier import CONFIDENT, Evidence, LexicalClassifier  # noqa: E402
from querycloak.text.lexicon import Lexicon  # noqa: E402
from querycloak.text.taxonomy import Taxonomy, load  # noqa: E402

LABELLED = HERE.parent / "tests" / "data" / "topics" / "labelled.csv"


def made_up(size: int, seed: int = 7) -> list[str]:
    """Put together distinct queries from the lexicon's phrases, a third misspelt or of unknown words."""
    lexicon = load().lexicon
    draw = random.Random(seed)
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


def measure(queries: Sequence[str]) -> dict[str, Any]:
    """Time loading, known words alone, and the whole chain, in distinct queries per second."""
    begin = time.perf_counter()
    classifier = LexicalClassifier()
    classifier.classify(pl.Series(["warm up", "wrmup qqzx"]))
    ready = time.perf_counter()
    texts = pl.Series(list(queries), dtype=pl.String)
    loaded, used = time.perf_counter(), time.process_time()
    classifier.classify_urls(texts)  # words and n-grams alone
    middle, used_by_words = time.perf_counter(), time.process_time() - used
    answer = classifier.classify(texts)
    end, used_by_all = time.perf_counter(), time.process_time() - used - used_by_words
    return {
        "load_seconds": ready - begin,
        "lexical_per_second": len(queries) / (middle - loaded),
        "whole_per_second": len(queries) / (end - middle),
        "lexical_per_cpu_second": len(queries) / used_by_words,  # steadier on a shared machine
        "whole_per_cpu_second": len(queries) / used_by_all,
        "answered": float(np.mean(answer.category >= 0)),
        "confident": float(np.mean(answer.confidence >= CONFIDENT)),
        "how": {
            kind.name.lower(): float(np.mean(answer.evidence == kind))
            for kind in Evidence
            if (answer.evidence == kind).any()
        },
    }


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


def report_accuracy() -> None:
    """Print accuracy on both halves, and the confusion on the test half."""
    for split in ("dev", "test"):
        found = accuracy(LexicalClassifier(), split)
        print(f"{split:5}", {key: round(value, 3) for key, value in found.items() if key != "confusion"})
    print_confusion(found["confusion"])


def hide(taxonomy: Taxonomy, fold: int, folds: int = 5) -> tuple[Taxonomy, dict[str, set[int]]]:
    """Take a fifth of the lexicon's phrases out of a taxonomy; give it and the topics of what was taken."""
    terms = taxonomy.lexicon
    phrase = np.repeat(np.arange(len(terms)), np.diff(terms.start))
    lexical = terms.curated
    chosen = np.array([zlib.crc32(text.encode()) % folds == fold for text in terms.texts])
    hidden = lexical & chosen[phrase]
    left = np.bincount(phrase[~hidden], minlength=len(terms))
    texts = [text for text, count in zip(terms.texts, left, strict=True) if count]
    start = np.concatenate([[0], np.cumsum(left[left > 0])]).astype(np.int32)
    rest = Lexicon(texts, start, terms.node[~hidden], terms.weight[~hidden], terms.curated[~hidden])
    topics: dict[str, set[int]] = {}
    for i in np.flatnonzero(hidden & (terms.weight >= 1)):
        topics.setdefault(terms.texts[phrase[i]], set()).add(int(taxonomy.at_level(terms.node[i], 1)))
    return Taxonomy(taxonomy.parent, taxonomy.names, rest), topics


def judged(classifier: LexicalClassifier, topics: dict[str, set[int]]) -> tuple[Any, Any]:
    """Give the confidence of each answer, and whether its topic is right."""
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


def report_reliability(folds: Sequence[int]) -> None:
    """Print, by confidence, the share of right answers on dev and on hidden phrases of the lexicon."""
    taxonomy = load()
    dev = {query: {taxonomy.node(path.partition("/")[0])} for query, path in labelled("dev")}
    hidden = [hide(taxonomy, fold) for fold in folds]
    found = [judged(LexicalClassifier(rest), topics) for rest, topics in hidden]
    pools = {
        "dev": judged(LexicalClassifier(taxonomy), dev),
        "hidden": (np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])),
    }
    for name, (sure, right) in pools.items():
        print(f"{name}: n={sure.size} right={right.mean():.3f}")
        print_reliability(sure, right)


def main() -> None:
    """Print speed, or accuracy or reliability if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accuracy", action="store_true")
    parser.add_argument("--reliability", action="store_true")
    parser.add_argument("--folds", type=int, nargs="+", default=[0, 1], help="fifths of the lexicon to hide")
    parser.add_argument("--queries", type=int, default=200_000)
    asked = parser.parse_args()
    if asked.accuracy:
        report_accuracy()
    elif asked.reliability:
        report_reliability(asked.folds)
    else:
        for key, value in measure(made_up(asked.queries)).items():
            print(f"{key:20} {value}")


if __name__ == "__main__":
    main()
