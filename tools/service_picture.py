"""Takes the picture of the service's page for the documents: a real service that receives a synthetic log."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import querycloak as qc
from querycloak.client import Client

PICTURE = Path("docs/images/service-page.png")


@contextmanager
def service(state: Path, *arguments: str) -> Iterator[str]:
    """Run a service; yield its address."""
    command = [sys.executable, "-m", "querycloak", "serve", "--port", "0", "--json", "--state", str(state)]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            text += process.stdout.readline()
        try:
            yield json.loads(text)["address"]
        finally:
            process.terminate()


def feed(client: Client, records: list[dict[str, Any]], minutes: float) -> None:
    """Send a log in waves, some records every second."""
    seconds = int(minutes * 60)
    waves = [1.4 + math.sin(second / 41) + 0.3 * math.sin(second / 7) for second in range(seconds)]
    sent, start = 0, time.monotonic()
    for second in range(seconds):
        upto = round(len(records) * sum(waves[: second + 1]) / sum(waves))
        client.send(records[sent:upto])
        sent = upto
        time.sleep(max(0.0, start + second + 1 - time.monotonic()))


def main(minutes: float = 10) -> None:
    """Feed a service for some minutes, then take a picture of its page."""
    log = qc.generate(users=3000, seed=11).frame.sort("time", maintain_order=True)
    records = log.select("user", "query").to_dicts()
    options = ("-s", "k=10", "-o", f"certificate_seconds={max(1, int(minutes * 15))}")
    with (
        tempfile.TemporaryDirectory() as folder,
        service(Path(folder) / "state", *options) as address,
        Client(address) as client,
        sync_playwright() as playwright,
    ):
        feed(client, records, minutes)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        tab.goto(address)
        tab.wait_for_selector("button.cell")
        PICTURE.parent.mkdir(exist_ok=True)
        tab.screenshot(path=PICTURE, full_page=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
