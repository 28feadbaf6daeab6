"""Plans that come ready-made: a quick look, a full one, and the settings of each paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from querycloak.engines.compare.asked import Candidate, parse
from querycloak.engines.compare.plan import Plan, attacks_of, measures_of
from querycloak.engines.compare.presets_sharing import SHARING
from querycloak.errors import UnknownName
from querycloak.registry import MEASURES

#: What every comparison asks unless it says otherwise: the strongest attacks of each game, and two controls.
ATTACKS: Final = (
    "link-window",
    "link-repeat",
    "link-time",
    "link-volume",
    "link-pairs",
    "link-overlap",
    "link-overlap:on=categories",
    "link-background",
    "bayes-concept",
    "guess",
)
#: What no protection but new ids would give; some logs were published like this.
_PSEUDONYMS: Final = (
    "pseudonyms only::rules:labels=fresh:digits=no:emails=no:phones=no:cards=no:names=no"
    ":max_words=100000:max_letters=100000000"
)
_PAPER_000: Final = ("link-random", "link-frequent", "link-profile")
#: Measures that take no more than a moment each.
MEASURED: Final = (
    "release_rate",
    "top_preserved",
    "retention",
    "jensen_shannon",
    "tree_emd",
    "profile_loss",
    "profile_exposure",
    "semantic_remain",
    "terms_kept",
    "sessions_kept",
    "clicks_kept",
    "unique_texts",
    "delay",
)


@dataclass(frozen=True)
class Preset:
    """A plan by name: what it runs, and what it is for."""

    about: str
    candidates: tuple[str, ...]
    attacks: tuple[str, ...] = ATTACKS
    measures: tuple[str, ...] = MEASURED
    sample: int = 0
    repeats: int = 1
    seconds: float = 600.0

    def plan(self, name: str | None = None) -> Plan:
        """Give the plan."""
        return Plan(
            tuple(parse(self.candidates)),
            attacks_of(self.attacks),
            measures_of(self.measures or MEASURES.names()),
            repeats=self.repeats,
            sample=self.sample,
            seconds=self.seconds,
            preset=name,
        )


PRESETS: Final[dict[str, Preset]] = {
    "quick": Preset(
        "Every method with a few settings on at most 3,000 people, in a few minutes",
        (
            _PSEUDONYMS,
            "rules",
            "swap:k=5,10,30",
            "cohort:k=5,10,30,100",
            "cohort:assign=similar:k=5,10,30",
            "rules+cohort:cohort.k=10",
            "km:m=2:k=2,5,20",
            "dp-semantic:per=query:epsilon=1,5,10",
            "dp-histogram:epsilon=1,10",
            "threshold-dp",
            "threshold-dp:output=log:d=5:K=20:b=1",
            "microagg-semantic:k=3,5,10",
            "microagg-topic:k=3,5,10",
            "microagg-plain:k=3,5,10",
            "microagg-syntactic:k=5",
            "graph-suppress:k=2,5",
            "frequent-only:k=2,5,20",
            "z-anonymity:window=86400:z=2,5,20",
            "short-sessions:k=5,20",
        ),
        sample=3_000,
        seconds=120.0,
    ),
    "full": Preset(
        "Every method along its settings, all measures, three times, on at most 20,000 people",
        (
            _PSEUDONYMS,
            "rules",
            "rules:labels=fresh",
            "swap:k=3,5,10,20,50,100",
            "swap:level=3:k=3,5,10,20,50,100",
            "swap:time=drop:k=3,5,10,20,50,100",
            "swap:guard=1/k:k=5,10",
            "cohort:k=3,5,10,20,50,100,200",
            "cohort:assign=similar:k=3,5,10,20,50,100",
            "cohort:time=drop:k=3,5,10,20,50,100",
            "rules+cohort:cohort.k=5,10,50",
            "km:m=1:k=2,5,10,50",
            "km:m=2:k=2,5,10,50",
            "km:m=3:k=2,5,10,50",
            "dp-semantic:per=query:epsilon=0.5,1,2,5,10,20",
            "dp-semantic:epsilon=1,5,10",
            "dp-histogram:epsilon=0.1,1,10",
            "threshold-dp",
            "threshold-dp:output=log:K=20:b=1:d=1,5,20",
            "microagg-semantic:k=2,3,5,10,20",
            "microagg-topic:k=2,3,5,10,20",
            "microagg-plain:k=2,3,5,10,20",
            "microagg-syntactic:k=3,5,10",
            "graph-suppress:k=2,5,10",
            "frequent-only:k=2,5,10,50",
            "z-anonymity:window=3600:z=2,5,20",
            "z-anonymity:window=86400:z=2,5,20",
            "short-sessions:k=2,5,20,50",
            "short-sessions:rare=terms:k=2,5,20,50",
        ),
        attacks=(*_PAPER_000, *ATTACKS),
        measures=(),
        sample=20_000,
        repeats=3,
        seconds=3_600.0,
    ),
    "paper-000": Preset(
        "Real-time protection by swapping users, and its repair: k from 3 to 190 at three depths",
        (
            "swap:level=1:k=3,10,30,100,190",
            "swap:level=6:k=3,10,30,100,190",
            "swap:level=13:k=3,10,30,100,190",
            "cohort:k=3,10,30,100,190",
        ),
        attacks=(*_PAPER_000, "link-window", "link-repeat", "link-time", "guess"),
        measures=("release_rate", "tree_emd", "profile_loss", "delay"),
        sample=20_000,
    ),
    "paper-001": Preset(
        "(k,m)-anonymity for advertising: m = 2 and 3, every target",
        tuple(
            f"km:target={target}:m={m}:k=2,10,100"
            for target in ("distinct", "logsize", "users")
            for m in (2, 3)
        ),
        attacks=("link-overlap:on=terms", "link-background:known=terms:queries=2", "guess"),
        measures=("release_rate", "retention", "top_preserved"),
        sample=20_000,
    ),
    "paper-002": Preset(
        "Replacement by meaning: three criteria, two readings of the budget, and the histogram",
        (
            *(
                f"dp-semantic:criterion={criterion}:per={per}:epsilon=0.1,0.5,1,2,5,10"
                for criterion in ("sqc1", "sqc2", "none")
                for per in ("history", "query")
            ),
            "dp-histogram:epsilon=0.1,0.5,1,2,5,10",
        ),
        attacks=("bayes-concept", "link-overlap", "link-background", "guess"),
        measures=("release_rate", "topic_loss", "meaning_kept", "jensen_shannon"),
        sample=1_000,
    ),
    "paper-003": Preset(
        "Three microaggregations of histories, and what removes queries instead",
        (
            "microagg-syntactic:k=2,3,4,5,6,7",
            "microagg-topic:k=2,3,4,5,6,7",
            "microagg-semantic:k=2,3,4,5,6,7",
            "microagg-plain:k=2,3,4,5,6,7",
            "threshold-dp:output=log:K=20:b=1:d=1,5",
            "graph-suppress:k=2,5,10",
        ),
        attacks=("link-overlap", "link-overlap:on=categories", "link-background", "guess"),
        measures=(
            "release_rate",
            "profile_exposure",
            "information_loss_ratio",
            "semantic_remain",
            "record_linkage",
            "partition_loss",
        ),
        sample=1_000,
    ),
    "paper-004": Preset(
        "Linking by learning: the learned attack on releases whose histories stay whole, and on those mixed",
        ("rules:labels=fresh", "swap:k=10", "cohort:k=10", "microagg-topic:k=5", "microagg-plain:k=5"),
        attacks=("link-learned", "link-pairs", "link-overlap", "guess"),
        measures=("release_rate", "top_preserved", "profile_loss"),
        sample=200,
        seconds=3_600.0,
    ),
    "search-data-sharing": Preset(**SHARING),
}


def preset(name: str) -> Plan:
    """Give a plan by name."""
    if name not in PRESETS:
        about = "".join(f"\n  {known}: {one.about}" for known, one in PRESETS.items())
        raise UnknownName(
            f"no preset is called `{name}`", hint=f"the presets are {', '.join(PRESETS)}{about}"
        )
    return PRESETS[name].plan(name)


def own(candidates: list[Candidate]) -> Plan:
    """Give the plan of somebody who named methods, with the usual attacks and measures."""
    return Plan(tuple(candidates), attacks_of(ATTACKS), measures_of(MEASURED))
