"""`querycloak assess`, and its page in a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.service.pages import SCREENSHOTS, TOO_PALE
from tests.unit.report.test_render import NASTY

PHONE, WIDE = {"width": 360, "height": 740}, {"width": 1200, "height": 900}


@pytest.fixture
def released(run):
    """A release with the findings of two attacks, as the commands write them."""
    run("generate", "--users", 40, "--seed", 7, "-o", "log.tsv", "--quiet")
    options = ("--truth", "truth.parquet", "--seed", 1, "--quiet")
    run("protect", "log.tsv", "-m", "cohort", "-s", "k=5", "-s", "shards=1", "-o", "out.tsv", *options)
    both = ("--original", "log.tsv", "--truth", "truth.parquet", "--json")
    attacked = run("attack", "out.tsv", *both, "-a", "link-repeat", "-a", "link-pairs", "--seed", 1)
    Path("found.json").write_text(attacked.stdout)
    measured = run("measure", "out.tsv", "--original", "log.tsv", "--json", "-u", "release_rate")
    Path("kept.json").write_text(measured.stdout)
    return run


def test_a_page_from_what_the_commands_wrote(released):
    done = released(
        "assess", "out.tsv", "--findings", "found.json", "--measures", "kept.json", "-o", "a.html"
    )
    assert (done.exit_code, done.stdout) == (0, "")
    page = Path("a.html").read_text("utf-8")
    assert "wrote a.html" in done.stderr
    assert "Do not publish:</strong> it was made with a seed" in page
    assert "link-repeat" in page
    assert "release_rate" in page
    queries = {line.split("\t")[1] for line in Path("log.tsv").read_text().splitlines()[1:]}
    assert not [query for query in queries if len(query) > 12 and query in page]


def test_json_gives_the_verdicts(released):
    done = released("assess", "out.tsv.certificate.json", "--findings", "found.json", "-o", "a.md", "--json")
    found = json.loads(done.stdout)
    assert (found["audit"], found["publishable"], found["written"]) == ("kept", False, "a.md")
    assert [one["test"] for one in found["risks"]] == ["Singling out", "Linkability", "Inference"]
    assert found["risks"][2]["risk"] == "unknown"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("out.tsv",), 2),
        (("out.tsv", "-o", "a.pdf"), 2),
        (("out.tsv", "-o", "nowhere/a.html"), 2),
        (("missing.tsv", "-o", "a.html"), 2),
        (("bad.json", "-o", "a.html"), 3),
        (("good.json", "--findings", "bad.json", "-o", "a.html"), 3),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(run, words, status):
    from tests.unit.report.made import certificate

    Path("bad.json").write_text("{")
    Path("good.json").write_text(json.dumps(certificate()))
    done = run("assess", *words)
    assert done.exit_code == status
    assert not list(Path().glob("a.*"))


@pytest.mark.browser
@pytest.mark.parametrize(("size", "scheme"), [(PHONE, "light"), (PHONE, "dark"), (WIDE, "light")])
def test_the_page_opens_offline_and_fits_a_phone(browser, tmp_path, size, scheme):
    from querycloak.report import render
    from querycloak.report.assessment import assessment
    from querycloak.report.evidence import checked
    from tests.unit.report.made import certificate, finding, method

    nasty = method(NASTY, promise=NASTY, limits=["w" * 200], **{NASTY: NASTY, "k": 5})
    attacks = [finding(success=0.3, bound=0.2), finding("link-pairs", "linkage", "pair", success=0.5)]
    render.write(assessment(certificate(method(k=5), nasty), checked(attacks)), tmp_path / "a.html")
    context = browser.new_context(viewport=size, color_scheme=scheme, offline=True)
    try:
        tab = context.new_page()
        said, asked = [], []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        tab.on("request", lambda request: asked.append(request.url))
        address = (tmp_path / "a.html").as_uri()
        tab.goto(address)
        assert (said, asked) == ([], [address])
        assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert tab.evaluate(TOO_PALE) == []
        assert tab.get_by_role("heading", level=2).count() == 11
        assert tab.get_by_role("table", name="Residual risk by test").is_visible()
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=SCREENSHOTS / f"assessment-{size['width']}-{scheme}.png", full_page=True)
    finally:
        context.close()
