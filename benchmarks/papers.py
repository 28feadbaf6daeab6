"""Brings the studies of the five papers up to date, and writes their pages and the page of all claims.

    python -m benchmarks.papers                 measures what is missing, and writes all pages
    python -m benchmarks.papers --pages-only    measures nothing
    python -m benchmarks.papers --quick         small logs and few settings; pages go to `build`

Where the stored results are complete it measures nothing, and changes no page.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.__main__ import RESULTS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers" / "index.md"
QUICK_PAGE = ROOT / "build" / "papers-quick" / "index.md"
#: The studies by the names of their modules; results and pages are named after them.
STUDIES = ("paper_000", "paper_001", "paper_002", "paper_003", "paper_003_crowd", "paper_004")


def stored(study: str) -> Path:
    """Name the file with a study's results."""
    return RESULTS / f"{study}.jsonl"


def stored_quick(study: str) -> Path:
    """Name the file with the results of a study's quick run."""
    return (QUICK_PAGE.parents[1] if study == "paper-000" else RESULTS) / f"{study}-quick.jsonl"


def bring_up_to_date(study: str, quick: bool, pages_only: bool) -> None:
    """Run a study's own command, which carries on where it was stopped."""
    options = ["--quick"] * quick + ["--only-draw"] * pages_only
    ended = subprocess.run([sys.executable, "-m", f"benchmarks.{study}", *options], cwd=ROOT, check=False)
    if ended.returncode:
        raise SystemExit(f"`python -m benchmarks.{study}` failed: see above")


def write(quick: bool) -> Path:
    """Write the page of all claims."""
    from benchmarks import papers_index

    page, files, where = (QUICK_PAGE, stored_quick, "../{}-quick/") if quick else (PAGE, stored, "")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(papers_index.text(papers_index.papers(files), where), "utf-8")
    return page


def main() -> None:
    """Bring the studies up to date, then write the page of all claims."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small logs and few settings")
    parser.add_argument("--pages-only", action="store_true", help="measure nothing")
    chosen = parser.parse_args()
    for study in STUDIES:
        bring_up_to_date(study, chosen.quick, chosen.pages_only)
    print(f"wrote {write(chosen.quick).relative_to(ROOT)}")


if __name__ == "__main__":
    main()
