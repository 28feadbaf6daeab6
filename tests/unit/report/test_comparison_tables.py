"""The same numbers in every form of a comparison, and nothing in it that a browser would obey."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from html.parser import HTMLParser

import pytest

from querycloak.compare.result import Comparison
from querycloak.formatting import percent
from querycloak.measures.base import ALL_USES, USES
from querycloak.report.comparison.chart import chart_data, look, svg
from querycloak.report.comparison.files import COLUMNS, csv_text, markdown, page, write_all
from querycloak.report.numbers import with_interval, with_spread
from tests.unit.report.comparisons import HOSTILE, comparison, made, usual


class Seen(HTMLParser):
    """Collects what a browser would make of a page: tags, cells of the table of settings, values."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.rows, self.data = [], [], {}, {}
        self._row = self._block = self._table = None
        self._cell = ""

    def handle_starttag(self, name, attributes):
        found = dict(attributes)
        self.tags.append(name)
        self.attributes += [(name, key, value) for key, value in attributes]
        if name == "table":
            self._table = found.get("id")
        if name == "tr" and self._table == "candidates-table" and "data-name" in found:
            self._row = self.rows.setdefault(found["data-name"], [])
        if name == "td" and self._row is not None:
            self._row.append([found.get("data-value"), ""])
        if name == "script" and found.get("type") == "application/json":
            self._block = found["id"]

    def handle_endtag(self, name):
        if name == "tr":
            self._row = None
        if name == "script":
            self._block = None

    def handle_data(self, text):
        if self._block:
            self.data[self._block] = self.data.get(self._block, "") + text
        elif self._row:
            self._row[-1][1] += text


@pytest.fixture(scope="module")
def html():
    pytest.importorskip("plotly")
    return page(usual())


@pytest.fixture(scope="module")
def seen(html):
    found = Seen()
    found.feed(html)
    return found


def rows():
    return list(csv.DictReader(io.StringIO(csv_text(usual()))))


def number(candidate, kind, name):
    (found,) = [
        row for row in rows() if (row["candidate"], row["kind"], row["name"]) == (candidate, kind, name)
    ]
    return found


# Numbers agree


def test_csv_has_every_number_of_the_json():
    read = Comparison.from_dict(json.loads(usual().as_json()))
    for one in read.succeeded:
        for attacker, found in one.linkage.items():
            row = number(one.name, "linked", attacker)
            assert row["value"] == ("" if found is None else repr(found.success))
        for label, found in one.findings.items():
            row = number(one.name, "attack", label)
            assert row["value"] == ("" if found.success is None else repr(found.success))
            assert row["bound"] == ("" if found.bound is None else repr(found.bound))
            assert row["holds"] == ("" if found.holds is None else str(found.holds))
        for name, found in one.measures.items():
            assert number(one.name, "measure", name)["value"] == (
                "" if found.value is None else repr(found.value)
            )
        assert float(number(one.name, "cost", "peak_mb")["value"]) == 321


def test_csv_names_what_has_no_numbers():
    assert csv_text(usual()).splitlines()[0] == ",".join(COLUMNS)
    kinds = {
        (row["candidate"], row["kind"]): row["note"] for row in rows() if row["kind"] in ("failed", "not run")
    }
    assert kinds == {
        ("km k=2", "failed"): "stopped after <5> seconds",
        ("rules", "not run"): "it was not asked for",
    }


@pytest.mark.report
def test_the_table_of_the_page_has_the_numbers_of_the_csv(seen):
    assert set(seen.rows) == {one.name for one in usual().candidates}
    for one in usual().succeeded:
        cells = seen.rows[one.name]
        names = [("linked", "release"), ("linked", "knowing"), *(("kept", axis) for axis in ALL_USES),
                 ("cost", "protect_seconds"), ("cost", "peak_mb")]  # fmt: skip
        assert len(cells) == len(names)
        for (value, text), (kind, name) in zip(cells, names, strict=True):
            row = number(one.name, kind, name)
            assert (value or "") == row["value"]
            if kind != "cost":
                assert text.replace("\xa0", " ").startswith(percent(float(value)) if value else "–")


@pytest.mark.report
def test_the_picture_has_the_numbers_of_the_csv(seen):
    points = {one["name"]: one for one in json.loads(seen.data["frontier-data"])["points"]}
    for one in usual().succeeded:
        for axis in ALL_USES:
            found, row = points[one.name]["x"][axis], number(one.name, "kept", axis)
            assert [repr(part) for part in found or []] == [
                row[end] for end in ("value", "low", "high") if row[end]
            ]
        for attacker in ("release", "knowing", "any"):
            found, row = points[one.name]["y"].get(attacker), number(one.name, "linked", attacker)
            assert ("" if found is None else repr(found["share"])) == row["value"]
            assert row["note"] == (found["attack"] if found else one.why_not_linked)


def test_markdown_has_a_row_for_each_candidate_with_the_same_numbers():
    text = markdown(usual())
    for one in usual().succeeded:
        shares = [with_interval(found and found.share) for found in map(one.linked, ("release", "knowing"))]
        wanted = [*shares, *(with_spread(one.kept(use.name)) for use in USES)]
        lines = [line for line in text.splitlines() if " | ".join(wanted) in line]
        assert lines, one.name
    assert r"km k=2: stopped after \<5\> seconds" in text
    assert "rules: it was not asked for" in text
    assert HOSTILE not in text


