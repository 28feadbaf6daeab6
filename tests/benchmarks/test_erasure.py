"""Labels of `cohort` that stop being drawn show who was erased: pages state this limit with its figure."""

from __future__ import annotations

import re

import numpy as np
import pytest
from benchmarks.__main__ import stored
from benchmarks.erasure import measure, silent_labels

from tests.planted.run import ROOT


def test_an_observer_names_labels_that_are_silent_while_their_cohort_goes_on():
    drawn = np.array([1, 2] * 5 + [1] * 70 + [3] * 3)
    assert silent_labels(drawn, np.zeros(drawn.size, np.int64)).tolist() == [2]
    assert silent_labels(drawn[:60], np.zeros(60, np.int64)).tolist() == []


def test_most_erased_users_are_found():
    found = measure(0.3)
    assert found["erased"] == found["in_cohorts_that_release_again"] >= 10
    assert found["found"] >= 0.8 * found["erased"]
    assert found["named_wrongly"] <= 0.01 * found["users"]


@pytest.mark.parametrize(
    "page", ["explanation/cohort.md", "explanation/limits.md", "how-to/erasure-and-export.md"]
)
def test_pages_state_the_stored_figure(page):
    figures = stored("cohort-erasure")
    text = " ".join((ROOT / "docs" / page).read_text("utf-8").split())
    assert re.search(rf"{figures['found']:.0f} of {figures['erased']:.0f} erased users", text)
