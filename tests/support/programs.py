"""Programs that only tests need: PostgreSQL, a Kafka broker, Chromium. `environment` finds the others."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from querycloak import environment
from querycloak.environment import HINT, Program, jars_folder, on_path

#: Where Debian keeps the programs of each PostgreSQL version: not on the PATH.
POSTGRES_HOMES = Path("/usr/lib/postgresql")
_POSTGRES_NEEDED = ("initdb", "postgres", "pg_isready")
_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def postgres() -> Path | None:
    """Return the folder of PostgreSQL's server programs: the PATH's, else the newest of Debian's."""
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


def kafka_folder() -> Path:
    """Return the folder for a broker's jars: QUERYCLOAK_KAFKA_JARS, else one in the user's cache."""
    return jars_folder("QUERYCLOAK_KAFKA_JARS", "kafka")


def kafka() -> Path | None:
    """Return the folder with a Kafka broker's jars."""
    return kafka_folder() if any(kafka_folder().glob("kafka_2.13-*.jar")) else None


def chromium() -> Path | None:
    """Return an installed Chromium; Playwright's own downloads are not used."""
    return next(filter(None, map(on_path, _CHROMIUMS)), None)


def all_programs() -> list[Program]:
    """Return every program that tests need, found or not."""
    return [
        Program("PostgreSQL", "tests of profiles in it", f"{HINT}`apt install postgresql`", postgres()),
        *environment.all_programs(),
        Program(
            "Kafka broker",
            "tests of Kafka in and out",
            f"{HINT}name a folder of jars in QUERYCLOAK_KAFKA_JARS",
            kafka(),
        ),
        Program("Chromium", "tests of the service's page", f"{HINT}`apt install chromium`", chromium()),
    ]


def how_to_install(name: str) -> str:
    """Return how to install a program."""
    return next(program.install for program in all_programs() if program.name == name)
