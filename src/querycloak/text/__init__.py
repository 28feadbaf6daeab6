"""What queries mean: normal form, entities, concepts, categories, and the taxonomy behind them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from querycloak.text.classifier import CONFIDENT as CONFIDENT
    from querycloak.text.classifier import Classification as Classification
    from querycloak.text.classifier import Evidence as Evidence
    from querycloak.text.classify import CLASSIFIERS as CLASSIFIERS
    from querycloak.text.classify import Classifier as Classifier
    from querycloak.text.classify import categories as categories
    from querycloak.text.classify import classify_log as classify_log
    from querycloak.text.classify import make as make
    from querycloak.text.distance import centroid_category as centroid_category
    from querycloak.text.distance import semantic_distance as semantic_distance
    from querycloak.text.distance import similarity as similarity
    from querycloak.text.distance import user_distance as user_distance
    from querycloak.text.reader import TextReader as TextReader
    from querycloak.text.reader import TextSpec as TextSpec
    from querycloak.text.remote_classifier import RemoteClassifier as RemoteClassifier
    from querycloak.text.taxonomy import load as load
    from querycloak.text.taxonomy import load_taxonomy as load_taxonomy
    from querycloak.text.taxonomy import vocabulary as vocabulary

_MODULES = {
    "classifier": ("CONFIDENT", "Classification", "Evidence"),
    "classify": ("CLASSIFIERS", "Classifier", "categories", "classify_log", "make"),
    "distance": ("centroid_category", "semantic_distance", "similarity", "user_distance"),
    "reader": ("TextReader", "TextSpec"),
    "remote_classifier": ("RemoteClassifier",),
    "taxonomy": ("load", "load_taxonomy", "vocabulary"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
