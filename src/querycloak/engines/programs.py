"""Finds the programs that are not Python: PostgreSQL, Java, a Kafka broker's jars, Chromium."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

#: Where Debian keeps the programs of each PostgreSQL version: not on the PATH.
POSTGRES_HOMES = Path("/usr/lib/postgresql")
_POSTGRES_NEEDED = ("initdb", "postgres", "pg_isready")
_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

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
    """Find Java: in JAVA_HOME, else on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return _on_path("java", f"{home}/bin" if home else None) or _on_path("java")


def kafka_folder() -> Path:
    """Say where a broker's jars belong: QUERYCLOAK_KAFKA_JARS, else a folder in the user's cache."""
    if chosen := os.environ.get("QUERYCLOAK_KAFKA_JARS"):
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "querycloak" / "kafka"


def kafka() -> Path | None:
    """Find the folder with a Kafka broker's jars."""
    return kafka_folder() if any(kafka_folder().glob("kafka_2.13-*.jar")) else None


def chromium() -> Path | None:
    """Find a Chromium that is installed; Playwright's own downloads are not used."""
    return next(filter(None, map(_on_path, _CHROMIUMS)), None)


def all_programs() -> list[Program]:
    """List every program, found or not."""
    return [
        Program("PostgreSQL", "tests of profiles in it", f"{_GET}`apt install postgresql`", postgres()),
        Program("Java", "Spark, and tests with a Kafka broker", f"{_GET}`apt install default-jre-headless`", java()),
        Program(
            "Kafka broker",
            "tests of Kafka in and out",
            f"{_GET}name a folder of jars in QUERYCLOAK_KAFKA_JARS",
            kafka(),
        ),
        Program("Chromium", "tests of the service's page", f"{_GET}`apt install chromium`", chromium()),
    ]


def how_to_get(name: str) -> str:
    """Say how to get a program."""
    return next(program.get for program in all_programs() if program.name == name)


def _on_path(name: str, path: str | None = None) -> Path | None:
    found = shutil.which(name, path=path)
    return Path(found) if found else None
