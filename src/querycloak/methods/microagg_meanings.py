"""What microaggregations by meanings share: a tree of categories, and a reader of what queries mean in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from querycloak import settings as declared
from querycloak.dictionary import Texts
from querycloak.methods.labels import labels_setting
from querycloak.methods.meaning_settings import mapper_setting, taxonomy_setting
from querycloak.methods.microaggregation import Microaggregation, closeness_setting, diversity_setting
from querycloak.settings import setting
from querycloak.topics.concepts.field import Field
from querycloak.topics.taxonomy import Taxonomy

UNMAPPED = "no phrase of it is known"


class MicroaggMeanings(Microaggregation):
    """The parent of microaggregations that look phrases up in a tree of categories."""

    reads = frozenset({"user", "query", "time"})

    @dataclass(frozen=True, kw_only=True)
    class Settings(declared.Settings):
        """Settings that all of them have."""

        k: int = setting(5, kind=int, at_least=2, help="people who share a history, at least")
        diversity: int = diversity_setting()
        closeness: float = closeness_setting()
        mapper: str = mapper_setting()
        taxonomy: str = taxonomy_setting()
        time: str = setting(
            "coarsen", kind=str, choices=("coarsen", "drop"), help="`coarsen` to the hour, or `drop`, times"
        )
        labels: str = labels_setting()  # type: ignore[assignment]

        def as_dict(self) -> dict[str, Any]:
            """Name files without their folders: a certificate travels."""
            return super().as_dict() | {"taxonomy": Path(self.taxonomy).name}

    settings: Settings

    def __init__(self, settings: Settings, key: bytes, texts: Texts) -> None:
        super().__init__(settings, key, texts)
        self.empties = frozenset({"url", "rank"} | ({"time"} if settings.time == "drop" else set()))
        self._field = Field(settings)

    @property
    def tree(self) -> Taxonomy:
        """The tree of categories."""
        return self._field.concepts.placed.tree
