"""Brings the studies of the five papers up to date, and writes their pages and the page of all claims.

    python -m papers                    measures what is missing, and writes all pages
    python -m papers p004               one study
    python -m papers --pages-only       measures nothing
    python -m papers --quick            small logs and few settings; results and pages go to `build/papers`
    python -m papers p004 --set functions=60 --set draws=20 --results FILE   another study

Where the stored results are complete it measures nothing, and changes no page.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import fields
from functools import partial
from importlib import import_module
from pathlib import Path

from papers.common import index
from papers.common.render import write
from papers.common.results import QUICK, ROOT, stored
from papers.common.study import Study, sweep

DOCS = ROOT / "docs" / "papers"


def create(name: str, quick: bool, settings: list[str]) -> Study:
    """Return a study with these settings, each `NAME=VALUE`."""
    made: Study = import_module(f"papers.{name}.run").Study(quick=quick)
    known = {field.name: field.type for field in fields(made)}
    for setting in settings:
        key, _, value = setting.partition("=")
        if known.get(key) not in ("int", int):
            raise SystemExit(f"{name}: unknown setting `{key}`; known: {', '.join(sorted(known))}")
        setattr(made, key, int(value))
    return made


def update(name: str, chosen: argparse.Namespace) -> None:
    """Measure what one study lacks, then write its page."""
    path = chosen.results or stored(name, chosen.quick)
    if not chosen.pages_only:
        report = partial(print, flush=True)
        sweep(create(name, chosen.quick, chosen.set), path, chosen.only, report)
    folder = chosen.results.parent if chosen.results else QUICK if chosen.quick else DOCS
    results = import_module(f"papers.{name}.results").Results.load(path)
    for page in write(name, results, folder):
        print(f"wrote {page.relative_to(ROOT) if page.is_relative_to(ROOT) else page}")


def main() -> None:
    """Bring studies up to date; without names all of them, each in a process of its own, and the index."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *index.STUDIES], help=", ".join(index.STUDIES))
    parser.add_argument("--quick", action="store_true", help="small logs and few settings")
    parser.add_argument("--pages-only", action="store_true", help="measure nothing")
    parser.add_argument("--only", default="", help="measurements whose names contain this")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="setting of a study")
    parser.add_argument("--results", type=Path, help="file with the lines of another study")
    chosen = parser.parse_args()
    if len(chosen.names) == 1:
        update(chosen.names[0], chosen)
        return
    options = [argument for argument in sys.argv[1:] if argument not in chosen.names]
    for name in chosen.names or index.STUDIES:
        ended = subprocess.run([sys.executable, "-m", "papers", name, *options], cwd=ROOT, check=False)
        if ended.returncode:
            raise SystemExit(f"`python -m papers {name}` failed: see above")
    page = (QUICK if chosen.quick else DOCS) / "index.md"
    page.write_text(index.text(index.papers(partial(stored, quick=chosen.quick)), chosen.quick), "utf-8")
    print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
