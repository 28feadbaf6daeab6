"""The registry: detection, and a format that comes from another package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import blocks

from querycloak.errors import UnknownName
from querycloak.formats import FORMATS, Format, LineFormat, detect, registry

PAGE = Path(__file__).parents[3] / "docs/reference/formats.md"
AOL = b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"


@pytest.mark.parametrize(
    ("head", "name", "found"),
    [
        (AOL, "log.txt", "aol"),
        (AOL, "log.csv", "aol"),
        (b"c1\t970916071543\tkettle\r\n", "log.txt", "excite"),
        (b"c1\t970916071543\tkettle\n", "log.csv", "csv"),
        (b"user\tquery\tx\n", "", "tsv"),
        (b"user\tquery\tx\n", "log.csv.gz", "csv"),
        (b"a\tb\n", "log.log", "tsv"),
        (b"user;query\n", "log.tsv", "csv"),
        (b"user,q\n", "", "csv"),
        (b'{"user":1}\n', "log.csv", "jsonl"),
        (b"oops\n", "log.jsonl.zst", "jsonl"),
        (b'{"query_id":"a","user_query":"b"}\n', "log.jsonl", "ubi"),
        (b'{"a":1}\n', "ubi_queries.ndjson", "ubi"),
        (b"PAR1\x15", "log.csv", "parquet"),
        (b"not parquet", "log.parquet", "parquet"),
        (b"", "log.csv", "csv"),
        (b"", "log.txt", "tsv"),
        (b"", "log.ubi", "ubi"),
        (b"[{}]", "log.json", "jsonl"),
    ],
)
def test_a_format_is_detected_by_content_and_then_by_name(head, name, found):
    assert detect(head, name).name == found


def test_an_empty_file_without_a_telling_name_has_no_format():
    assert detect(b"", "log") is None
    assert detect(b"\n ", "") is None


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b"just words\n", "list"),
        (b"a, b\n", "list"),
        (b"[{", "takeout"),
        (b"<html>", "takeout"),
        (b"PK\x03\x04", "takeout"),
        (b"user;query;time\n", "csv"),
        (b"user|Query\n", "csv"),
        (b'"user","query"\r\n', "csv"),
        (b"query\ttime\n", "tsv"),
        (AOL, "aol"),
        (b'{"query":"a"}\n', "jsonl"),
    ],
)
def test_histories_of_one_person_are_detected_where_one_is_asked_for(head, found):
    assert detect(head, "own.txt", single_person=True).name == found
    assert not registry.get(detect(head, "own.txt").name).traits.single_person


def test_every_format_keeps_what_its_traits_state():
    for one in registry.every():
        assert one.name in FORMATS.names()
        assert isinstance(one, LineFormat) == one.traits.by_line
        assert all(ending.startswith(".") for ending in one.traits.extensions)
        assert (type(one).encoder is Format.encoder) == one.traits.single_person


def test_an_unknown_name_is_an_error_with_a_hint():
    with pytest.raises(UnknownName, match="no format is called `jsonlines`") as caught:
        registry.get("jsonlines")
    assert "jsonl" in caught.value.hint


LINES = "".join(f"user=u{n}\tquery=weather\ttime=2024-03-01 07:17:1{n}\n" for n in range(6)) + "broken\n"


@pytest.fixture
def package(tmp_path):
    """The format of the page as an installed package of its own, and its environment."""
    (code,) = (block.text for block in blocks(PAGE.read_text()) if block.file == "pairs_format.py")
    (entry,) = (block.text for block in blocks(PAGE.read_text()) if "entry-points" in block.text)
    site = tmp_path / "site"
    info = site / "pairs_format-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "pairs_format.py").write_text(code)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pairs-format\nVersion: 1.0\n")
    value = entry.split("pairs = ")[1].strip().strip('"')
    (info / "entry_points.txt").write_text(f"[querycloak.formats]\npairs = {value}\n")
    (tmp_path / "log.data").write_text(LINES)
    return {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


def test_a_format_of_another_package_is_a_file_and_a_line(package, tmp_path):
    def run(*words):
        command = [sys.executable, "-m", "querycloak", *words]
        done = subprocess.run(command, env=package, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    made = run("protect", "log.data", "-m", "frequent-only", "-s", "k=2", "-o", "out.pairs.gz", "--json")
    report = json.loads(made)
    assert (report["released"], report["skipped"]) == (6, {"too few fields": 1})
    run("protect", "log.data", "-m", "frequent-only", "-s", "k=2", "-o", "again.csv", "--format", "pairs")
    assert (tmp_path / "again.csv").read_text().splitlines()[0] == "user,query,time"
    assert (tmp_path / "again.csv").read_text().count("weather") == 6
    run("classify", "log.data", "-o", "classified.pairs")  # its columns do not fit: it turns into tsv
    assert (tmp_path / "classified.pairs").read_text().splitlines()[0].split("\t")[:3] == [
        "user",
        "query",
        "time",
    ]


def test_the_service_reads_lines_of_another_package(package, tmp_path):
    program = """
from querycloak.service.sources.file_lines import LineReader
lines = open("log.data", "rb").read()
form = LineReader(lines.partition(b"\\n")[0])
found = form.read(lines)
print(form.begin, len(found.records), found.records[0].user, {k: v.tolist() for k, v in found.bad.items()})
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=package,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "0 6 u0 {'too few fields': [6]}\n", done.stderr
