"""Runs every test that this machine can run, and names each group it had to leave out and why.

`QUERYCLOAK_REQUIRE=all` turns leaving out into failure. With `--fast` only the fast set of `tests/unit` runs,
with `--nightly` what does more at night, deeply. Other arguments go to pytest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from importlib.util import find_spec

import pytest

from tests.groups import GROUPS, SERVERS, is_installed
from tests.support import programs

#: Seconds that a test may take at night, with many more drawn inputs.
NIGHT = 3600
#: Each worker has a core: threads of libraries that wait for one another would only burn it.
QUIET = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def left_out() -> dict[str, list[str]]:
    """Return the groups that cannot run, and what each lacks."""
    absent = {program.name: program.install for program in programs.all_programs() if program.place is None}
    lacks = {
        mark: [f"not installed: {group.install}"] * (not is_installed(mark))
        + [f"no {name}: {absent[name]}" for name in group.programs if name in absent]
        for mark, group in GROUPS.items()
    }
    return {mark: reasons for mark, reasons in lacks.items() if reasons}


def selection(missing: Collection[str], *, nightly: bool) -> str:
    """Write the marks of what runs as pytest wants them.

    At night these are the tests that do more then: those that draw their inputs, and those marked so.
    """
    chosen = "(hypothesis or nightly)" if nightly else "not nightly"
    return " and ".join([chosen, *(f"not {mark}" for mark in missing)])


def workers(*, waiting: bool) -> list[str]:
    """Choose how many processes run tests: one per core, and one more for tests that wait for servers."""
    if find_spec("xdist") is None:
        return []
    number = min(os.cpu_count() or 1, 4) + waiting
    # `loadgroup`: tests/workers.py says which tests share a worker, and in which order they start.
    return ["-n", str(number), "--dist", "loadgroup", "--no-loadscope-reorder"]


def main(arguments: list[str]) -> int:
    """Run the tests; `--fast` and `--nightly` choose other sets, all else is pytest's."""
    nightly, fast = "--nightly" in arguments, "--fast" in arguments
    given = [argument for argument in arguments if argument != "--nightly"]
    missing = left_out()
    if not fast:
        for mark, reasons in missing.items():
            print(f"left out: group `{mark}` ({'; '.join(reasons)})", flush=True)
    if missing and os.environ.get("QUERYCLOAK_REQUIRE") == "all":
        print("QUERYCLOAK_REQUIRE=all: leaving out is failing", flush=True)
        return 1
    if nightly:
        os.environ.setdefault("QUERYCLOAK_HYPOTHESIS", "deep")
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each worker rewrites all tests' assertions anew
    waiting = not fast and bool({"spark", *SERVERS} - missing.keys())
    chosen = ["-m", selection(missing, nightly=nightly)]
    places = ["tests/unit"] if fast else []
    places += ["--timeout", str(NIGHT)] if nightly else []
    return int(pytest.main([*chosen, *workers(waiting=waiting), *places, *given]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
