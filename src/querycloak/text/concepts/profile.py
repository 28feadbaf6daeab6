"""`Topics`: the general topics by which users are profiled, and which of them each concept belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from querycloak.errors import UsageError
from querycloak.text.concepts.words import Concepts, once

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
#: What stands for all concepts that belong to no topic.
OTHER: Final = "everything else"


@dataclass(frozen=True)
class Topics:
    """Names of topics, and the topic of each concept, by number."""

    names: tuple[str, ...]
    of: npt.NDArray[np.int32]

    @property
    def has_other(self) -> bool:
        """Say whether the last topic is what belongs to none."""
        return self.names[-1] == OTHER


@once  # it looks at every concept
def topics_of(concepts: Concepts, wanted: str = "categories") -> Topics:
    """Sort concepts by topic.

    `categories` are the first names of their paths, `paper-4` and `paper-19` the paper's; else it is a list
    of concepts, separated by commas. A concept belongs to the deepest topic above it, of equals to the first;
    all others together are one more topic.
    """
    if wanted == "categories":
        return _by_category(concepts)
    listed = {"paper-4": PAPER_4, "paper-19": PAPER_19}.get(wanted)
    names = listed or tuple(name.strip() for name in wanted.split(",") if name.strip())
    return _below(concepts, names)


def _by_category(concepts: Concepts) -> Topics:
    tops = [path.partition("/")[0] for path in concepts.category]
    names = sorted(set(tops) - {""})
    number = {name: place for place, name in enumerate(names)}
    of = np.array([number.get(top, len(names)) for top in tops], np.int32)
    return Topics((*names, OTHER) if len(names) in of else tuple(names), of)


def _below(concepts: Concepts, names: tuple[str, ...]) -> Topics:
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
    return Topics((*names, OTHER), of)
