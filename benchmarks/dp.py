"""`dp-semantic`: draws a second beside two float samplers, text to text, memory; noise of `threshold-dp`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import polars as pl

import querycloak as qc
from benchmarks.common import best_of, in_own_process, peak_gigabytes, timed
from querycloak.dictionary import Dictionaries
from querycloak.engines.local import run
from querycloak.engines.pipeline import Pipeline, parse_stages
from querycloak.engines.time_order import whole
from querycloak.kernels import exponential_mechanism as concept_draws
from querycloak.methods import dp_counts
from querycloak.methods.dp_semantic.draws import draw_weights
from querycloak.text.concept_space import ConceptSpace, concept_space, partition_by_topic
from querycloak.text.senses import ConceptLexicon, ConceptMapper, concept_lexicon
from querycloak.text.wordnet import RaggedArray

KEY = bytes(range(32))


def every_concept(concepts: ConceptLexicon) -> ConceptSpace:
    """Return all 82,115 concepts, those too that no phrase means."""
    names = [(f"c{number}", number) for number in range(concepts.size)]
    parents = RaggedArray(concepts.parents.flat, concepts.parents.start)
    every = ConceptLexicon(parents, names, concepts.tree, concepts.node)
    return concept_space(every, partition_by_topic(every), "sqc1")


def draws(space: ConceptSpace, epsilon: float, number: int) -> dict[str, Any]:
    """Draw for concepts at random, with one core."""
    some = np.random.default_rng(1).choice(space.candidates.members, number).astype(np.int64)
    weights = draw_weights(space, [(d, epsilon) for d in range(space.domains)])
    table = space.candidates.domain[some].astype(np.int64)
    record, turn = np.arange(number), np.zeros(number, np.int64)

    def work() -> int:
        return concept_draws.draw(some, table, record, turn, KEY, space.candidates, weights)[1]

    tries = work()
    seconds = best_of(work)
    return {"draws_per_second": round(number / seconds), "proposals_per_draw": round(tries / number, 2)}


def peers(space: ConceptSpace, epsilon: float) -> dict[str, float]:
    """Draw with a plain numpy draw over all candidates, and with OpenDP's noisy max; both use floats."""
    members = space.members(0)
    concepts = np.random.default_rng(2).choice(members, 20)

    def scores(concept: int) -> Any:
        return space.similarities(np.full(members.size, concept), members)

    chance = np.random.default_rng(3)

    def with_numpy() -> None:
        for concept in concepts:
            weight = np.exp(epsilon * scores(int(concept)) / (2 * (1 - space.min_similarity[0])))
            members[np.searchsorted(np.cumsum(weight), chance.random() * weight.sum())]

    found = {"numpy_draws_per_second": round(len(concepts) / best_of(with_numpy), 1)}
    try:
        import opendp.prelude as dp
    except ImportError:
        return found
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    scale = 2 * (1 - float(space.min_similarity[0])) / epsilon
    noisy = dp.m.make_noisy_max(domain, dp.linf_distance(T=float), dp.max_divergence(), scale=scale)
    lists = [scores(int(concept)).tolist() for concept in concepts[:3]]  # not timed: in favour of the peer
    seconds = best_of(lambda: [noisy(values) for values in lists], 2)
    return found | {"opendp_noisy_max_draws_per_second": round(len(lists) / seconds, 2)}


def text_to_text(users: int) -> dict[str, Any]:
    """Run the method itself over a made-up log: queries in, queries out."""
    log = qc.generate(users, seed=5)
    found: dict[str, Any] = {}
    for name, chosen in (("own", {}), ("max_queries=100", {"max_queries": "100"})):
        pipeline = Pipeline(parse_stages(["dp-semantic"], chosen), KEY, Dictionaries())
        begin = time.perf_counter()
        released = sum(part.frame.height for part in run(pipeline, whole(log, KEY)))
        seconds = time.perf_counter() - begin
        found[name] = {
            "records": len(log),
            "distinct_queries": log.frame["query"].n_unique(),
            "released": released,
            "seconds": round(seconds, 2),
            "queries_per_second": round(len(log) / seconds),
            "distinct_queries_per_second": round(log.frame["query"].n_unique() / seconds),
        }
    found["peak_gigabytes"] = peak_gigabytes()
    return found


def load() -> dict[str, float]:
    """Load everything that a draw needs."""
    _, spent = timed(_first_draw)
    return {"seconds": spent["seconds"], "peak_gigabytes": peak_gigabytes()}


def _first_draw() -> None:
    concepts = concept_lexicon()
    ConceptMapper(concepts).read(pl.Series(["lung cancer"]))
    draw_weights(concept_space(concepts, partition_by_topic(concepts), "sqc2"), [(0, 1.0)])


def measure(scale: float) -> dict[str, Any]:
    """Measure everything."""
    concepts = concept_lexicon()
    every, number = every_concept(concepts), int(2_000_000 * scale)
    found: dict[str, Any] = {"start": in_own_process(load), "concepts": int(every.candidates.members.size)}
    for epsilon in (0.05, 1.0, 5.0, 10.0, 20.0):
        found[f"sqc1, all 82 k, epsilon {epsilon:g} a draw"] = draws(every, epsilon, number)
    topics = partition_by_topic(concepts)
    for name, space in (
        ("sqc2, domain all", concept_space(concepts, topics, "sqc2")),
        ("sqc2, domain topic", concept_space(concepts, topics, "sqc2", topics)),
        ("none, domain all", concept_space(concepts, topics, "none")),
    ):
        found[f"{name}, epsilon 1 a draw"] = draws(space, 1.0, number)
    beside = peers(every, 1.0)
    ours = found["sqc1, all 82 k, epsilon 1 a draw"]["draws_per_second"]
    ratios = {name.replace("draws_per_second", "ratio"): round(ours / rate) for name, rate in beside.items()}
    found["peers, epsilon 1 a draw"] = beside | ratios
    found["text to text"] = {f"{users:,} users": text_to_text(users) for users in _sizes(scale)}
    return found


def _sizes(scale: float) -> list[int]:
    return [max(int(size * scale), 50) for size in (2_500, 5_000, 10_000, 20_000)]


def threshold(scale: float) -> dict[str, Any]:
    """Protect a log by `threshold-dp`, then draw OpenDP's noise alone."""
    log, draws = qc.generate(users=int(20_000 * scale), seed=7), int(1_000_000 * scale)
    dp_counts.require_opendp()
    report = qc.protect(log, "threshold-dp").report
    _, spent = timed(lambda: dp_counts.add_laplace(np.zeros(draws, np.int64), 10.0))
    return {
        "records": len(log),
        "distinct_queries": log.frame["query"].n_unique(),
        "lines": report.released,
        "seconds": report.seconds,
        "draws_per_second": round(draws / spent["seconds"]),
    }
