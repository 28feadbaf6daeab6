"""Concepts: what queries mean, what is like what, and how a concept is said so that it is understood."""

from __future__ import annotations

from querycloak.text.concepts.field import Field as Field
from querycloak.text.concepts.mapper import Mapper as Mapper
from querycloak.text.concepts.profile import PAPER_4 as PAPER_4
from querycloak.text.concepts.profile import PAPER_19 as PAPER_19
from querycloak.text.concepts.profile import Topics as Topics
from querycloak.text.concepts.profile import topics_of as topics_of
from querycloak.text.concepts.space import Space as Space
from querycloak.text.concepts.space import space_of as space_of
from querycloak.text.concepts.words import Concepts as Concepts
from querycloak.text.concepts.words import concepts_of as concepts_of
