"""A release that somebody changed, with the hash fixed up, is refused by `verify` with original and truth.

`KINDS` has what can be done to a release, `RELEASES` a release of every registered method. Every kind is
tried on every release, or `NOT_APPLICABLE` has the reason why not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
from click.testing import CliRunner

import querycloak as qc
from querycloak import formats, registry
from querycloak.cli import main
from querycloak.engines import codec
from querycloak.methods.shared.labels import Pseudonyms
from tests.support.logs import made_up

#: Releases of all methods, with settings under which something is released; names begin with the method's.
RELEASES: dict[str, dict[str, Any]] = {
    "swap": {"k": 3, "level": 1},
    "swap, no times": {"k": 3, "level": 1, "time": "drop"},
    "cohort": {"k": 3, "shards": 1, "time": "coarsen"},
    "cohort, no times": {"k": 3, "shards": 1, "time": "drop"},
    "km": {"k": 2, "m": 1},
    "km, no times": {"k": 2, "m": 1, "time": "drop"},
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
    "threshold-dp": {"d": 20, "K": 33, "b": 1.0, "b_q": 1.0},
    "dp-histogram": {"bins": "topics", "topics": "categories", "by": "history", "epsilon": 4.0},
}
LABELS = "every label is a new pseudonym, and no user id of the log"
LAYOUT = "the release has exactly the columns and records of its layout"
PROMISE = "the certificate states the guarantee and the limits of these settings"
ASKED = "every released query is the one that was asked"
SAME = "that of its original row"
TABLES = {"threshold-dp", "dp-histogram"}


class Made(NamedTuple):
    """A release that can be changed: its columns and lines, its ground truth, and its certificate."""

    columns: list[str]
    lines: list[list[str]]
    truth: pl.DataFrame
    certificate: dict[str, Any]

    def set(self, column: str, value: str, line: int | None = None) -> None:
        """Change a cell in the first line in which the column is filled, or in this one."""
        place = self.columns.index(column)
        filled = [n for n, cells in enumerate(self.lines) if cells[place]]
        self.lines[(filled or [0])[0] if line is None else line][place] = value


def add_authors(made):
    made.columns.append("AnonID2")
    people = (
        made.truth["original_user"] if "original_user" in made.truth.columns else pl.Series([], dtype=str)
    )
    for n, line in enumerate(made.lines):
        line.append(people[n] or "" if n < len(people) else "117")


def show_an_id(made):
    place = made.columns.index("user")
    label, author = made.lines[0][place], made.truth["original_user"].drop_nulls()[0]
    for line in made.lines:
        line[place] = author if line[place] == label else line[place]


def exchange_labels(made):
    place = made.columns.index("user")
    first, second = list(dict.fromkeys(line[place] for line in made.lines))[:2]
    for line in made.lines:
        line[place] = {first: second, second: first}.get(line[place], line[place])


def exchange_lines(made):
    """Exchange the first two neighbours that differ in their original rows and cells."""
    n = next(n for n in range(len(made.lines) - 1) if made.lines[n][1:] != made.lines[n + 1][1:])
    made.lines[n], made.lines[n + 1] = made.lines[n + 1], made.lines[n]


def show_time(made):
    made.set("time", "2006-03-04 05:06:07")


def overstate(made):
    made.certificate["methods"][0]["promise"] = "complete anonymity"


def hide(made):
    made.certificate["methods"][0]["does_not_protect_against"].pop()


def change(column, value):
    def changed(made):
        place = made.columns.index(column)
        made.set(column, value if made.lines[0][place] != value else "Arts")

    return changed


KINDS: dict[str, Callable[[Made], object]] = {
    "a further column with authors": add_authors,
    "a user id in place of a label": show_an_id,
    "labels exchanged": exchange_labels,
    "a user in an empty column": lambda made: made.set("user", "117", line=2),
    "another time": show_time,
    "another query": change("query", "made up words"),
    "another url": change("url", "http://made-up.example"),
    "another rank": change("rank", "77"),
    "another category": change("category", "Sports"),
    "a guarantee rewritten": overstate,
    "a limit removed": hide,
    "the first row removed": lambda made: made.lines.pop(0),
    "the last row removed": lambda made: made.lines.pop(),
    "the last row doubled": lambda made: made.lines.append(list(made.lines[-1])),
    "two rows exchanged": exchange_lines,
}
ROWS = "the release has exactly the rows of the ground truth"
#: The checks that find a kind: at least one of them fails.
FOUND_BY: dict[str, set[str]] = {
    "a further column with authors": {LAYOUT},
    "a user id in place of a label": {LABELS},
    "labels exchanged": {LABELS},
    "a user in an empty column": {"every `user` is empty"},
    "another time": {f"every `time` is {rest}" for rest in ("empty", SAME, f"{SAME}, truncated to the hour")},
    "another query": {ASKED},
    "another url": {"every `url` is empty", f"every `url` is {SAME}"},
    "another rank": {"every `rank` is empty", f"every `rank` is {SAME}"},
    "another category": {"every `category` is empty", f"every `category` is {SAME}"},
    "a guarantee rewritten": {PROMISE},
    "a limit removed": {PROMISE},
    "the first row removed": {ROWS},
    "the last row removed": {ROWS},
    "the last row doubled": {ROWS},
    "two rows exchanged": {f"every `{name}` is {SAME}" for name in ("rank", "url")} | {ASKED, LABELS},
}
FOUND_BY["two rows exchanged"] |= FOUND_BY["another time"]
#: Kinds that change a column which a method can write: the method's own checks find these.
WRITTEN = {"another time", "another query", "another url", "another rank", "another category"}
COUNTS = "the release is a table of counts: it has no such column, and its noise hides every row"
NO_LABELS = "the user column is empty"
NOT_APPLICABLE: dict[tuple[str, str], str] = {
    ("frequent-only", "a user id in place of a label"): NO_LABELS,
    ("frequent-only", "labels exchanged"): NO_LABELS,
    (
        "short-sessions",
        "labels exchanged",
    ): "the ground truth has no labels of sessions",
    (
        "dp-semantic",
        "two rows exchanged",
    ): "queries are drawn, so rows of one user have no original",
}
#: Kinds that apply to a table of counts.
OF_TABLES = {"a further column with authors", "a guarantee rewritten", "a limit removed"}


def why_not_applicable(name: str, kind: str) -> str:
    """Return why a kind cannot be tried on a release, or the audit need not find it; "" if it must."""
    if name in TABLES and kind not in OF_TABLES:
        return COUNTS
    if kind == "a user in an empty column" and name != "frequent-only":
        return "the user column has labels"
    return NOT_APPLICABLE.get((name, kind), "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a log; `released` adds releases of it."""
    folder = tmp_path_factory.mktemp("tampering")
    formats.write(made_up(150, seed=5, categories=True), folder / "log.tsv")
    return folder


