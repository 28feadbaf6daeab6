"""Certificates of a live stream: true for good ones, broken for bad ones, and they outlive restarts."""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import stat
import zlib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import querycloak as qc
from querycloak import certificate, ledger
from querycloak.errors import UsageError
from querycloak.guarantee import Finding
from querycloak.ledger import Ledger
from querycloak.service.monitor import stream_audit
from querycloak.service.monitor.certificates import ALL_AUDITED, Certificates
from querycloak.service.monitor.stream_audit import AS_IT_LEFT, SliceAudit
from querycloak.service.service import Service
from querycloak.service.stream import stream
from tests.unit.service.running import SECRET_QUERY, SECRET_USER, made_up, running, send


def newest(service: Service) -> dict[str, Any]:
    number = service.monitor.certificates.newest()[0]["number"]
    return json.loads(service.monitor.certificates.read(number))


def verdicts(made: dict[str, Any]) -> dict[str, str]:
    checks = [check for part in made["methods"] for check in part["checks"]] + made["lineage"]
    return {check["check"]: check["verdict"] for check in checks}


def made_checks(made: dict[str, Any]) -> set[str]:
    """Return the verdicts of all checks that apply: `cohort` and `swap` write the labels themselves."""
    return set(verdicts(made).values()) - {"not applicable"}


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("cohort", {"k": 3}),
        ("swap", {"k": 3, "level": 1}),
        ("swap", {"k": 2, "level": 2, "leftover": "rollup"}),
        ("swap", {"k": 2, "level": "auto", "patience": 20}),
    ],
)
def test_every_period_of_a_good_stream_is_kept(tmp_path: Path, method: str, settings: dict[str, Any]) -> None:
    lines = made_up()
    with running(tmp_path, method, **settings) as service:
        for third in range(3):
            send(service, lines[third::3])
            service.monitor.certify()
        found = service.monitor.certificates.newest()
        assert [one["verdict"] for one in found] == ["kept"] * 3
        assert [one["first"] for one in found][::-1] == [1, found[2]["last"] + 1, found[1]["last"] + 1]
        for number in (1, 2, 3):
            made = json.loads(service.monitor.certificates.read(number))
            assert made_checks(made) == {"kept"}


def test_small_slices_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_audit, "MOST_SLICES", 1000)
    lines = made_up()
    with running(tmp_path, "swap", k=3, level=1) as service:
        service.monitor.slices.size = 100
        send(service, lines, at_once=70)
        service.monitor.certify()
        assert made_checks(newest(service)) == {"kept"}
        assert newest(service)["release"]["stream"]["last"] == service.state().status()["released"]


