"""Certificates of a live stream find changed cells of the released log; quiet hours raise no alarm."""

from __future__ import annotations

import json
import sqlite3
import zlib
from pathlib import Path
from typing import Any

import pytest

from querycloak.audits.cells import CATEGORY_OR_ABOVE
from querycloak.service.monitor.stream_audit import AS_IT_LEFT
from querycloak.service.service import Service
from tests.support import logs
from tests.unit.service.monitor.test_certificates import made_checks, newest, verdicts
from tests.unit.service.running import running, send

OTHER = {"time": "2006-03-04T05:06:07Z", "rank": 77, "url": "http://made-up.example", "category": "Sports"}


def lines_with_categories() -> list[bytes]:
    """Return a synthetic log as lines, in order of time, with the category of each query."""
    rows = logs.made_up(120, seed=7, categories=True).frame.sort("time")
    return rows.drop("row").write_ndjson().encode().splitlines(keepends=True)


def change(state: Path, column: str, value: object) -> None:
    """Change a cell of the first released line in which it is filled, or of the first; checksums fit."""
    database = sqlite3.connect(state / "service.sqlite", isolation_level=None)
    first, block = database.execute("SELECT first, lines FROM released ORDER BY first").fetchone()
    lines = block.splitlines(keepends=True)
    cells = [json.loads(line).get(column) for line in lines]
    place = next((n for n, cell in enumerate(cells) if cell not in (None, value)), 0)
    record = json.loads(lines[place]) | {column: value}
    lines[place] = json.dumps(record, separators=(",", ":")).encode() + b"\n"
    changed = b"".join(lines)
    values = (changed, zlib.crc32(changed), first)
    database.execute("UPDATE released SET lines = ?, checksum = ? WHERE first = ?", values)
    database.close()


@pytest.mark.parametrize("column", OTHER)
@pytest.mark.parametrize(
    ("method", "settings"), [("cohort", {"k": 3}), ("swap", {"k": 3, "level": 1}), ("z-anonymity", {"z": 2})]
)
def test_a_changed_cell_of_a_released_line_is_found(
    tmp_path: Path, method: str, settings: dict[str, Any], column: str
) -> None:
    with running(tmp_path, method, **settings) as service:
        send(service, lines_with_categories())
        change(tmp_path, column, OTHER[column])
        service.monitor.certify()
        made = newest(service)
    broken = {check for check, verdict in verdicts(made).items() if verdict == "broken"}
    generalised = method == "z-anonymity" and column == "category"
    assert broken == {
        CATEGORY_OR_ABOVE.check if generalised else f"every `{column}` is that of its original row"
    }
    assert made["audit"] == "broken"


def test_a_further_key_of_a_released_line_is_found(tmp_path: Path) -> None:
    with running(tmp_path, k=3) as service:
        send(service, lines_with_categories())
        change(tmp_path, "author", "u1")
        service.monitor.certify()
        assert verdicts(newest(service))[AS_IT_LEFT] == "broken"


def certified(service: Service, lines: list[bytes], at_once: int) -> list[dict[str, Any]]:
    """Send lines in pieces, with a certificate after each."""
    made = []
    for start in range(0, len(lines), at_once):
        send(service, lines[start : start + at_once])
        before = service.monitor.certificates.newest()
        service.monitor.certify()
        if service.monitor.certificates.newest() != before:
            made.append(newest(service))
    return made


@pytest.mark.nightly
@pytest.mark.parametrize("k", [2, 5, 20])
@pytest.mark.parametrize("at_once", [7, 40])
def test_quiet_hours_raise_no_alarm(tmp_path: Path, k: int, at_once: int) -> None:
    """Some hundred periods with a few records each: together they alarm with a chance of 0.1 %."""
    with running(tmp_path, k=k, shards=1) as service:
        made = certified(service, lines_with_categories()[: 250 * at_once], at_once)
    assert len(made) > 80
    assert [one["audit"] for one in made if made_checks(one) != {"kept"}] == []
