"""Writes the reference pages from the declarations in the code, so that they cannot disagree.

Usage: python tools/reference.py            write docs/reference/*.md
       python tools/reference.py --check    write nothing; fail when a page is stale
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT / "src")]

from pages import attacks, certificate, cli, errors, measures, methods, python, service, settings  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
HEAD = "<!-- Made by tools/reference.py: change the code, then run `make docs`. -->\n\n"

#: Every generated page and what makes it.
PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli.page,
    "methods.md": methods.page,
    "attacks.md": attacks.page,
    "settings.md": settings.page,
    "service.md": service.page,
    "measures.md": measures.page,
    "errors.md": errors.page,
    "certificate.md": certificate.page,
    "python.md": python.page,
}


def rendered() -> dict[Path, str]:
    """Make every page anew, in memory."""
    return {FOLDER / name: HEAD + make().strip() + "\n" for name, make in PAGES.items()}


def stale(pages: dict[Path, str]) -> list[Path]:
    """Name the pages whose file says something else than the code."""
    return [path for path, text in pages.items() if not path.exists() or path.read_text("utf-8") != text]


def write(pages: dict[Path, str]) -> None:
    """Write the pages that have changed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in stale(pages):
        path.write_text(pages[path], "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")


def main() -> int:
    """Write the pages, or say which are stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is stale")
    pages = rendered()
    if not parser.parse_args().check:
        write(pages)
        return 0
    for path in stale(pages):
        print(f"stale: {path.relative_to(ROOT)}; run `make docs`", file=sys.stderr)
    return 1 if stale(pages) else 0


if __name__ == "__main__":
    sys.exit(main())