def test_a_slice_waits_until_its_lines_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice can end within a step, before the worker has written what left in it."""
    monkeypatch.setattr(stream, "BATCH_ROWS", 100)
    with running(tmp_path, k=3) as service:
        monitor = service.monitor
        on_records = monitor.slices.on_records

        def hurried(*args: Any) -> None:
            on_records(*args)
            with monitor.audit_lock:
                monitor._audit_queued()

        monkeypatch.setattr(monitor.slices, "on_records", hurried)
        monitor.slices.size = 50
        send(service, made_up(), at_once=2000)
        monitor.certify()
        assert newest(service)["audit"] == "kept"


def test_the_hash_is_that_of_the_lines_and_verify_says_so(tmp_path: Path) -> None:
    with running(tmp_path / "state", k=3) as service:
        send(service, made_up())
        service.monitor.certify()
        made = newest(service)
        lines = service.released.read(0, 1 << 30)
    assert hashlib.sha256(lines).hexdigest() == made["release"]["sha256"]
    part, beside = tmp_path / "part.ndjson", tmp_path / "certificate.json"
    beside.write_bytes(certificate.to_bytes(made))
    part.write_bytes(lines)
    assert qc.verify(part, certificate=beside).holds
    part.write_bytes(lines[lines.index(b"\n") + 1 :])
    broken = [one["check"] for one in qc.verify(part, certificate=beside).broken]
    others = f"the lines are those from 1 to {made['release']['stream']['last']}"
    assert broken == ["the release has the SHA-256 of its certificate", others]
    part.write_bytes(lines.replace(b'{"offset":', b'{"number":'))
    assert others in [one["check"] for one in qc.verify(part, certificate=beside).broken]
    with pytest.raises(UsageError, match="without the original"):
        qc.verify(part, certificate=beside, original=part, truth=part)
    part.write_bytes(lines)
    beside.write_bytes(certificate.to_bytes(made | {"audit": "broken"}))
    assert not qc.verify(part, certificate=beside).holds


@pytest.mark.parametrize(
    ("found", "worst"),
    [
        ("kept, broken, kept", "broken"),
        ("not checkable, kept", "not checkable"),
        ("not applicable, kept", "kept"),
    ],
)
def test_the_worst_slice_decides(found: str, worst: str) -> None:
    slices = []
    for number, verdict in enumerate(found.split(", ")):
        check = {"check": "a", "verdict": verdict, "detail": ""}
        part = {"method": "toy", "sentences": [{"text": "x", "checks": ["a"]}], "checks": [check]}
        slices.append(SliceAudit(number, number, [part], [Finding("b", verdict)]))  # type: ignore[arg-type]
    (part,), (lineage,) = stream_audit.summarise(slices)
    assert part["audit"] == part["sentences"][0]["audit"] == part["checks"][0]["verdict"] == worst
    assert lineage.verdict == worst


def _under_their_own_names(service: Service) -> None:
    """Tamper: let every record leave under its author, as if the method did nothing."""
    live = service.worker.stream
    out = live._release

    def honest_names(batch: Any) -> Any:
        rows = live.records.columns("_head", "user")
        if rows is not None and len(batch):
            users = dict(rows.iter_rows())
            codes = live.pipeline.texts.user.encode(pl.Series([users[head] for head in batch.row.tolist()]))
            batch = batch.replace(user=codes)
        return out(batch)

    live._release = honest_names  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("method", "settings", "check"),
    [
        ("cohort", {"k": 3}, "searches carry the label of their author as often as at random"),
        ("swap", {"k": 3, "level": 1}, "no record is released under the label of its author"),
    ],
)
def test_labels_that_are_the_authors_break_the_promise(
    tmp_path: Path,
    method: str,
    settings: dict[str, Any],
    check: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger("querycloak.service"), "propagate", True)
    with running(tmp_path, method, **settings) as service:
        _under_their_own_names(service)
        send(service, made_up())
        service.monitor.certify()
        made = newest(service)
        assert made["audit"] == "broken"
        assert verdicts(made)[check] == "broken"
        assert service.monitor.certificates.verdicts["broken"] == 1
        assert not service.state().health.codes, "the service continues: people decide whether to stop it"
    assert [record.message for record in caplog.records if record.levelname == "CRITICAL"] == [
        "a check of the audit failed"
    ]


def test_labels_from_nowhere_are_found_a_period_later(tmp_path: Path) -> None:
    """What swap holds is followed from period to period: a label that left already may not leave again."""
    lines = made_up()
    with running(tmp_path, "swap", k=3, level=1) as service:
        send(service, lines[: len(lines) // 2])
        service.monitor.certify()
        assert newest(service)["audit"] == "kept"
        present = service.monitor._auditor._present
        assert present is not None
        assert present.height
        service.monitor._auditor._present = present.clear()  # as if what waits had never come
        send(service, lines[len(lines) // 2 :])
        service.monitor.certify()
        assert (
            verdicts(newest(service))[
                "no label is released more often than its user searched in the category"
            ]
            == "broken"
        )


@pytest.mark.parametrize(
    ("column", "check"),
    [
        ("query", "every released query is the one that was asked"),
        ("url", "every `url` is that of its original row"),
    ],
)
def test_a_released_line_that_was_changed_on_disk_is_found(tmp_path: Path, column: str, check: str) -> None:
    with running(tmp_path, k=3) as service:
        send(service, made_up())
        database = sqlite3.connect(tmp_path / "service.sqlite", isolation_level=None)
        first, lines = database.execute("SELECT first, lines FROM released ORDER BY first").fetchone()
        place = lines.index(f'"{column}":"'.encode()) + len(f'"{column}":"')
        changed = lines[:place] + bytes([lines[place] ^ 1]) + lines[place + 1 :]
        values = (changed, zlib.crc32(changed), first)
        database.execute("UPDATE released SET lines = ?, checksum = ? WHERE first = ?", values)
        database.close()
        service.monitor.certify()
        assert verdicts(newest(service))[check] == "broken"
        assert verdicts(newest(service))[AS_IT_LEFT] == "kept"


def test_numbers_and_ledger_go_on_after_a_restart(tmp_path: Path) -> None:
    lines = made_up()
    half = len(lines) // 2
    with running(tmp_path, k=3) as service:
        send(service, lines[:half])
    with running(tmp_path, k=3) as service:
        first = newest(service)
        assert first["release"]["stream"]["number"] == 1, "a stop ends the period"
        assert made_checks(first) == {"kept"}
        send(service, lines[half:])
        service.monitor.certify()
        second = newest(service)
    assert second["release"]["stream"]["first"] == first["release"]["stream"]["last"] + 1
    assert made_checks(second) == {"kept"}
    entries = Ledger(tmp_path).of_source("service")
    assert [entry["sha256"] for entry in entries] == [one["release"]["sha256"] for one in (first, second)]
    assert second["ledger"] == {"head": entries[1]["hash"], "entry": 2, "earlier_releases_of_source": 1}
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "certificates").iterdir()}
    assert modes == {0o600}


def test_lines_of_before_a_crash_are_certified_and_not_claimed_as_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = made_up()
    half = len(lines) // 2
    with running(tmp_path, "swap", k=3, level=1) as service:
        send(service, lines[:half])
        service.checkpoint()
        monkeypatch.setattr(service.monitor, "certify", lambda: None)  # as if it had died here
    with running(tmp_path, "swap", k=3, level=1) as service:
        before = service.state().status()["released"]
        send(service, lines[half:])
        service.monitor.certify()
        made = newest(service)
        lines_now = service.released.read(0, 1 << 30)
    assert made["release"]["stream"]["first"] == 1
    assert made["release"]["sha256"] == hashlib.sha256(lines_now).hexdigest()
    (gap,) = [check for check in made["lineage"] if check["check"] == ALL_AUDITED]
    assert gap["verdict"] == "not checkable"
    assert gap["detail"].startswith(f"{before:,} of ")
    found = verdicts(made)
    assert found["no label is released more often than its user searched in the category"] == "not checkable"
    assert found["no record is released under the label of its author"] == "kept"
    assert found["every released row comes from a row of the original"] == "kept"


def test_an_audit_that_falls_behind_says_what_it_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_audit, "MOST_SLICES", 3)
    lines = made_up()
    with running(tmp_path, k=3) as service:
        with service.monitor.audit_lock:  # the audit's thread cannot go on
            service.monitor.slices.size = 200
            for start in range(0, len(lines), 100):  # one by one: entries that wait are applied together
                send(service, lines[start : start + 100])
        service.monitor.certify()
        made = newest(service)
        assert verdicts(made)[ALL_AUDITED] == "not checkable"
        assert made["audit"] == "not checkable"
        send(service, lines)
        service.monitor.certify()
        assert newest(service)["audit"] == "kept"


def test_a_failed_audit_is_told_and_the_next_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = made_up()
    third = len(lines) // 3
    with running(tmp_path, k=3) as service:
        send(service, lines[:third])
        with monkeypatch.context() as patch:
            patch.setattr(service.monitor._auditor, "_audit", lambda part, held: 1 // 0)
            service.monitor.certify()
        assert verdicts(newest(service))[ALL_AUDITED] == "not checkable"
        send(service, lines[third : 2 * third])
        service.monitor.certify()
        assert verdicts(newest(service))[ALL_AUDITED] == "not checkable"
        send(service, lines[2 * third :])
        service.monitor.certify()
        assert made_checks(newest(service)) == {"kept"}


def test_epochs_and_erasures_keep_promises(tmp_path: Path) -> None:
    lines = made_up()
    users = list(dict.fromkeys(json.loads(line)["user"] for line in lines))
    for method, settings in (("cohort", {"k": 3}), ("swap", {"k": 3, "level": 1})):
        with running(tmp_path / method, method, **settings) as service:
            quarter = len(lines) // 4
            send(service, lines[:quarter])
            for user in users[:3]:
                service.erase(user)
            send(service, lines[quarter : 2 * quarter])
            service.monitor.certify()
            assert made_checks(newest(service)) == {"kept"}
            send(service, lines[2 * quarter : 3 * quarter])
            service.rotate()
            send(service, lines[3 * quarter :])
            service.monitor.certify()
            assert made_checks(newest(service)) == {"kept"}


def test_nobody_is_in_a_certificate(tmp_path: Path) -> None:
    with running(tmp_path, k=3) as service:
        lines = made_up()
        send(service, lines)
        labels = {json.loads(line)["user"] for line in service.released.read(0, 1 << 30).splitlines()}
    files = [*(tmp_path / "certificates").iterdir(), tmp_path / "ledger.jsonl"]
    text = "".join(path.read_text() for path in files)
    assert len(files) == 3, "a certificate, the index and the ledger"
    assert not [word for word in (SECRET_USER, SECRET_QUERY, *labels) if word in text]


def test_promises_about_whole_logs_are_not_tested_on_parts(tmp_path: Path) -> None:
    with running(tmp_path, "frequent-only", k=2) as service:
        send(service, made_up())
        service.monitor.certify()
        found = verdicts(newest(service))
    assert found["each released query was asked by at least 2 users"] == "not checkable"
    assert found["no row of the original is shown twice"] == "kept"


def test_a_changed_setting_ends_the_period(tmp_path: Path) -> None:
    lines = made_up()
    with running(tmp_path, "swap", k=2, level=1) as service:
        send(service, lines[: len(lines) // 2])
        service.worker.run_on_worker(lambda: service.worker.stream.change("k", 4)).result()
        send(service, lines[len(lines) // 2 :])
        service.monitor.certify()
        made = [json.loads(service.monitor.certificates.read(number)) for number in (1, 2)]
    assert [one["methods"][0]["settings"]["k"] for one in made] == [2, 4]
    assert [one["audit"] for one in made] == ["kept", "kept"]
    assert made[1]["release"]["stream"]["first"] == made[0]["release"]["stream"]["last"] + 1


def test_a_start_parses_no_certificate_that_the_index_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = made_up()
    with running(tmp_path, k=3) as service:
        for half in range(2):
            send(service, lines[half::2])
            service.monitor.certify()
        known, verdicts_before = service.monitor.certificates.newest(), service.monitor.certificates.verdicts
    assert len(known) == 2
    index = tmp_path / "certificates" / "index.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(certificate, "read", lambda path: 1 // 0)
        again = Certificates(tmp_path)
        assert (again.newest(), again.verdicts) == (known, verdicts_before)
    for damaged in ("", index.read_text().splitlines()[0] + "\n", "nonsense\n", index.read_text()[:-9]):
        index.write_text(damaged)
        assert Certificates(tmp_path).newest() == known
        assert len(index.read_text().splitlines()) == 2


def test_a_certificate_hashes_no_ledger_entry_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = made_up()
    with running(tmp_path, k=3) as service:
        hashed, real = [], ledger._hash
        monkeypatch.setattr(
            ledger, "_hash", lambda entry, key: hashed.append(entry["number"]) or real(entry, key)
        )
        for part in range(4):
            send(service, lines[part::5])
            service.monitor.certify()
        assert hashed == [1, 1, 2, 2, 3, 3, 4]  # made, and checked when it is first read