def released(folder: Path, name: str) -> Path:
    """Return the release with this name, with its ground truth beside it; make it when it is first needed."""
    output = folder / f"{name}.tsv"
    if not output.exists():
        method, truth = name.partition(",")[0], folder / f"{name}.parquet"
        qc.protect(folder / "log.tsv", method, **RELEASES[name], seed=1, output=output, truth=truth)
    return output


def forge(folder: Path, name: str, tamper: Callable[[Made], object]) -> tuple[int, set[str]]:
    """Write a changed copy of a release with the right hash; return what `verify` ends with and finds."""
    original, copy = released(folder, name), folder / f"{name}.forged.tsv"
    columns, *lines = (line.split("\t") for line in original.read_text().splitlines())
    certificate = json.loads(Path(f"{original}.certificate.json").read_text())
    truth = folder / f"{name}.parquet"
    made = Made(columns, lines, pl.read_parquet(truth), certificate)
    tamper(made)
    copy.write_text("".join("\t".join(line) + "\n" for line in (columns, *lines)))
    certificate["release"]["sha256"] = hashlib.sha256(copy.read_bytes()).hexdigest()
    Path(f"{copy}.certificate.json").write_text(json.dumps(certificate))
    words = ["verify", copy, "--original", folder / "log.tsv", "--truth", truth, "--json"]
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, {line["check"] for line in json.loads(done.stdout)["broken"]}


@pytest.mark.parametrize("name", RELEASES)
def test_an_honest_release_passes(folder, name):
    assert forge(folder, name, lambda made: None) == (0, set())


@pytest.mark.parametrize(
    ("name", "kind"), [(n, k) for n in RELEASES for k in KINDS if not why_not_applicable(n, k)]
)
def test_a_release_that_was_changed_is_refused(folder, name, kind):
    status, broken = forge(folder, name, KINDS[kind])
    certificate = json.loads((folder / f"{name}.tsv.certificate.json").read_text())
    own = {check["check"] for part in certificate["methods"] for check in part["checks"]}
    assert status == 4
    assert broken & FOUND_BY[kind] or (kind in WRITTEN and broken & own), broken


def test_every_method_and_every_kind_is_in_the_table():
    assert {name.partition(",")[0] for name in RELEASES} == set(registry.METHODS.names())
    assert FOUND_BY.keys() == KINDS.keys()
    applied = {kind for kind in KINDS for name in RELEASES if not why_not_applicable(name, kind)}
    assert applied == KINDS.keys()
    unused = [key for key in NOT_APPLICABLE if key not in {(n, k) for n in RELEASES for k in KINDS}]
    assert not unused


def test_a_changed_count_is_not_detected(folder):
    """The noise is the operating system's: only the signature shows who changed a count."""
    assert forge(folder, "dp-histogram", lambda made: made.set("count", "12345")) == (0, set())


def protect(folder, output, name):
    """Protect the log anew by the command line; return the exit status and the messages."""
    words = ["protect", folder / "log.tsv", "-m", name.partition(",")[0], "-o", output, "--seed", 1]
    for key, value in RELEASES[name].items():
        words += ["-s", f"{key}={value}"]
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert not output.exists() or done.exit_code == 0
    return done.exit_code, done.output


@pytest.mark.parametrize("name", ["swap", "cohort", "km", "z-anonymity", "rules", "microagg-plain"])
def test_fresh_labels_that_are_user_ids_are_not_published(folder, tmp_path, monkeypatch, name):
    monkeypatch.setattr(Pseudonyms, "of", lambda self, users: users)
    status, text = protect(folder, tmp_path / "out.tsv", name)
    assert status == 4
    assert LABELS in text


@pytest.mark.parametrize("name", ["swap, no times", "cohort, no times", "frequent-only"])
def test_a_column_that_is_not_emptied_is_not_published(folder, tmp_path, monkeypatch, name):
    column = "user" if name == "frequent-only" else "time"
    empty = codec.empty_cells

    def filled(frame, *rest):
        return empty(frame, *rest).with_columns(frame[column])

    monkeypatch.setattr(codec, "empty_cells", filled)
    status, text = protect(folder, tmp_path / "out.tsv", name)
    assert status == 4
    assert f"every `{column}` is empty" in text
