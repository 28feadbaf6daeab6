"""Makes the golden outputs anew and prints what changed: `python -m tests.golden.update [NAME]...`.

A name is a group (`methods`) or a case (`methods/swap 1`). Read the printed changes, and give the reason for
each of them in the commit.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from tests.golden import adapter, stored
from tests.golden.cases import cases
from tests.golden.desk import Desk


def main(names: list[str]) -> int:
    """Write the named cases, or all, and print every difference."""
    changed = 0
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        adapter.seed_noise(patch)
        adapter.keep_keys(patch)
        patch.setenv("XDG_STATE_HOME", str(Path(folder, "state-home")))
        desk, known = Desk(Path(folder)), list(cases())
        for group in dict.fromkeys(case.group for case in known):
            before, now = stored.read(group), {}
            for case in (case for case in known if case.group == group):
                wanted = not names or group in names or case.id in names
                if wanted or case.name in before:
                    now[case.name] = stored.plain(case.make(desk)) if wanted else before[case.name]
            lines = list(stored.differences(group, before, now))
            print(*lines, sep="\n", end="\n" if lines else "")
            changed += len(lines)
            stored.write(group, now)
    print(f"{changed} changes")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    sys.exit(main(sys.argv[1:]))
