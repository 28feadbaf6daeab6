"""Names to classes: built-in parts and plugins, imported only when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from querycloak.errors import QueryCloakError, UnknownName, UsageError

if TYPE_CHECKING:
    from querycloak.protector import Labels, Traits


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

    def items(self) -> list[tuple[str, Any]]:
        """List every name with its part."""
        return [(name, self.get(name)) for name in self.names()]

    def add(self, name: str, part: Any) -> None:
        """Register a part by hand, as a notebook or a test does."""
        if name in self.built_in:
            raise UnknownName(f"the {self.kind} `{name}` is built in and cannot be replaced")
        self.added[name] = part

    def get(self, name: str) -> Any:
        """Return the part of that name, or say which name was probably meant."""
        if name in self.added:
            return self.added[name]
        if name not in self._table:
            near = get_close_matches(name, self.names(), n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(self.names())}"
            raise UnknownName(f"no {self.kind} is called `{name}`", hint=hint)
        module, _, attribute = self._table[name].partition(":")
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            if name in self.built_in or isinstance(error, QueryCloakError):
                raise
            raise UsageError(
                f"the {self.kind} `{name}` is a plug-in that cannot be loaded ({type(error).__name__})",
                hint=f"repair or uninstall the package of `{module}`",
            ) from error


METHODS = Registry(
    kind="protection method",
    group="querycloak.methods",
    built_in={
        "swap": "querycloak.methods.swap:Swap",
        "cohort": "querycloak.methods.cohort:Cohort",
        "km": "querycloak.methods.km:Km",
        "dp-semantic": "querycloak.methods.dp_semantic:DpSemantic",
        "threshold-dp": "querycloak.methods.dp_counts.threshold:ThresholdDp",
        "dp-histogram": "querycloak.methods.dp_counts.histogram:DpHistogram",
        "microagg-semantic": "querycloak.methods.microaggregation.by_meaning:MicroaggSemantic",
        "microagg-syntactic": "querycloak.methods.microaggregation.by_text:MicroaggSyntactic",
        "microagg-topic": "querycloak.methods.microaggregation.by_meaning:MicroaggTopic",
        "microagg-plain": "querycloak.methods.microaggregation.by_text:MicroaggPlain",
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
        "link-random": "querycloak.attacks.link_replay:LinkRandom",
        "link-frequent": "querycloak.attacks.link_replay:LinkFrequent",
        "link-profile": "querycloak.attacks.link_replay:LinkProfile",
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
        "release_rate": "querycloak.measures.counts:ReleaseRate",
        "top_preserved": "querycloak.measures.counts:TopPreserved",
        "retention": "querycloak.measures.counts:Retention",
        "jensen_shannon": "querycloak.measures.counts:JensenShannon",
        "tree_emd": "querycloak.measures.counts:TreeEmd",
        "profile_loss": "querycloak.measures.profiles:ProfileLoss",
        "profile_exposure": "querycloak.measures.histories:ProfileExposure",
        "information_loss_ratio": "querycloak.measures.histories:InformationLossRatio",
        "semantic_remain": "querycloak.measures.histories:SemanticRemain",
        "record_linkage": "querycloak.measures.histories:RecordLinkage",
        "partition_loss": "querycloak.measures.partitions:PartitionLoss",
        "topic_loss": "querycloak.measures.meaning:TopicLoss",
        "meaning_kept": "querycloak.measures.meaning:MeaningKept",
        "readability": "querycloak.measures.meaning:Readability",
        "delay": "querycloak.measures.delay:Delay",
        "terms_kept": "querycloak.measures.uses:TermsKept",
        "sessions_kept": "querycloak.measures.uses:SessionsKept",
        "clicks_kept": "querycloak.measures.uses:ClicksKept",
        "unique_texts": "querycloak.measures.uses:UniqueTexts",
    },
)


COVERS = Registry(
    kind="obfuscation method",
    group="querycloak.covers",
    built_in={
        "tmn": "querycloak.clients.obfuscation.tmn:TrackMeNot",
        "usr": "querycloak.clients.obfuscation.borrowed:UserCover",
        "hybrid": "querycloak.clients.obfuscation.borrowed:HybridCover",
        "shadow": "querycloak.clients.obfuscation.shadow:Shadow",
    },
)


#: Parts that were registered by hand, as `module:name`, by kind of part and name.
Additions = dict[str, dict[str, str]]


def additions() -> Additions:
    """Return the parts registered by hand that another process can import."""
    return {
        one.kind: {
            name: f"{part.__module__}:{part.__qualname__}"
            for name, part in one.added.items()
            if part.__module__ != "__main__" and "<locals>" not in part.__qualname__
        }
        for one in (METHODS, ATTACKS, MEASURES)
    }


def add_all(parts: Additions) -> None:
    """Register parts of another process here."""
    for one in (METHODS, ATTACKS, MEASURES):
        for name, place in parts.get(one.kind, {}).items():
            module, _, attribute = place.partition(":")
            one.add(name, attrgetter(attribute)(import_module(module)))


def traits_of(part: Mapping[str, Any]) -> Traits | None:
    """Return the traits of one method of a certificate or ledger entry: `{"method": …, "settings": …}`.

    None if the method is not installed here, or no longer takes these settings.
    """
    try:
        method = METHODS.get(part["method"])
        known = {f.name for f in fields(method.Settings)}
        settings = method.Settings(**{n: v for n, v in part["settings"].items() if n in known})
    except (LookupError, ValueError, TypeError):
        return None
    found: Traits = method.traits(settings)
    return found


def stages_of(certificate: Mapping[str, Any]) -> list[tuple[str, Traits | None]]:
    """Return the methods of a release with their traits; None for a method that is not installed here."""
    return [(str(part["method"]), traits_of(part)) for part in certificate.get("methods", [])]


def labelling_of(stages: Sequence[tuple[str, Traits | None]]) -> int:
    """Return the place of the last method that exchanges labels, or of the last one; -1 without methods."""
    exchanging = [place for place, (_, own) in enumerate(stages) if own and own.labels.exchanged]
    return exchanging[-1] if exchanging else len(stages) - 1


def labels_of(certificate: Mapping[str, Any]) -> Labels:
    """Return what a label of a release means."""
    from querycloak.protector import Labels

    stages = stages_of(certificate)
    own = stages[labelling_of(stages)][1] if stages else None
    return own.labels if own is not None else Labels.OWN
