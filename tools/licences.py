"""Writes docs/reference/dependency-licences.md: the licence of every direct dependency, as it declares it.

Usage: python tools/licences.py            write the page
       python tools/licences.py --check    write nothing; fail when the page is stale
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE)]

from pages.markdown import page, table  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "dependency-licences.md"
NOTE = "<!-- Made by tools/licences.py: change pyproject.toml, then run `python tools/licences.py`. -->"


def dependencies() -> dict[str, list[str]]:
    """Give the direct dependencies by part: the core, then each extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    parts = {"core": project["dependencies"], **project["optional-dependencies"]}
    return {part: [_name(text) for text in texts] for part, texts in parts.items()}


def _name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return found[0]


def licence_of(package: str) -> str:
    """Give a package's licence from its metadata: the expression, else the classifiers, else the field."""
    try:
        about = metadata(package)
    except PackageNotFoundError:
        raise SystemExit(f"{package} is not installed; run `make setup` first") from None
    if expression := about.get("License-Expression"):
        return str(expression)
    listed = [
        text.split(" :: ")[-1] for text in about.get_all("Classifier") or () if text.startswith("License ::")
    ]
    field = str(about.get("License") or "").strip().splitlines()
    return ", ".join(listed) or (field[0] if field else "not declared")


def rendered() -> str:
    """Make the page."""
    rows = [(f"`{name}`", part, licence_of(name)) for part, names in dependencies().items() for name in names]
    return page(
        NOTE,
        "# Licences of dependencies",
        "What `pip install` brings along directly, as each package declares it in its metadata. "
        "QueryCloak itself is under the [Apache License 2.0](../../LICENSE).",
        table(("package", "part", "licence"), rows),
        "Data that ships inside the package has a page of its own: [data licences](data-licences.md).",
    )


def main() -> int:
    """Write the page, or say that it is stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the page is stale")
    fresh = rendered()
    if not parser.parse_args().check:
        PAGE.write_text(fresh, "utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text("utf-8") == fresh:
        return 0
    print("stale: docs/reference/dependency-licences.md; run `python tools/licences.py`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
