"""Prints the CPU minutes that each folder of tests takes: `python tools/test_budget.py [FILE]`.

FILE is `tests/durations.json`, which `python -m tests.run --store-durations` writes, or another like it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]


def by_file(path: Path) -> Counter[str]:
    """Sum the stored CPU seconds by test file."""
    found: Counter[str] = Counter()
    for function, seconds in json.loads(path.read_text("utf-8")).items():
        found[function.partition("::")[0]] += seconds
    return found


def folder_of(file: str) -> str:
    """Return the folder that a test file is counted under; `unit` by its parts."""
    parts = Path(file).parts[1:-1]
    return "/".join(parts[: 2 if parts[:1] == ("unit",) else 1]) or "."


def main(path: Path) -> None:
    """Print the table, the costliest folder first."""
    files = by_file(path)
    folders: Counter[str] = Counter()
    for file, seconds in files.items():
        folders[folder_of(file)] += seconds
    for folder, seconds in folders.most_common():
        print(f"{seconds / 60:8.1f}  {folder}")
    print(f"{folders.total() / 60:8.1f}  all, in CPU minutes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "durations.json")
