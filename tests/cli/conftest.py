"""What tests of the command line share: a folder to work in, and a way to call."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from querycloak.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `querycloak` with these words, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        return CliRunner().invoke(main, [str(word) for word in words])

    return call
