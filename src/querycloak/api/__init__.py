"""The public functions; the command line calls these and no lower layer. Each module is loaded on use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from querycloak.api.verbs import *  # noqa: F403
    from querycloak.api.verbs import describe_attacks as describe_attacks
    from querycloak.api.verbs import describe_measures as describe_measures
    from querycloak.api.verbs import describe_methods as describe_methods
    from querycloak.api.verbs import examine_machine as examine_machine
    from querycloak.api.verbs import own_history as own_history


def __getattr__(name: str) -> Any:
    """Return a public function; a peer of the crowd must not load the libraries of an engine."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module("querycloak.api.verbs"), name)
