"""A short soak: at a steady pace memory and the queue stay flat. The long one is a benchmark."""

from __future__ import annotations

import pytest

from tests.support.load import soak

pytestmark = [pytest.mark.timeout(600)]


def test_memory_and_queue_stay_flat():
    found = soak(minutes=0.5, pace=1000)
    first, half, end = found["memory MB at first, half and end"]
    assert found["adds up"]
    assert end < 1.2 * half + 30, (first, half, end)
    assert found["most queued"] < 20_000
