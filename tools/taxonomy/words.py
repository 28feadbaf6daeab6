"""What the synsets and the lexicon say: terms with weights, and the words that a made-up log may use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from querycloak.text.normalise import normalise_text
from taxonomy.placement import STRONG, Placer
from taxonomy.wordnet import WordNet

#: How much a lemma speaks for its first, second, ... sense.
SENSE_WEIGHTS = (1.0, 0.5, 0.3, 0.2, 0.15)
#: The same for a lemma that was never met in the tagged texts: then the order of senses says little.
UNTAGGED_WEIGHTS = (1.0, 0.8, 0.6, 0.45, 0.35)
RARE_SENSE = 0.1
#: Above every count in the tagged texts, so that our lists come before WordNet's words, in their own order.
OURS_FIRST = 1_000_000
PERSON = 18
INSULTS = ("ethnic_slur.n.01", "disparagement.n.01", "obscenity.n.02")
NOT_FOR_LOGS = ("taxonomic_group.n.01",)
PLAIN_WORDS = re.compile(r"[a-z]{3,}( [a-z]{2,}){0,3}")


@dataclass
class Words:
    """Everything that speaks for a node, from both sources."""

    wordnet: WordNet
    placer: Placer
    node: list[int]
    lexicon: dict[str, dict[str, float]]
    domains: dict[str, int]

    def terms(self) -> Iterator[tuple[str, int, float]]:
        """List (phrase, node, weight)."""
        for category, terms in self.lexicon.items():
            yield from ((term, self.domains[category], weight) for term, weight in terms.items())
        for lemma, senses in self.wordnet.senses.items():
            by_rank = SENSE_WEIGHTS if (lemma, 1) in self.wordnet.counts else UNTAGGED_WEIGHTS
            for synset, weight in zip_longest(senses, by_rank[: len(senses)], fillvalue=RARE_SENSE):
                yield lemma, self.node[synset], max(weight * self.placer.place(synset).weight, 0.01)

    def usual(self, inner: set[int], parent: list[int]) -> Iterator[tuple[int, str, int]]:
        """List (node, phrase, how common) for made-up logs: each phrase once, in its main meaning."""
        taken = set()
        listed = self._strongest()
        for place, (term, (node, _)) in enumerate(listed.items()):
            taken.add(term)
            yield node, term, OURS_FIRST + len(listed) - place
        for lemma, senses in self.wordnet.senses.items():
            phrase = normalise_text(lemma)
            if phrase not in taken and PLAIN_WORDS.fullmatch(phrase) and self._is_fit(senses):
                taken.add(phrase)
                node = self.node[senses[0]]
                yield node if node in inner else parent[node], phrase, self.wordnet.counts.get((lemma, 1), 0)

    def _strongest(self) -> dict[str, tuple[int, float]]:
        best: dict[str, tuple[int, float]] = {}
        for category, terms in self.lexicon.items():
            for term, weight in terms.items():
                phrase = normalise_text(term)
                if weight > best.get(phrase, (0, 0.0))[1]:
                    best[phrase] = self.domains[category], weight
        return best

    def _is_fit(self, senses: list[int]) -> bool:
        """Leave out what nobody searches for, insults (in any sense), and people who lived."""
        first = self.wordnet.synsets[senses[0]]
        lived = first.instance and first.file == PERSON
        sure = self.placer.place(senses[0]).weight >= STRONG
        insult = any(map(self._is_insult, senses))
        return sure and not lived and not insult and not self._is_below(senses[0], self._unfit)

    def _is_insult(self, index: int) -> bool:
        synset = self.wordnet.synsets[index]
        return synset.rude or any(usage in self._insults for usage in synset.usages)

    def __post_init__(self) -> None:
        self._insults = {self.wordnet.find(name) for name in INSULTS}
        self._unfit = {self.wordnet.find(name) for name in NOT_FOR_LOGS}

    def _is_below(self, index: int, tops: set[int]) -> bool:
        return index in tops or any(self._is_below(up, tops) for up in self.wordnet.synsets[index].parents)
