"""Opens the service's page in a browser, and holds it to what holds for every look at it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import logs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: Where pictures of the last test run are.
SCREENSHOTS = Path(__file__).parents[3] / "build/screenshots"


def made_up(users: int, seed: int) -> list[bytes]:
    """Lines of a made-up log, to be posted."""
    frame = logs.made_up(users=users, seed=seed).frame.sort("time", maintain_order=True)
    return [json.dumps(row).encode() + b"\n" for row in frame.select("user", "query").to_dicts()]


@contextmanager
def opened(browser: Browser, address: str, *, refusals: bool = False, **choices: Any) -> Iterator[Page]:
    """Open the page; afterwards, nothing was asked of anybody else, and the console is clean.

    Chromium itself writes refused and failed requests to the console; `refusals` lets those pass.
    """
    context = browser.new_context(**choices)
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/")
    try:
        yield page
        assert [text for text in said if not (refusals and "Failed to load resource" in text)] == []
        assert [url for url in asked if not url.startswith(f"{address}/")] == []
    finally:
        context.close()


def canned(page: Page, overview: dict[str, Any]) -> None:
    """Show states that a healthy service does not get into."""
    page.route("**/v1/overview", lambda route: route.fulfill(json=overview))
    page.reload()
    page.wait_for_selector("#figures:not([hidden])")


def overview(**changed: Any) -> dict[str, Any]:
    """An overview as the service gives it, with what a test wants in it."""
    now = time.time()
    return {
        "version": "1.0",
        "started": now - 4000,
        "now": now,
        "ready": True,
        "trouble": "",
        "reproducible": False,
        "source": "http",
        "sink": "http-pull",
        "methods": [
            {
                "name": "cohort",
                "settings": {"k": 10},
                "promise": "labels tell nothing",
                "does_not_protect_against": ["words in a query"],
            }
        ],
        "counts": {"accepted": 1000, "released": 800, "held": 150, "dropped": 50, "queued": 0, "epoch": 0},
        "dropped": {"cohort: the cohort did not fill up": 50},
        "samples": [[now - 60 + second, second * 10, second * 8, 150, 0] for second in range(60)],
        "delay": {"unit": "records", "median": 12, "p95": 400, "worst": 900},
        "age": {"unit": "seconds", "oldest": 12.5, "median": 3},
        "buffers": [
            {
                "category": name,
                "held": held,
                "parts": [{"category": f"{name}/{part}", "held": held // 2} for part in ("A", "B")],
            }
            for name, held in (("Sports", 90), ("Arts", 40), ("Health", 20))
        ],
        "linkage": {
            "attack": "link-repeat",
            "success": 0.1,
            "low": 0.09,
            "high": 0.11,
            "bound": 0.1,
            "n": 5000,
            "at": now,
        },
        "certificates": [
            {"number": 1, "from": now - 3600, "to": now, "first": 1, "last": 800, "verdict": "kept"}
        ],
    } | changed


#: Gives each text whose contrast with what lies behind it is too low, as WCAG 2 computes it.
TOO_PALE = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = rgba(getComputedStyle(at).backgroundColor);
      if (found[3] === 255) return found;
    }
    return [255, 255, 255, 255];
  };
  const pale = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    const ink = element.namespaceURI.endsWith("svg") ? style.fill : style.color;
    const [a, b] = [light(rgba(ink)), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) pale.push([contrast, element.className, element.textContent.slice(0, 30)].join(" "));
  }
  return pale;
}
"""
