"""The page of a comparison in a real browser: the picture, the answer, the table, the phone and paper."""

from __future__ import annotations

import pytest

from tests.integration.service.pages import SCREENSHOTS
from tests.support.servers.process import wait_until
from tests.unit.report.comparisons import HOSTILE, usual

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
MARKERS = "#plot .scatterlayer .point.plotly-customdata"
ROWS = "#candidates-table tbody tr:not([hidden])"
SHOWN = f"[...document.querySelectorAll('{ROWS}')].map((row) => row.dataset.name)"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    from querycloak.report.comparison.files import page

    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(usual()), "utf-8")
    return path


class Opened:
    """The page in a tab, and all that it said and asked for. It is loaded once: it is large."""

    def __init__(self, browser, report):
        self.tab = browser.new_context(viewport=WIDE, accept_downloads=True).new_page()
        self.said, self.asked = [], []
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.goto(report.as_uri())


@pytest.fixture(scope="module")
def opened(browser, report):
    return Opened(browser, report)


@pytest.fixture
def tab(opened, report):
    """The page as it is at first; afterwards the console is clean, and nothing was asked for but the file."""
    tab = opened.tab
    tab.set_viewport_size(WIDE)
    tab.emulate_media(media="screen", color_scheme="light")
    tab.locator("#all").click()
    for name, value in {"who": "any", "use": "terms", "scale": "root"}.items():
        tab.locator(f"#{name}").select_option(value)
    tab.locator("#limit").fill("8")
    yield tab
    assert opened.said == []
    assert [url for url in opened.asked if not url.startswith(("data:", "blob:"))] == [report.as_uri()]


def drawn(tab):
    return tab.locator(MARKERS).count()


def no_sideways(tab):
    return tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def keep(tab, name):
    """Keep a picture of the screen, and see that it is not blank: a blank one packs into next to nothing."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    path = SCREENSHOTS / f"comparison-{name}.png"  # a busy machine may show an empty screen for a moment
    wait_until(lambda: len(tab.screenshot(path=path)) > 20_000, "the page is painted", 60)


def test_the_frontier_is_drawn_and_filters_change_it(tab):
    keep(tab, "wide")
    assert not tab.locator("#still").is_visible()
    assert drawn(tab) == 5
    assert tab.locator("#plot .textpoint").count() == 5
    tab.locator("[data-line]").first.uncheck()
    assert drawn(tab) == 3
    tab.locator("#none").click()
    assert drawn(tab) == 0


def test_axes_and_attackers_change_the_picture_and_its_titles(tab):
    across, up = tab.locator("#plot .xtitle"), tab.locator("#plot .gtitle")
    assert "Words kept" in across.text_content()
    tab.locator("#axis").select_option("sessions")
    assert "Sessions kept" in across.text_content()
    assert tab.locator("#use").input_value() == "sessions"
    tab.locator("#attacker").select_option("release")
    assert "sees only the release" in up.text_content()
    assert tab.locator("#who").input_value() == "release"
    assert drawn(tab) == 4
    assert "Not in this chart" in tab.locator("#picture-note").text_content()
    assert "<b>evil</b>" in tab.locator("#picture-note").text_content()
    tab.locator("#attacker").select_option("attack:link-pairs")
    assert "pairs of records (square-root scale)" in up.text_content()
    tab.locator("#scale").select_option("even")
    assert "square-root" not in up.text_content()


def test_the_slider_changes_the_answer_by_keyboard_too(tab):
    said = tab.locator("#answer-text")
    tab.locator("#who").select_option("release")
    assert said.text_content().startswith("None of those tried: the lowest is cohort k=10")
    assert "none" in tab.locator("#answer-box").get_attribute("class").split()
    tab.locator("#limit").focus()
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    assert [tab.locator(f"#{name}-shown").text_content() for name in ("limit", "limit-too")] == ["20 %"] * 2
    assert said.text_content().startswith("Of those tried, cohort k=10: it keeps 90.0\xa0% of the words")
    assert "(1 of 4)" in tab.locator("#picture-note").text_content()
    tab.locator("#limit-too").fill("0")
    assert tab.locator("#limit").input_value() == "0"
    assert said.text_content().startswith("None of those tried")


def test_a_marker_tells_its_setting_when_pointed_at(tab):
    tab.locator("#plot").scroll_into_view_if_needed()
    box = tab.locator(MARKERS).last.bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
    told = tab.locator("#plot .hoverlayer .hovertext")
    told.wait_for()
    assert HOSTILE in told.text_content()
    assert "</script>" in told.text_content()


def test_the_table_is_sorted_and_searched(tab):
    head = tab.locator("#candidates-table thead th").nth(2)
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert tab.evaluate(SHOWN)[:3] == [HOSTILE, "cohort k=10", "cohort k=5"]
    head.locator("button").click()
    assert tab.evaluate(SHOWN)[0] == "swap k=5"
    assert set(tab.evaluate(SHOWN)[5:]) == {
        "dp-histogram epsilon=1",
        "km k=2",
    }  # what has no number stands last
    tab.locator("#seek").fill("COHORT")
    assert sorted(tab.evaluate(SHOWN)) == ["cohort k=10", "cohort k=5"]
    tab.locator("#seek").fill("")


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_picture_can_be_saved(tab, tmp_path, kind):
    with tab.expect_download() as waiting:
        tab.locator(f"#save-{kind}").click()
    waiting.value.save_as(tmp_path / "picture")
    saved = (tmp_path / "picture").read_bytes()
    assert waiting.value.suggested_filename == f"querycloak-frontier.{kind}"
    assert saved.startswith(b"\x89PNG" if kind == "png" else b"<svg")
    assert len(saved) > 5_000


def test_a_dark_screen_gets_a_dark_picture(tab):
    tab.emulate_media(color_scheme="dark")
    keep(tab, "dark")
    paper = tab.evaluate("document.getElementById('plot').layout.paper_bgcolor")
    assert paper == "#182026"
    assert drawn(tab) == 5


def test_a_phone_shows_it_without_sideways_scrolling(tab):
    tab.set_viewport_size(PHONE)
    assert no_sideways(tab)
    assert drawn(tab) == 5
    tab.locator("summary").click()
    assert no_sideways(tab)
    keep(tab, "phone")
    tab.locator("summary").click()


def test_paper_has_everything_and_no_controls(tab, tmp_path):
    tab.emulate_media(media="print")
    assert tab.locator("#still").is_visible()
    assert [tab.locator(name).is_visible() for name in ("#live", "#limit", "#seek", "nav")] == [False] * 4
    printed = tab.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    assert printed.startswith(b"%PDF")
    assert len(printed) > 50_000
    assert tab.get_by_text(
        "If at most so much may be linked by somebody who sees only the release"
    ).is_visible()
    assert "Those who fare worst" in tab.locator("main").inner_text()
    tab.set_viewport_size({"width": 1032, "height": 720})  # A4 across, without its margins
    assert no_sideways(tab)


def test_without_scripts_the_still_picture_and_all_tables_are_there(browser, report):
    context = browser.new_context(viewport=WIDE, java_script_enabled=False)
    tab = context.new_page()
    tab.goto(report.as_uri())
    assert tab.locator("#still svg").is_visible()
    assert not tab.locator("#live").is_visible()
    assert tab.locator("#candidates-table tbody tr").count() == 7
    assert tab.get_by_text("Without scripts").is_visible()
    assert tab.locator("#answer-text").text_content().startswith("Of those tried, ")
    context.close()
