"""The tutorial notebook runs from top to bottom and shows what it shows."""

from __future__ import annotations

import nbformat

from tests.docs.notebook import NOTEBOOK, executed, shown


def test_the_notebook_runs_and_shows_what_it_shows():
    kept = nbformat.read(NOTEBOOK, as_version=4)
    assert shown(executed()) == shown(kept)
    assert sum("<table" in text for text in shown(kept)) >= 4
