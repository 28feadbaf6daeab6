"""Takes the picture of the service's page for the documents: a real service that gets a made-up log."""

from __future__ import annotations

import math
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.integration.service.pages import made_up
from tests.support.servers.chromium import launch_arguments
from tests.support.service_process import LiveService

PICTURE = Path("docs/images/service-page.png")


def feed(service: LiveService, lines: list[bytes], minutes: float) -> None:
    """Send a log as searchers would: in waves, every second some."""
    seconds = int(minutes * 60)
    waves = [1.4 + math.sin(second / 41) + 0.3 * math.sin(second / 7) for second in range(seconds)]
    sent, start = 0, time.monotonic()
    for second in range(seconds):
        upto = round(len(lines) * sum(waves[: second + 1]) / sum(waves))
        if upto > sent:
            service.post(lines[sent:upto]).raise_for_status()
        sent = upto
        time.sleep(max(0.0, start + second + 1 - time.monotonic()))


def main(minutes: float = 10) -> None:
    """Feed a service for some minutes, then look at its page."""
    with tempfile.TemporaryDirectory() as folder:
        options = ("-s", "k=10", "-o", f"certificate_seconds={max(1, int(minutes * 15))}")
        with LiveService(Path(folder) / "state", *options) as service, sync_playwright() as playwright:
            feed(service, made_up(users=3000, seed=11), minutes)
            browser = playwright.chromium.launch(**launch_arguments())
            tab = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
            tab.goto(service.address)
            tab.wait_for_selector("button.cell")
            PICTURE.parent.mkdir(exist_ok=True)
            tab.screenshot(path=PICTURE, full_page=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
