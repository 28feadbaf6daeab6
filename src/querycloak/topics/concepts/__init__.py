"""Concepts: what queries mean, what is like what, and how a concept is said so that it is understood."""

from __future__ import annotations

from querycloak.topics.concepts.field import Field as Field
from querycloak.topics.concepts.mapper import Mapper as Mapper
from querycloak.topics.concepts.profile import PAPER_4 as PAPER_4
from querycloak.topics.concepts.profile import PAPER_19 as PAPER_19
from querycloak.topics.concepts.profile import Topics as Topics
from querycloak.topics.concepts.profile import topics_of as topics_of
from querycloak.topics.concepts.space import Space as Space
from querycloak.topics.concepts.space import space_of as space_of
from querycloak.topics.concepts.words import Concepts as Concepts
from querycloak.topics.concepts.words import concepts_of as concepts_of
