"""Names to classes: built-in parts and plugins, imported only when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from querycloak.errors import UnknownName


@dataclass
class Registry:
    """A table of names; plugins come by entry point and cannot replace what is built in."""

    kind: str
    group: str
    built_in: Mapping[str, str]
    added: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def _table(self) -> dict[str, str]:
        plugins = {entry.name: entry.value for entry in entry_points(group=self.group)}
        return plugins | dict(self.built_in)

    def names(self) -> list[str]:
        """List every name, built-in ones first, in the order of their declaration."""
        rest = sorted((set(self._table) | set(self.added)) - set(self.built_in))
        return [*self.built_in, *rest]

    def add(self, name: str, part: Any) -> None:
        """Register a part by hand, as a notebook or a test does."""
        if name in self.built_in:
            raise UnknownName(f"the {self.kind} `{name}` is built in and cannot be replaced")
        self.added[name] = part

    def get(self, name: str) -> Any:
        """Give the part of that name, or say which name was probably meant."""
        if name in self.added:
            return self.added[name]
        if name not in self._table:
            raise UnknownName(f"no {self.kind} is called `{name}`", hint=self._hint(name))
        module, _, attribute = self._table[name].partition(":")
        return getattr(import_module(module), attribute)

    def _hint(self, name: str) -> str:
        near = get_close_matches(name, self.names(), n=1)
        return f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(self.names())}"


METHODS = Registry(
    kind="protection method",
    group="querycloak.methods",
    built_in={
        "swap": "querycloak.methods.swap:Swap",
        "cohort": "querycloak.methods.cohort:Cohort",
        "km": "querycloak.methods.km:Km",
        "dp-semantic": "querycloak.methods.dp_semantic:DpSemantic",
        "threshold-dp": "querycloak.methods.threshold_dp:ThresholdDp",
        "dp-histogram": "querycloak.methods.dp_histogram:DpHistogram",
        "microagg-semantic": "querycloak.methods.microagg_semantic:MicroaggSemantic",
        "microagg-syntactic": "querycloak.methods.microagg_syntactic:MicroaggSyntactic",
        "microagg-topic": "querycloak.methods.microagg_topic:MicroaggTopic",
        "microagg-plain": "querycloak.methods.microagg_plain:MicroaggPlain",
        "graph-suppress": "querycloak.methods.graph_suppress:GraphSuppress",
        "frequent-only": "querycloak.methods.frequent_only:FrequentOnly",
        "short-sessions": "querycloak.methods.short_sessions:ShortSessions",
        "z-anonymity": "querycloak.methods.z_anonymity:ZAnonymity",
        "rules": "querycloak.methods.rules:Rules",
    },
)

ATTACKS = Registry(
    kind="attack",
    group="querycloak.attacks",
    built_in={
        "link-random": "querycloak.attacks.link_random:LinkRandom",
        "link-frequent": "querycloak.attacks.link_frequent:LinkFrequent",
        "link-profile": "querycloak.attacks.link_profile:LinkProfile",
        "link-window": "querycloak.attacks.link_window:LinkWindow",
        "link-repeat": "querycloak.attacks.link_repeat:LinkRepeat",
        "link-time": "querycloak.attacks.link_time:LinkTime",
        "link-volume": "querycloak.attacks.link_volume:LinkVolume",
        "link-pairs": "querycloak.attacks.link_pairs:LinkPairs",
        "link-overlap": "querycloak.attacks.link_overlap:LinkOverlap",
        "link-background": "querycloak.attacks.link_background:LinkBackground",
        "link-learned": "querycloak.attacks.link_learned:LinkLearned",
        "predecessor": "querycloak.attacks.predecessor:Predecessor",
        "bayes-concept": "querycloak.attacks.bayes_concept:BayesConcept",
        "copy": "querycloak.attacks.controls:Copy",
        "guess": "querycloak.attacks.controls:Guess",
    },
)

MEASURES = Registry(
    kind="measure",
    group="querycloak.measures",
    built_in={
        "release_rate": "querycloak.measures.on_logs:ReleaseRate",
        "top_preserved": "querycloak.measures.on_logs:TopPreserved",
        "retention": "querycloak.measures.on_logs:Retention",
        "jensen_shannon": "querycloak.measures.on_logs:JensenShannon",
        "tree_emd": "querycloak.measures.on_logs:TreeEmd",
        "profile_loss": "querycloak.measures.on_logs:ProfileLoss",
        "profile_exposure": "querycloak.measures.by_person:ProfileExposure",
        "information_loss_ratio": "querycloak.measures.by_person:InformationLossRatio",
        "semantic_remain": "querycloak.measures.by_person:SemanticRemain",
        "record_linkage": "querycloak.measures.by_person:RecordLinkage",
        "partition_loss": "querycloak.measures.mining:PartitionLoss",
        "topic_loss": "querycloak.measures.meaning:TopicLoss",
        "meaning_kept": "querycloak.measures.meaning:MeaningKept",
        "readability": "querycloak.measures.meaning:Readability",
        "delay": "querycloak.measures.on_logs:Delay",
        "terms_kept": "querycloak.measures.uses:TermsKept",
        "sessions_kept": "querycloak.measures.uses:SessionsKept",
        "clicks_kept": "querycloak.measures.uses:ClicksKept",
        "unique_texts": "querycloak.measures.uses:UniqueTexts",
    },
)
