"""Topics of concepts, and the candidate space: which concepts may replace which (paper 002, eq. 5, 6, 12)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from querycloak.errors import UsageError
from querycloak.kernels.exponential_mechanism import Candidates, shared
from querycloak.text import _ancestry
from querycloak.text.lexicon import FloatArray, Int32Array
from querycloak.text.normalise import BoolArray, IntArray
from querycloak.text.reader import TextReader, TextSpec
from querycloak.text.senses import ConceptLexicon, locked_cache

#: The paper's four topics, by the WordNet concepts that it names.
PAPER_4: Final = ("disease.n.01", "science.n.01", "sport.n.01", "social_event.n.01")
#: Nineteen of their specialisations: the eight that the paper names, and the largest beside them.
PAPER_19: Final = (
    "respiratory_disease.n.01", "genetic_disease.n.01", "communicable_disease.n.01",
    "skin_disease.n.01", "plant_disease.n.01", "animal_disease.n.01",
    "natural_science.n.01", "social_science.n.01", "mathematics.n.01", "linguistics.n.01", "psychology.n.01",
    "contact_sport.n.01", "water_sport.n.01", "athletic_game.n.01", "outdoor_sport.n.01", "blood_sport.n.01",
    "show.n.03", "contest.n.01", "affair.n.03",
)  # fmt: skip
#: Topic of the concepts that belong to no other.
OTHER: Final = "everything else"


@dataclass(frozen=True)
class TopicPartition:
    """Names of topics, and the topic of each concept, by number."""

    names: tuple[str, ...]
    of: Int32Array

    @property
    def has_other(self) -> bool:
        """Whether the last topic has the concepts of no other one."""
        return self.names[-1] == OTHER


@locked_cache(maxsize=8)
def partition_by_topic(concepts: ConceptLexicon, wanted: str = "categories") -> TopicPartition:
    """Return the topic of each concept.

    `categories` are the first names of their paths, `paper-4` and `paper-19` the paper's; else it is a list
    of concepts, separated by commas. A concept belongs to the deepest topic above it, of equals to the first;
    all others together are one more topic.
    """
    if wanted == "categories":
        return _by_category(concepts)
    listed = {"paper-4": PAPER_4, "paper-19": PAPER_19}.get(wanted)
    names = listed or tuple(name.strip() for name in wanted.split(",") if name.strip())
    return _below_topics(concepts, names)


def _by_category(concepts: ConceptLexicon) -> TopicPartition:
    tops = [path.partition("/")[0] for path in concepts.category]
    names = sorted(set(tops) - {""})
    number = {name: place for place, name in enumerate(names)}
    of = np.array([number.get(top, len(names)) for top in tops], np.int32)
    return TopicPartition((*names, OTHER) if len(names) in of else tuple(names), of)


def _below_topics(concepts: ConceptLexicon, names: tuple[str, ...]) -> TopicPartition:
    found = [concepts.find(name) for name in names]
    if not names or -1 in found or len(set(found)) < len(found):
        raise UsageError(
            "a topic is named twice, or is no concept of the taxonomy",
            hint="write topics as WordNet senses (`disease.n.01`), category paths, or phrases",
        )
    deep = np.diff(concepts.ancestors.start)
    of = np.full(concepts.size, len(names), np.int32)
    row = np.repeat(np.arange(concepts.size), deep)
    for place in sorted(range(len(names)), key=lambda place: (deep[found[place]], -place)):
        of[row[concepts.ancestors.flat == found[place]]] = place
    return TopicPartition((*names, OTHER), of)


def similarity(common: npt.ArrayLike, union: npt.ArrayLike) -> FloatArray:
    """Return eq. 5 by the numbers of subsumers that two concepts share and that either has."""
    both, either = np.asarray(common, np.float64), np.asarray(union, np.float64)
    return 1 - np.log2(1 + (either - both) / either)


@dataclass(frozen=True, eq=False)
class ConceptSpace:
    """Domains of concepts, and the least similarity of two concepts of each."""

    candidates: Candidates
    min_similarity: FloatArray

    @property
    def domains(self) -> int:
        """Number of domains."""
        return self.min_similarity.size

    def members(self, domain: int) -> IntArray:
        """Return the concepts of a domain."""
        start = self.candidates.members_start
        return self.candidates.members[start[domain] : start[domain + 1]].astype(np.int64)

    @cached_property
    def max_features(self) -> int:
        """The largest number of subsumers of a concept."""
        return int(np.diff(self.candidates.features_start).max(initial=1))

    def scaled_similarity(self) -> FloatArray:
        """Return similarity by domain, united and common features: 0 for the least similar, 1 for equal."""
        union = np.arange(2 * self.max_features + 1)[:, None]
        common = np.arange(self.max_features + 1)
        found = similarity(np.minimum(common, np.maximum(union, 1)), np.maximum(union, 1))
        least = self.min_similarity[:, None, None]
        with np.errstate(invalid="ignore", divide="ignore"):  # a domain of one concept has no span
            scaled = (found - least) / (1 - least)
        return np.clip(np.nan_to_num(scaled, nan=0.0), 0, 1)

    def similarities(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the similarity of pairs of concepts of one domain each, by this space's criterion."""
        return similarity(*shared(first, second, self.candidates))


