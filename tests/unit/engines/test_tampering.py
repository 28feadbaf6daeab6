"""A release that somebody changed, with the hash fixed up, fails the check that is about the change."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

import querycloak as qc
from querycloak import formats, registry
from tests.support.logs import made_up

#: One release of each method that shows rows, with settings under which something is released.
CASES = {
    "swap": {"k": 3, "level": 1},
    "cohort": {"k": 3, "shards": 1, "time": "coarsen"},
    "km": {"k": 2, "m": 1},
    "dp-semantic": {"epsilon": 5.0},
    "microagg-syntactic": {"k": 3},
    "microagg-topic": {"k": 3},
    "microagg-semantic": {"k": 3},
    "microagg-plain": {"k": 3},
    "graph-suppress": {},
    "frequent-only": {"k": 2},
    "z-anonymity": {"z": 2},
    "short-sessions": {"k": 2},
    "rules": {},
}
LABELS = "every label is a new pseudonym, and no user id of the log"
LAYOUT = "the release has exactly the columns and records of its layout"
PROMISE = "the certificate states the guarantee and the limits of these settings"


def has_labels(name):
    return "labels" in {field.name for field in dataclasses.fields(registry.METHODS.get(name).Settings)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the log file, and a release of each method as a frame, with all that belongs to it."""
    folder = tmp_path_factory.mktemp("tampering")
    log = made_up(150, seed=5, categories=True)
    formats.write(log, folder / "log.tsv")
    releases = {}
    for name, settings in CASES.items():
        fresh = {"labels": "fresh"} if has_labels(name) else {}
        releases[name] = qc.protect(
            folder / "log.tsv", name, **settings, **fresh, seed=1,
            output=folder / f"{name}.tsv", truth=folder / f"{name}.parquet",
        )  # fmt: skip
    return folder, releases


def forge(folder, name, change=None, document=None):
    """Write a changed copy of a release with the right hash; return what `verify` finds broken."""
    original, copy = folder / f"{name}.tsv", folder / f"{name}.forged.tsv"
    lines = [line.split("\t") for line in original.read_text().splitlines()]
    if change is not None:
        change(lines)
    copy.write_text("".join("\t".join(line) + "\n" for line in lines))
    certificate = json.loads(Path(f"{original}.certificate.json").read_text())
    if document is not None:
        document(certificate)
    certificate["release"]["sha256"] = hashlib.sha256(copy.read_bytes()).hexdigest()
    Path(f"{copy}.certificate.json").write_text(json.dumps(certificate))
    found = qc.verify(copy, original=folder / "log.tsv", truth=folder / f"{name}.parquet")
    return {line["check"] for line in found.broken}


def cell(lines, column):
    """Return the number of a column, and of the first line in which it is filled (or the first)."""
    place = lines[0].index(column)
    filled = [n for n, line in enumerate(lines) if n and line[place]]
    return place, (filled or [1])[0]


@pytest.mark.parametrize("name", CASES)
def test_an_honest_release_passes(made, name):
    assert forge(made[0], name) == set()


@pytest.mark.parametrize("name", CASES)
def test_a_further_column_is_found(made, name):
    def add_authors(lines):
        authors = pl.read_parquet(made[0] / f"{name}.parquet")["original_user"].to_list()
        for line, author in zip(lines, ["AnonID2", *authors], strict=True):
            line.append(author)

    assert LAYOUT in forge(made[0], name, add_authors)


@pytest.mark.parametrize("name", [name for name in CASES if name != "frequent-only"])
def test_a_user_id_as_a_label_is_found(made, name):
    truth = pl.read_parquet(made[0] / f"{name}.parquet")

    def show_author(lines):
        place, line = cell(lines, "user")
        label, author = lines[line][place], truth["original_user"][line - 1]
        for other in lines[1:]:
            other[place] = author if other[place] == label else other[place]

    assert LABELS in forge(made[0], name, show_author)


def test_a_user_in_an_empty_column_is_found(made):
    def show_author(lines):
        lines[3][0] = "u17"

    assert "every `user` is empty" in forge(made[0], "frequent-only", show_author)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("frequent-only", "short-sessions")])
def test_labels_that_are_exchanged_are_found(made, name):
    """Two labels that change places show a history under another label than the truth states.

    The ground truth has no labels of sessions; checks of `short-sessions` test these.
    """

    def exchange(lines):
        place = lines[0].index("user")
        first, second = list(dict.fromkeys(line[place] for line in lines[1:]))[:2]
        for line in lines[1:]:
            line[place] = {first: second, second: first}.get(line[place], line[place])

    assert LABELS in forge(made[0], name, exchange)


@pytest.mark.parametrize("column", ["time", "rank", "url", "category"])
@pytest.mark.parametrize("name", CASES)
def test_a_changed_cell_is_found(made, name, column):
    values = {"time": "2006-03-04 05:06:07", "rank": "77", "url": "made-up.example", "category": "Sports"}

    def change(lines):
        place, line = cell(lines, column)
        lines[line][place] = values[column] if lines[line][place] != values[column] else "Arts"

    broken = forge(made[0], name, change)
    assert any(f"`{column}`" in check for check in broken) or broken & set(own_checks(made[1][name])), broken


def own_checks(release):
    return [check["check"] for part in release.certificate["methods"] for check in part["checks"]]


@pytest.mark.parametrize("name", CASES)
def test_a_rewritten_guarantee_is_found(made, name):
    def overstate(certificate):
        certificate["methods"][0]["promise"] = "complete anonymity"

    def hide(certificate):
        certificate["methods"][0]["does_not_protect_against"].pop()

    assert forge(made[0], name, document=overstate) == {PROMISE}
    assert forge(made[0], name, document=hide) == {PROMISE}
