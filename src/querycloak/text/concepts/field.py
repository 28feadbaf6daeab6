"""`Field`: the taxonomy, topics, domains and reader that the settings of a release name."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from querycloak.errors import UsageError
from querycloak.text.concepts.mapper import Mapper
from querycloak.text.concepts.profile import Topics, topics_of
from querycloak.text.concepts.space import Space, space_of
from querycloak.text.concepts.words import Concepts, concepts_of, once


class Field:
    """The taxonomy that a method's settings name: its concepts, topics, domains, and a reader of queries.

    Loaded when it is first asked for: describing a method should not take a second.
    """

    def __init__(self, settings: Any) -> None:
        self._settings = settings

    @property
    def concepts(self) -> Concepts:
        """The concepts."""
        return concepts_of(self._settings.taxonomy)

    @cached_property
    def topics(self) -> Topics:
        """The topic of each concept."""
        return topics_of(self.concepts, self._settings.topics)

    @cached_property
    def space(self) -> Space:
        """Who can replace whom."""
        s = self._settings
        own = getattr(s, "domain", "all") == "topic"
        domains = (s.domain_topics or s.topics) if own else ""
        return _space(self.concepts, s.topics, getattr(s, "criterion", "sqc1"), domains, s.root)

    @cached_property
    def mapper(self) -> Mapper:
        """The reader of queries."""
        return Mapper(self.concepts, self._settings.mapper)

    def spoken(self) -> dict[str, str]:
        """Return the words of every concept that can be drawn, with its category; not to be changed."""
        return _spoken(self.concepts, self.space)


@once
def _spoken(concepts: Concepts, space: Space) -> dict[str, str]:
    return {concepts.spoken[c]: concepts.category[c] for c in space.candidates.members.tolist()}


@once
def _space(concepts: Concepts, topics: str, criterion: str, domains: str, root: str) -> Space:
    top = concepts.find(root) if root else None
    if top is not None and top < 0:
        raise UsageError(
            "the taxonomy has no such `root`", hint="write it like `abstraction.n.06`, or as a path"
        )
    own = topics_of(concepts, domains) if domains else None
    return space_of(concepts, topics_of(concepts, topics), criterion, own, top)
