"""Topics: a taxonomy of categories, what a query is about, and how far two categories lie apart."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from querycloak.text.classify import CLASSIFIERS as CLASSIFIERS
    from querycloak.text.classify import CONFIDENT as CONFIDENT
    from querycloak.text.classify import Classified as Classified
    from querycloak.text.classify import Classifier as Classifier
    from querycloak.text.classify import Remote as Remote
    from querycloak.text.classify import categories as categories
    from querycloak.text.classify import classify_log as classify_log
    from querycloak.text.classify import lexical_phrases as lexical_phrases
    from querycloak.text.classify import noun_phrases as noun_phrases
    from querycloak.text.distance import centroid_category as centroid_category
    from querycloak.text.distance import semantic_distance as semantic_distance
    from querycloak.text.distance import similarity as similarity
    from querycloak.text.distance import user_distance as user_distance
    from querycloak.text.graph import wordnet_graph as wordnet_graph
    from querycloak.text.loaders import load_taxonomy as load_taxonomy
    from querycloak.text.taxonomy import load as load
    from querycloak.text.wordlist import vocabulary as vocabulary

_MODULES = {
    "classify": (
        "CLASSIFIERS",
        "CONFIDENT",
        "Classified",
        "Classifier",
        "Remote",
        "categories",
        "classify_log",
        "lexical_phrases",
        "noun_phrases",
    ),
    "distance": ("centroid_category", "semantic_distance", "similarity", "user_distance"),
    "graph": ("wordnet_graph",),
    "loaders": ("load_taxonomy",),
    "taxonomy": ("load",),
    "wordlist": ("vocabulary",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
