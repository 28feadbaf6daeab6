"""Publish web-search logs without publishing people, and measure what an attacker still learns.

>>> import querycloak as qc
>>> log = qc.generate(users=50, seed=1)
>>> release = qc.protect(log, "frequent-only", k=2, seed=1)
>>> release.certificate["audit"]
'kept'
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from querycloak._version import __version__

if TYPE_CHECKING:
    from querycloak import measures, text
    from querycloak.api import (
        Release,
        attack,
        classify,
        compare,
        generate,
        measure,
        protect,
        read,
        recommend,
        verify,
        write,
    )
    from querycloak.log import Log

__all__ = [
    "Log",
    "Release",
    "__version__",
    "attack",
    "classify",
    "compare",
    "generate",
    "measure",
    "measures",
    "protect",
    "read",
    "recommend",
    "text",
    "verify",
    "write",
]

_MODULES = ("measures", "text", "testing", "errors", "spark")
_VERBS = frozenset(__all__) - {"Log", "__version__", *_MODULES}


class _Package(ModuleType):
    """The package as a module whose functions are not hidden by subpackages of the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing `querycloak.compare` would bind that name here, in place of the function `compare`.
        if not (name in _VERBS and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Load public names on first use, so that importing the package costs nothing."""
    if name == "Log" or name in _VERBS:
        return getattr(import_module(f"querycloak.{'log' if name == 'Log' else 'api'}"), name)
    if name in _MODULES:
        return import_module(f"querycloak.{name}")
    raise AttributeError(f"module 'querycloak' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
