"""What a query is about: text to a category of the taxonomy, with a confidence.

`classify_log` fills the `category` column of a log; `CLASSIFIERS` lists the mappers by name.
"""

from __future__ import annotations

from querycloak.text.classify.confidence import CONFIDENT
from querycloak.text.classify.frame import CLASSIFIERS, classify_log, make
from querycloak.text.classify.http import Remote
from querycloak.text.classify.lexical import Lexical
from querycloak.text.classify.linguistic import lexical_phrases, noun_phrases
from querycloak.text.classify.result import HOW, Classified, Classifier
from querycloak.text.classify.terms import categories

__all__ = [
    "CLASSIFIERS",
    "CONFIDENT",
    "HOW",
    "Classified",
    "Classifier",
    "Lexical",
    "Remote",
    "categories",
    "classify_log",
    "lexical_phrases",
    "make",
    "noun_phrases",
]
