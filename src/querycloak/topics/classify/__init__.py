"""What a query is about: text to a category of the taxonomy, with a confidence.

`classify_log` fills the `category` column of a log; `CLASSIFIERS` lists the mappers by name.
"""

from __future__ import annotations

from querycloak.topics.classify.confidence import CONFIDENT
from querycloak.topics.classify.frame import CLASSIFIERS, classify_log, make
from querycloak.topics.classify.http import Remote
from querycloak.topics.classify.lexical import Lexical
from querycloak.topics.classify.linguistic import Linguistic, lexical_phrases, noun_phrases
from querycloak.topics.classify.result import HOW, Classified, Classifier
from querycloak.topics.classify.terms import categories

__all__ = [
    "CLASSIFIERS",
    "CONFIDENT",
    "HOW",
    "Classified",
    "Classifier",
    "Lexical",
    "Linguistic",
    "Remote",
    "categories",
    "classify_log",
    "lexical_phrases",
    "make",
    "noun_phrases",
]