def test_a_small_share_is_not_written_as_none():
    assert [percent(share) for share in (0, 0.00001, 0.0004, 0.001, 0.5, 1, None)] == [
        "0.0 %", "<0.01 %", "0.04 %", "0.1 %", "50.0 %", "100.0 %", "–",
    ]  # fmt: skip


# What stands in the page


@pytest.mark.report
def test_nothing_of_the_comparison_becomes_code(html, seen):
    assert "img" not in seen.tags
    assert "<b>evil" not in html
    assert "alert(1)</script>" not in html
    assert not [one for one in seen.attributes if one[1].startswith("on")]
    assert seen.tags.count("script") == 4  # two of values, two of ours


@pytest.mark.report
def test_the_page_names_no_other_place(html, seen):
    assert {name for name in ("link", "iframe", "base", "object", "form") if name in seen.tags} == set()
    addresses = [value for _, key, value in seen.attributes if key in ("src", "href", "action", "data")]
    assert all(address.startswith("#") for address in addresses)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)[1]
    assert "default-src 'none'" in policy


@pytest.mark.report
def test_the_page_says_what_a_stranger_asks(html):
    for text in (
        "2,000 people", "Which setting should I use?", "What stands out", "Singling out", "Linkability",
        "Inference",
        "k accounts of one attacker", "lower bound", "no legal claim", "95 % interval",
        "a random sample of 200 people",
        "querycloak compare LOG --preset quick --sample 200 --repeats 2 --seed 7 -o DIR",
        "stopped after &lt;5&gt; seconds", "3 lines of the log could not be read",
    ):  # fmt: skip
        assert text in html.replace("\xa0", " "), text


@pytest.mark.report
def test_a_comparison_without_sample_preset_or_success_has_a_page_too():
    found = page(comparison(made("km k=2", "km", failed="no", value=2), sampled=False, preset=None))
    assert "-m km:k=2" in found
    assert "people, all there are" in found
    assert "None of those tried" in found


@pytest.mark.parametrize("module", ["plotly.offline", "matplotlib.figure"])
def test_without_the_extra_the_report_says_what_is_missing(monkeypatch, tmp_path, module):
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "report.html").write_text("of an earlier run")
    written, missing = write_all(usual(), tmp_path)
    assert "report.html" not in written
    assert not (tmp_path / "report.html").exists()
    assert "`report`" in missing


@pytest.mark.parametrize("module", ["plotly.offline", "matplotlib.figure"])
def test_every_way_to_a_report_warns_when_there_is_no_page(monkeypatch, tmp_path, module):
    import querycloak as qc
    from querycloak.api.verbs import recommend_release
    from querycloak.compare import recommend
    from querycloak.report.comparison import files

    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(files, "compare", lambda *about, **more: usual())
    with pytest.warns(UserWarning, match="report.html was not written: .*`report`"):
        qc.compare("log.tsv", "rules", output=tmp_path)
    proposal = recommend.Proposal(recommend.Goal(0.5), None, usual(), None, None)
    monkeypatch.setattr(recommend, "recommend", lambda *about, **more: proposal)
    found = recommend_release("log.tsv", max_linkage=0.5, output=tmp_path)
    assert found.lines[-1].startswith("warning: report.html was not written: ")


@pytest.mark.report
@pytest.mark.parametrize("attacker", ["any", "release", "knowing", "attack:link-pairs"])
def test_the_static_chart_is_whole_and_escaped(attacker):
    import xml.etree.ElementTree as tree  # our own text, not a stranger's

    found = tree.fromstring(svg(usual(), "terms", attacker))
    drawn = [one for one in found.iter() if one.get("id", "").startswith("series-")]
    markers = [mark for one in drawn for mark in one.iter("{http://www.w3.org/2000/svg}use")]
    points = [one for one in chart_data(usual())["points"] if attacker in one["y"] and one["x"]["terms"]]
    assert len(markers) == len(points)
    assert len(drawn) == len({one["line"] for one in points})


@pytest.mark.report
def test_a_static_chart_without_points_and_with_marks_of_mathematics():
    assert "No candidate has both numbers" in svg(comparison(made("t", "t", labels="table", terms=0)))
    hostile = svg(comparison(made("$x^{", "$x^{<b>", knowing=0.1, terms=0.5)))
    assert "$x^{&lt;b&gt;" in hostile
    assert "<metadata" not in hostile


def test_a_line_goes_along_its_setting_in_whatever_order_it_was_asked_for():
    asked = [made(f"cohort k={k}", "cohort", knowing=1 / k, value=k, terms=0.5) for k in (5, 100, 20)]
    assert [one["label"] for one in chart_data(comparison(*asked))["points"]] == ["k=5", "", "k=100"]


def test_no_two_lines_look_alike():
    seen = {(one["colour"], one["shape"]) for one in map(look, range(64))}
    assert len(seen) == 64


def test_a_notebook_shows_all_candidates_escaped():
    found = usual()._repr_html_()
    assert "&lt;img src=x" in found
    assert "<img" not in found
    assert found.count("<tr>") == 1 + len(usual().candidates)
