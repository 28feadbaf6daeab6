"""The service's page, in a real browser before a real service."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import combinations

import pytest
from fastapi.testclient import TestClient

from querycloak.service.web.app import make_app, page_files
from querycloak.service.web.auth import Tokens
from tests.integration.service.pages import SCREENSHOTS, TOO_PALE, canned, made_up, opened, overview
from tests.support.ports import free_ports
from tests.support.servers.process import wait_until
from tests.support.service_process import LiveService
from tests.unit.service.running import running

browsing = pytest.mark.browser
WIDE, PHONE = {"width": 1360, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A service that got a made-up log and has certified some of it."""
    folder = tmp_path_factory.mktemp("page") / "state"
    soon = ("-o", "certificate_seconds=1", "-o", "snapshot_seconds=1")  # profiles are written with snapshots
    with LiveService(folder, "--seed", "1", "-s", "k=3", *soon) as service:
        service.post(made_up(users=80, seed=7)).raise_for_status()
        service.settled()
        yield service


def expect(found):
    from playwright.sync_api import expect as expected

    return expected(found)


def accepted(tab):
    return tab.locator(".term.accepted .figure")


def keep(tab, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def live(tab):
    expect(tab.locator("#state-words")).to_have_text("Live", timeout=30_000)


# What is served


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("state"), options={"classify": "no"}) as service:
        app = make_app(service, Tokens(None))

        @app.get("/fault")
        def fault():
            raise ValueError

        yield TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