def concept_space(
    concepts: ConceptLexicon,
    topics: TopicPartition,
    criterion: str = "sqc1",
    domains: TopicPartition | None = None,
    root: int | None = None,
) -> ConceptSpace:
    """Return the candidates of a criterion: one domain, or one for each topic of `domains`.

    All three criteria are eq. 5 on some sets of features: the subsumers (sqc1); the subsumers marked with
    the topic, so that concepts of two topics share none and have the similarity 0 (sqc2); the concept
    itself alone (none). Features are also marked with their domain, and lie inside it.
    """
    chosen = _below(concepts, root)
    of = np.full(concepts.size, -1, np.int64)
    of[chosen] = 0 if domains is None else domains.of[chosen]
    present, numbers = np.unique(of[chosen], return_inverse=True)
    of[chosen] = numbers
    mark = of if criterion != "sqc2" else of * (int(topics.of.max()) + 1) + topics.of
    row, feature = _features(concepts, of, present.size, mark, criterion)
    candidates = _candidates(concepts.size, row, feature, of)
    apart = [_least(candidates, d) if criterion == "sqc1" else 0.0 for d in range(present.size)]
    return ConceptSpace(candidates, np.array(apart))


def _below(concepts: ConceptLexicon, root: int | None) -> IntArray:
    """Return the labelled concepts at and below a root."""
    chosen = concepts.labelled.astype(np.int64)
    if root is not None:
        row = np.repeat(np.arange(concepts.size), np.diff(concepts.ancestors.start))
        chosen = np.intersect1d(chosen, row[concepts.ancestors.flat == root])
    if not chosen.size:
        raise UsageError("no concept of the taxonomy can be said", hint="give another `root` or `taxonomy`")
    return chosen


def _features(
    concepts: ConceptLexicon, of: IntArray, domains: int, mark: IntArray, criterion: str
) -> tuple[IntArray, IntArray]:
    """Return pairs of a concept and a number for each of its features."""
    above = concepts.ancestors
    row = np.repeat(np.arange(concepts.size), np.diff(above.start))
    if criterion == "none":
        kept = (above.flat == row) & (of[row] >= 0)
        return row[kept], row[kept]
    inside = np.zeros((domains, concepts.size), np.bool_)
    for d in range(domains):
        top = _subsumer(concepts, row, of == d)
        inside[d, row[above.flat == top]] = True
    kept = of[row] >= 0
    kept[kept] = inside[of[row[kept]], above.flat[kept]]
    return row[kept], above.flat[kept].astype(np.int64) * (int(mark.max()) + 1) + mark[row[kept]]


def _subsumer(concepts: ConceptLexicon, row: IntArray, member: npt.NDArray[np.bool_]) -> int:
    """Return the deepest concept that all members have above them (or are)."""
    above = concepts.ancestors
    count = np.bincount(above.flat[member[row]], minlength=concepts.size)
    common = np.flatnonzero(count == np.count_nonzero(member))
    if not common.size:
        raise UsageError("the taxonomy has several roots", hint="put one concept above all others")
    return int(common[np.argmax(np.diff(above.start)[common])])


def _candidates(size: int, row: IntArray, feature: IntArray, of: IntArray) -> Candidates:
    names, feature = np.unique(feature, return_inverse=True)
    held = np.bincount(feature, minlength=names.size)
    order = np.lexsort((feature, -held[feature], row))
    features = feature[order].astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=size))]).astype(np.int64)
    holders, holders_start = _ancestry.inverted(features, start, names.size)
    some = np.flatnonzero(of >= 0)
    members = some[np.argsort(of[some], kind="stable")].astype(np.int32)
    members_start = np.concatenate([[0], np.cumsum(np.bincount(of[some]))]).astype(np.int64)
    return Candidates(features, start, holders, holders_start, members, members_start, of.astype(np.int32))


def _least(candidates: Candidates, domain: int) -> float:
    start = candidates.members_start
    members = candidates.members[start[domain] : start[domain + 1]].astype(np.int64)
    return float(similarity(*_ancestry.most_apart(members, candidates.features, candidates.features_start)))


@dataclass(frozen=True)
class ConceptSpec:
    """What determines a candidate space: all of it is in a certificate's settings."""

    taxonomy: str = ""
    phrases: str = "lexical"
    topics: str = "categories"
    criterion: str = "sqc1"
    domains: str = ""  # topics that are domains of their own; empty: one domain
    root: str = ""


class ConceptModel:
    """Concepts, topics, candidate space and reader of a spec, each loaded when it is first used."""

    def __init__(self, spec: ConceptSpec) -> None:
        self._spec = spec
        self.reader = TextReader(TextSpec(taxonomy=spec.taxonomy, phrases=spec.phrases))

    @property
    def concepts(self) -> ConceptLexicon:
        """The concepts."""
        return self.reader.lexicon

    @cached_property
    def topics(self) -> TopicPartition:
        """The topic of each concept."""
        return partition_by_topic(self.concepts, self._spec.topics)

    @cached_property
    def space(self) -> ConceptSpace:
        """The candidate space: which concepts may replace which."""
        spec = self._spec
        return _space(self.concepts, spec.topics, spec.criterion, spec.domains, spec.root)

    def is_candidate(self, concepts: IntArray) -> BoolArray:
        """Return which concepts can be drawn."""
        return np.asarray(self.space.candidates.domain[concepts] >= 0)

    def candidate_labels(self) -> dict[str, str]:
        """Return the label of every concept that can be drawn, with its category."""
        label, category = self.concepts.label, self.concepts.category
        return {label[c]: category[c] for c in self.space.candidates.members.tolist()}


@locked_cache(maxsize=4)
def _space(concepts: ConceptLexicon, topics: str, criterion: str, domains: str, root: str) -> ConceptSpace:
    top = concepts.find(root) if root else None
    if top is not None and top < 0:
        raise UsageError(
            "the taxonomy has no such `root`", hint="write it like `abstraction.n.06`, or as a path"
        )
    own = partition_by_topic(concepts, domains) if domains else None
    return concept_space(concepts, partition_by_topic(concepts, topics), criterion, own, top)
