"""Fixtures of the tests with real peers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Return an event loop that all tests of a module share."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()
