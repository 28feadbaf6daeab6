"""Checks that hold for the page of every study, however much of it was measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from papers.common.render import page_name, write


def written(study: str, results: Any, folder: Path, figures: int) -> str:
    """Write a study's page and return it; it must show every figure, and no number may be missing unsaid."""
    (path,) = write(study, results, folder)
    page = path.read_text()
    drawn = page_name(study).replace("paper-", "figures-")
    shown = re.findall(rf"\({drawn}/(.+\.svg)\)", page)
    assert sorted(shown) == sorted(one.name for one in (folder / drawn).iterdir())
    assert len(shown) == figures
    assert "None" not in page
    assert "nan" not in page.split()
    return page
