"""What the golden test needs behind the public surface; when code moves, this file alone changes."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import polars as pl

from querycloak.engines import pipeline
from querycloak.methods import dp_counts
from querycloak.registry import METHODS
from querycloak.synthetic import generate
from querycloak.testing.harness import Harness
from querycloak.text.classifier import Evidence, LexicalClassifier
from querycloak.text.senses import ConceptMapper, concept_lexicon


def seed_noise(monkeypatch: Any) -> None:
    """Replace the noise of the operating system by draws that depend on counts and scale alone.

    Without a state of its own the sampler repeats itself whichever thread asks first.
    """
    monkeypatch.setattr(dp_counts, "add_laplace", _seeded_laplace)


#: Settings that were removed, with the value that stands for what is left. The key of a release derives
#: from the settings, so that without these every draw of the method would be another one.
REMOVED = {
    "cohort": {"scope": "source"},
    "km": {"optimise": "greedy"},
    "microagg-semantic": {"similarity": "taxonomy"},
}


def keep_keys(monkeypatch: Any) -> None:
    """Derive the keys of methods from their settings as they were when the outputs were stored."""
    derived = pipeline.stage_key

    def as_before(release: bytes, place: int, method: str, settings: Any) -> bytes:
        return derived(release, place, method, {**settings, **REMOVED.get(method, {})})

    monkeypatch.setattr(pipeline, "stage_key", as_before)


def _seeded_laplace(counts: np.ndarray, scale: float) -> np.ndarray:
    start = hashlib.sha256(np.ascontiguousarray(counts, np.int64).tobytes() + repr(scale).encode()).digest()
    uniform = np.random.Generator(np.random.PCG64(int.from_bytes(start, "big"))).random((2, counts.size))
    heads = np.floor(np.log1p(-uniform) * -scale) if scale > 0 else np.zeros(uniform.shape)
    return counts + (heads[0] - heads[1]).astype(np.int64)


def snapshot_arrays(method: str, settings: Any, log: pl.DataFrame) -> dict[str, list[str]]:
    """Return the sorted names of a snapshot's arrays after half of the log, by their type."""
    harness = Harness(METHODS.get(method), settings, log)
    protector = harness.make()
    protector.push(harness.batch[: math.ceil(len(harness.batch) / 2)])
    by_type: dict[str, list[str]] = {}
    for name, array in sorted(protector.snapshot().items()):
        by_type.setdefault(_type(array.dtype), []).append(name)
    return dict(sorted(by_type.items()))


def _type(dtype: np.dtype) -> str:
    return "text" if dtype.kind == "U" else dtype.str.lstrip("<|=>")


def extra_of(method: str, settings: Any) -> str:
    """Return the optional part of the package that these settings need, if any."""
    return str(METHODS.get(method).extra)


#: Queries that no synthetic log has: other scripts, signs, addresses, numbers, misspelt and joined words.
ODD_QUERIES = (
    "", " ", "wether tomorrow", "www.bankofamerica.com", "hotels in boston", "café-olé menu", "o'neil's pub",
    "C++ tutorial", "c# and .net framework", "my space", "creditcard debt", "jane@example.com",
    "555-0100 123", "(206) 555-0123", "90210", "bill of rights", "new garden chairs, shoes; books",
    "a b c d e f", "ЖИЗНЬ", "東京 hotel", "x" * 500, "the of and", "http://www.golf.com/clubs",
    "presidents day sale", "golfing lessons for beginners near boston", "bob's burgers",
)  # fmt: skip


#: What some kinds of evidence were called when the outputs were stored.
_NAMES = {Evidence.NGRAMS: "letters", Evidence.REMOTE: "service"}


def text_queries() -> tuple[pl.Series, pl.Series]:
    """Return the different queries and addresses of a synthetic log, and queries that it does not have."""
    log = generate(260, seed=5).frame
    queries = log["query"].unique(maintain_order=True)
    urls = log["url"].drop_nulls().unique(maintain_order=True)
    return queries.append(pl.Series(ODD_QUERIES)), urls


def categories_of(queries: pl.Series, urls: pl.Series) -> list[tuple[str, str, str]]:
    """Return (text, evidence, category and confidence) as the default classifier reads the texts."""
    classifier = LexicalClassifier()
    found = []
    for texts, answer in ((queries, classifier.classify(queries)), (urls, classifier.classify_urls(urls))):
        for text, node, sure, how in zip(
            texts, answer.category, answer.confidence, answer.evidence, strict=True
        ):
            path = classifier.taxonomy.path(node) if node >= 0 else ""
            found.append((text, _NAMES.get(how, Evidence(how).name.lower()), f"{path} {sure:.9f}"))
    return found


def concepts_in(queries: pl.Series) -> list[tuple[str, str]]:
    """Return (text, its concepts with what was taken away from each phrase)."""
    mapped = ConceptMapper(concept_lexicon()).read(queries)
    words = [
        f"{one.concept} {one.before} {one.removed} {one.plural} {one.lexicon_phrase}"
        for one in mapped.phrases
    ]
    bounds = zip(mapped.start[:-1].tolist(), mapped.start[1:].tolist(), strict=True)
    return [(text, "; ".join(words[a:b])) for text, (a, b) in zip(queries, bounds, strict=True)]
