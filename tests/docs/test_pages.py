"""Every page does what it says: console blocks, Python blocks, links."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from querycloak.registry import COVERS, METHODS
from tests.docs.pages import ROOT, blocks, name_of, pages, prose
from tests.docs.runner import Reader

_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)
_MACHINE = re.compile(r"/(?:home|root|work|tmp|opt|usr|Users)/|[A-Z]:\\\\|localhost:\d")


def runnable(page: Path) -> bool:
    return any(block.kind in ("console", "python") for block in blocks(page.read_text("utf-8")))


def marks(page: Path) -> list[pytest.MarkDecorator]:
    """Name the extras that a page's commands need."""
    text = page.read_text("utf-8")
    needs = (
        ("dp", "-m threshold-dp"),
        ("service", "querycloak serve "),
        ("sign", "--sign "),
        ("sign", "--new-identity"),
        ("spark", "qc.spark."),
    )
    return [getattr(pytest.mark, extra) for extra, option in needs if option in text]


READ = [pytest.param(page, marks=marks(page), id=name_of(page)) for page in pages() if runnable(page)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to read a page in, and a registry that forgets what the page adds."""
    place = tmp_path / "reader"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.syspath_prepend(str(place))
    for registry in (METHODS, COVERS):
        monkeypatch.setattr(registry, "added", dict(registry.added))
    yield place
    end_programs(place)


def end_programs(place: Path) -> None:
    """End what a page has started and, since it failed, not stopped: it leaves numbers in `*.pid`."""
    for path in place.glob("*.pid"):
        with suppress(OSError, ValueError):
            number = int(path.read_text("utf-8"))
            if b"querycloak" in Path(f"/proc/{number}/cmdline").read_bytes():
                os.kill(number, signal.SIGKILL)


@pytest.mark.parametrize("page", READ)
def test_a_page_runs_as_written(page: Path, folder: Path) -> None:
    Reader(page).read()


def anchors(page: Path) -> set[str]:
    """Give the anchors that a page's headings make."""
    titles = (match["title"] for match in _HEADING.finditer(prose(page.read_text("utf-8"))))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for match in _LINK.finditer(prose(page.read_text("utf-8"))):
        target, _, anchor = match["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{name_of(page)} links to {target}, which is not there"
        assert not anchor or anchor in anchors(there), f"{name_of(page)}: no heading for {match['target']}"


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_no_page_names_a_place_on_a_machine(page: Path) -> None:
    found = _MACHINE.search(page.read_text("utf-8"))
    assert found is None, f"{name_of(page)} names {found and found[0]!r}"


def test_every_page_of_the_docs_can_be_reached_from_the_index() -> None:
    seen: set[Path] = set()
    left = [ROOT / "README.md", ROOT / "docs" / "index.md"]
    while left:
        page = left.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        links = (match["target"].partition("#")[0] for match in _LINK.finditer(page.read_text("utf-8")))
        left += [(page.parent / link).resolve() for link in links if link and "://" not in link]
    lost = [name_of(page) for page in pages() if page.is_relative_to(ROOT / "docs") and page not in seen]
    assert not lost