@pytest.mark.parametrize("path", ["/", "/static/page.js", "/static/nothing", "/nowhere", "/fault"])
def test_every_answer_has_the_security_headers(client, path):
    found = client.get(path).headers
    policy = dict(part.split(" ", 1) for part in found["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert {policy[f"{kind}-src"] for kind in ("script", "style", "connect", "img")} == {"'self'"}
    assert found["x-content-type-options"] == "nosniff"
    assert found["referrer-policy"] == "no-referrer"
    assert found["x-frame-options"] == "DENY"
    assert found["cross-origin-opener-policy"] == "same-origin"
    assert found["cache-control"] in ("no-store", "no-cache")
    assert "strict-transport-security" not in found


def test_with_tls_browsers_are_told_to_stay_with_it(client):
    found = TestClient(client.app, base_url="https://127.0.0.1").get("/").headers
    assert found["strict-transport-security"].startswith("max-age=")


def test_a_browser_that_has_a_part_gets_it_once(client):
    first = client.get("/static/style.css")
    assert first.headers["content-type"] == "text/css; charset=utf-8"
    again = client.get("/static/style.css", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/static/style.css", headers={"if-none-match": '"other"'}).status_code == 200


@pytest.mark.parametrize("name", ["..%2Fpage.py", "%2e%2e/app.py", "index.html", ".", "", "a/b.js"])
def test_only_parts_of_the_page_are_served(client, name):
    assert client.get(f"/static/{name}").status_code == 404


def test_the_page_has_no_script_or_style_inside_and_names_no_other_host():
    parts = {name: part.body.decode() for name, part in page_files().items()}
    assert "style.css" in parts
    assert (
        re.findall(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=|javascript:", parts["index.html"]) == []
    )
    known = "http://www.w3.org/2000/svg"  # a name of a vocabulary, never asked for
    for name, text in parts.items():
        assert re.findall(r"(?:https?:)?//[\w.-]+\.\w+\S*", text.replace(known, "")) == [], name


# What is shown


@browsing
def test_an_empty_service_says_what_to_do_and_numbers_move(browser, tmp_path):
    lines = made_up(users=30, seed=3)
    with (
        LiveService(tmp_path / "state", "--seed", "1", "-s", "k=3") as service,
        opened(browser, service.address, viewport=WIDE) as tab,
    ):
        live(tab)
        expect(tab.get_by_role("heading", name="Nothing has come in yet")).to_be_visible()
        expect(tab.locator("#try")).to_contain_text(f"{service.address}/v1/records")
        (tmp_path / "synthetic.ndjson").touch()
        command = ["bash", "-c", tab.locator("#try").inner_text().partition("\n")[2]]
        answer = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
        assert json.loads(answer)["accepted"] == 0, "the command that the page shows works"
        expect(tab.locator("#link")).to_contain_text("No estimate yet")
        keep(tab, "empty")
        half = len(lines) // 2
        for part, total in ((lines[:half], half), (lines[half:], len(lines))):
            service.post(part).raise_for_status()
            expect(accepted(tab)).to_have_text(f"{total:,}", timeout=20_000)
        expect(tab.locator("#welcome")).to_be_hidden()
        counts = service.settled()
        expect(tab.locator(".term.released .figure")).to_have_text(f"{counts['released']:,}", timeout=20_000)
        expect(tab.locator("#adds-up")).to_contain_text("The sum is exact", timeout=20_000)
        expect(tab.locator("path.line.in")).not_to_have_count(0)
        summary = tab.locator("#flow svg").get_attribute("aria-label")
        assert re.search(r"In: .* now, .* at most", summary)


@browsing
def test_fields_of_the_map_open_and_close_by_keyboard(browser, served):
    with opened(browser, served.address, viewport=WIDE) as tab:
        live(tab)
        field = tab.locator("button.cell").first
        field.wait_for(timeout=30_000)
        name = field.locator(".cell-name").text_content()
        field.focus()
        tab.keyboard.press("ArrowRight")
        tab.keyboard.press("ArrowLeft")
        expect(field).to_be_focused()
        tab.keyboard.press("Enter")
        expect(tab.locator("#crumbs span")).to_have_text(name)
        expect(tab.locator("#crumb-all")).to_be_focused()
        titles = tab.locator("div.cell").evaluate_all("cells => cells.map(cell => cell.title)")
        assert titles
        assert all(title.startswith(name) for title in titles)
        tab.keyboard.press("Escape")
        expect(tab.locator("#crumbs span")).to_have_count(0)
        expect(field).to_be_focused()
        tab.locator("#held-details summary").click()
        expect(tab.locator("#held-table tbody tr").first).to_contain_text("%")


@browsing
def test_the_profile_of_a_label_is_asked_for_in_a_body(browser, served):
    label = json.loads(served.released().splitlines()[0])["user"]
    found = lambda: served.client.post("/v1/profiles", json={"label": label})  # noqa: E731
    wait_until(lambda: found().is_success, "the profiles are written", 30)
    known, urls = found().json(), []
    with opened(browser, served.address, refusals=True) as tab:
        tab.on("request", lambda request: urls.append(request.url))
        live(tab)
        tab.get_by_label("Label, as in").fill(label)
        tab.keyboard.press("Enter")
        expect(tab.locator("#profile .hint")).to_contain_text(f"{sum(known.values()):,} released records")
        best = max(known.values())
        expect(tab.locator("#profile .value").first).to_have_text(f"{best:,}")
        tab.get_by_label("Label, as in").fill("nobody has this")
        tab.get_by_role("button", name="Look up").click()
        expect(tab.locator("#profile")).to_contain_text("Nothing was released under this label")
    assert [url for url in urls if label in url] == []


@browsing
def test_a_certificate_opens_as_json(browser, served):
    with opened(browser, served.address) as tab:
        live(tab)
        tab.locator("#certificates button").first.click(timeout=30_000)
        expect(tab.locator("#viewer")).to_be_visible()
        shown = json.loads(tab.locator("#viewer-text").text_content())
        number = int(tab.locator("#viewer-title").text_content().split()[-1])
        assert shown == served.client.get(f"/v1/certificates/{number}").json()
        with tab.expect_download() as saved:
            tab.get_by_role("button", name="Save as a file").click()
        assert json.loads(saved.value.path().read_text()) == shown
        tab.keyboard.press("Escape")
        expect(tab.locator("#viewer")).to_be_hidden()


@browsing
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_all_words_can_be_read_in_light_and_dark(browser, served, colours):
    with opened(browser, served.address, viewport=WIDE, color_scheme=colours, reduced_motion="reduce") as tab:
        live(tab)
        tab.locator("button.cell").first.wait_for(timeout=30_000)
        keep(tab, f"desktop-{colours}")
        canned(tab, overview(reproducible=True, trouble="the disk is full"))
        assert tab.evaluate(TOO_PALE) == []
        tab.emulate_media(media="print")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert tab.evaluate(TOO_PALE) == []
        tab.emulate_media(media="screen")
        before = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        other = {"light": "dark", "dark": "light"}[colours]
        tab.get_by_role("button", name=f"Use {other} colours").click()
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != before
        tab.reload()
        expect(tab.get_by_role("button", name=f"Use {colours} colours")).to_be_visible()


@browsing
@pytest.mark.parametrize("width", [320, 360, 700])
def test_narrow_screens_need_no_sideways_scrolling(browser, served, width):
    screen = {"viewport": PHONE | {"width": width}, "has_touch": True, "is_mobile": True}
    with opened(browser, served.address, **screen) as tab:
        live(tab)
        tab.locator("button.cell").first.wait_for(timeout=30_000)
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        keep(tab, f"phone-{width}")
        canned(tab, overview(counts=dict.fromkeys(overview()["counts"], 8 * 10**15)))
        assert tab.evaluate("document.documentElement.scrollWidth") == width


@browsing
def test_everything_that_can_be_used_has_a_name_and_shows_focus(browser, served):
    with opened(browser, served.address) as tab:
        live(tab)
        tab.locator("button.cell").first.wait_for(timeout=30_000)
        tab.keyboard.press("Tab")
        expect(tab.get_by_text("Skip to the figures")).to_be_focused()
        seen = set()
        for _ in range(80):
            tab.keyboard.press("Tab")
            name, outline = tab.evaluate(
                """() => { const at = document.activeElement; const style = getComputedStyle(at); return [
                  at.ariaLabel || at.labels?.[0]?.textContent || at.textContent.trim(),
                  style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0]; }"""
            )
            if tab.evaluate("document.activeElement === document.body"):
                break
            assert name
            assert outline, name
            seen.add(tab.evaluate("document.activeElement.id || document.activeElement.className"))
        assert {"theme", "label", "cell"} <= seen


@browsing
def test_fields_of_a_map_fill_it_in_proportion(browser, served):
    values = [500, 200, 90, 90, 40, 10, 3, 1]
    with opened(browser, served.address) as tab:
        call = "async (values) => (await import('/static/squares.js')).squares(values, 700, 300)"
        boxes = tab.evaluate(call, values)
    for box, value in zip(boxes, values, strict=True):
        assert box["width"] * box["height"] == pytest.approx(700 * 300 * value / sum(values))
        assert -1e-6 < box["x"] <= 700 - box["width"] + 1e-6
        assert -1e-6 < box["y"] <= 300 - box["height"] + 1e-6
    for one, other in combinations(boxes, 2):
        across = min(o["x"] + o["width"] for o in (one, other)) - max(one["x"], other["x"])
        down = min(o["y"] + o["height"] for o in (one, other)) - max(one["y"], other["y"])
        assert min(across, down) < 1e-6


@browsing
def test_numbers_are_written_as_people_read_them(browser, served):
    asked = {
        "count(1234567)": "1,234,567",
        "brief(9999)": "9,999",
        "brief(8e15)": "8000T",
        "rate(0.25)": "0.3",
        "percent(0.5)": "50 %",
        "percent(1e-9)": "< 0.1 %",
        "percent(0.99999)": "> 99.9 %",
        "lasting(61)": "1 min 1 s",
        "lasting(90000)": "1 d 1 h",
        "amount(12, 'records')": "12 records",
    }
    with opened(browser, served.address) as tab:
        for call, words in asked.items():
            found = tab.evaluate(f"async () => (await import('/static/words.js')).{call}")
            assert found.replace("\N{NO-BREAK SPACE}", " ") == words


@browsing
def test_no_rate_is_shown_for_time_that_nobody_measured(browser, served):
    samples = [[0, 0, 0], [1, 10, 4], [2, 20, 8], [100, 90_000, 90_000], [101, 90_030, 90_010]]
    with opened(browser, served.address) as tab:
        call = "async (samples) => (await import('/static/flow.js')).rates(samples, 5)"
        found = tab.evaluate(call, samples)
    assert found == [{"t": 0, "in": 10, "out": 4}, {"t": 100, "in": 30, "out": 10}]


# When not all is well


@browsing
def test_a_token_is_asked_for_and_stays_in_the_tab(browser, tmp_path):
    tokens = tmp_path / "tokens"
    made = {}
    for role in ("research", "ingest"):
        command = [sys.executable, "-m", "querycloak", "serve", "--new-token", f"{role}:{role}"]
        done = subprocess.run(
            [*command, "-o", f"tokens={tokens}"], capture_output=True, text=True, check=True
        )
        made[role] = done.stdout.strip()
    with (
        LiveService(tmp_path / "state", "-o", f"tokens={tokens}") as service,
        opened(browser, service.address, refusals=True) as tab,
    ):
        field = tab.get_by_label("Token", exact=True)
        expect(field).to_be_focused(timeout=30_000)
        for wrong, said in (
            ("qc_wrong", "not known here"),
            (made["ingest"], "role may not watch"),
            ("ü", "without spaces"),
        ):
            field.fill(wrong)
            tab.keyboard.press("Enter")
            expect(tab.get_by_role("alert")).to_contain_text(said)
        keep(tab, "token")
        field.fill(made["research"])
        tab.keyboard.press("Enter")
        live(tab)
        expect(field).to_be_hidden()
        tab.reload()
        live(tab)
        expect(tab.locator("#try")).to_contain_text("Authorization: Bearer $TOKEN")
        assert made["research"] not in tab.url + tab.content() + tab.evaluate("JSON.stringify(localStorage)")
        assert tab.context.cookies() == []
        tab.get_by_role("button", name="Forget token").click()
        expect(field).to_be_focused(timeout=30_000)
        assert tab.evaluate("sessionStorage.length") == 0


@browsing
def test_a_service_that_goes_away_is_missed_and_found_again(browser, tmp_path):
    (port,) = free_ports(1)
    service = LiveService(tmp_path / "state", "--port", str(port), "--seed", "1", "-s", "k=3")
    with service, opened(browser, service.address, refusals=True) as tab:
        service.post(made_up(users=10, seed=2)).raise_for_status()
        total = service.settled()["accepted"]
        expect(accepted(tab)).to_have_text(f"{total:,}", timeout=30_000)
        service.stop()
        expect(tab.locator("#banners")).to_contain_text("The service does not answer", timeout=30_000)
        expect(tab.locator("#state-words")).to_have_text("Not reachable")
        expect(accepted(tab)).to_have_text(f"{total:,}")
        keep(tab, "away")
        service.start()
        tab.get_by_role("button", name="Try now").click()
        live(tab)
        expect(tab.locator("#banners")).not_to_contain_text("does not answer")


@browsing
@pytest.mark.parametrize(
    ("changed", "place", "words"),
    [
        ({"ready": False, "trouble": "the disk is full"}, "#banners", "the disk is full"),
        ({"ready": False}, "#state-words", "Not ready"),
        ({"reproducible": True}, "#banners", "Do not publish"),
        ({}, "#link-verdict", "holds"),
        ({}, "#link", "1/10 = 10"),
        ({"linkage": overview()["linkage"] | {"low": 0.2, "success": 0.3}}, "#link-verdict", "above"),
        ({"buffers": []}, "#held", "does not hold by category"),
        ({}, "#reason-list", "did not fill up"),
        ({"samples": []}, "#tiles", "0"),
    ],
)
def test_what_the_service_says_is_shown(browser, served, changed, place, words):
    with opened(browser, served.address) as tab:
        live(tab)
        canned(tab, overview(**changed))
        expect(tab.locator(place)).to_contain_text(words)


@browsing
def test_nothing_that_comes_in_becomes_markup(browser, served):
    planted = "<img src=x onerror=alert(1)>"
    method = overview()["methods"][0] | {"promise": planted, "settings": {planted: planted}}
    buffers = [{"category": planted, "held": 150, "parts": []}]
    with opened(browser, served.address) as tab:
        live(tab)
        canned(tab, overview(methods=[method], buffers=buffers, dropped={planted: 50}, trouble=planted))
        expect(tab.locator(".promise")).to_contain_text(planted)
        assert tab.locator("img").count() == 0
