"""A release is byte for byte the same however the log is cut; nothing appears before the audit passed."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import querycloak as qc
from querycloak import formats
from querycloak.dictionary import Dictionaries
from querycloak.engines.pipeline import Pipeline, parse_stages
from querycloak.engines.release import ReleaseJob, make_release
from querycloak.errors import BrokenPromise, DataError, ParameterError, Refused, UnknownName, UsageError
from querycloak.formats.delimited import Csv
from querycloak.formats.registry import FORMATS, FormatTraits
from querycloak.log import Batch
from querycloak.methods.rules import Rules
from querycloak.registry import METHODS
from tests.support.logs import made_up


@pytest.fixture
def log_file(tmp_path, small_log):
    path = tmp_path / "log.parquet"
    formats.write(small_log, path)
    return str(path)


def protect(job):
    return make_release(job).report


def _request(log, out, methods=("frequent-only",), settings=None, **more):
    return ReleaseJob(log, str(out), parse_stages(list(methods), settings or {}), **more)


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_method_does_not_go_by_a_column_that_an_earlier_one_empties():
    """Without clicks no query led to a URL, so nothing is left."""
    settings = {"short-sessions.k": 2, "clicks": "drop", "rare": "terms"}
    release = qc.protect(qc.generate(150, seed=3), "short-sessions", "graph-suppress", seed=1, **settings)
    assert release.report.released == 0
    assert release.report.reasons["graph-suppress"].keys() == {"the query led to too few URLs"}


class _Forgetful(Csv):
    """Writes all columns, but reads clicks never."""

    name = "forgetful"
    traits = FormatTraits(extensions=(".forgetful",), by_line=True, quoting=True, header=True)

    def reader(self, source, options):
        reader = super().reader(source, options)
        tables = reader.tables
        reader.tables = lambda: (replace(table, frame=table.frame.drop("url")) for table in tables())
        return reader


def test_a_column_that_the_audit_cannot_read_stops_the_release(monkeypatch, tmp_path, log_file):
    monkeypatch.setattr(FORMATS, "added", {_Forgetful.name: _Forgetful})
    with pytest.raises(BrokenPromise, match="`forgetful` does not read the columns url that it writes"):
        protect(_request(log_file, tmp_path / "out.forgetful"))
    assert _files(tmp_path) == ["log.parquet"]


def test_one_run_writes_release_certificate_private_part_and_truth(tmp_path, log_file):
    out, truth = tmp_path / "out.parquet", tmp_path / "t.parquet"
    report = protect(_request(log_file, out, truth=truth, settings={"k": "12"}))
    assert report.released == 60
    assert report.reasons == {"frequent-only": {"asked by too few people": 12}}
    assert (report.rows_read, report.withheld) == (72, 12)
    released = pl.read_parquet(out)
    assert released.columns == ["user", "query", "time", "rank", "url", "category"]
    assert released["user"].null_count() == 60
    for private in (truth, tmp_path / "out.parquet.certificate.private.json"):
        assert stat.S_IMODE(os.stat(private).st_mode) == 0o600
    known = pl.read_parquet(truth)
    assert known.columns == ["released_row", "original_row", "original_user", "released_after"]
    assert known["released_row"].to_list() == list(range(60))
    assert known["released_after"].is_sorted()
    certificate = json.loads((tmp_path / "out.parquet.certificate.json").read_text())
    assert certificate["audit"] == "kept"
    assert certificate["release"]["sha256"] == formats.sha256(out)


@pytest.mark.parametrize(
    "methods",
    [["frequent-only"], ["rules"], ["z-anonymity"], ["rules", "frequent-only"], ["rules", "z-anonymity"]],
)
def test_the_same_seed_gives_the_same_bytes_however_the_log_is_cut(tmp_path, log_file, methods):
    written = []
    for number, piece_rows in enumerate([None, None, 5, 31]):
        out, truth = tmp_path / f"out{number}.parquet", tmp_path / f"t{number}.parquet"
        protect(_request(log_file, out, methods, truth=truth, seed=4, piece_rows=piece_rows))
        frame, known = formats.read(str(out), required=()).frame, pl.read_parquet(truth)
        written.append((frame.to_dicts(), known.to_dicts(), out.read_bytes() if piece_rows is None else b""))
    assert written[0][2] == written[1][2]
    assert all(each[:2] == written[0][:2] for each in written)


def test_a_file_sorted_by_user_gives_the_release_of_the_same_file_sorted_by_time(tmp_path, small_log):
    outs = []
    for name, by in (("user", ["user", "time"]), ("time", ["time"])):
        path = tmp_path / f"{name}.parquet"
        formats.write(small_log.sort(by).drop("row"), path)
        out = tmp_path / f"{name}-out.parquet"
        protect(_request(str(path), out, ["frequent-only"], {"k": "3"}, seed=1))
        outs.append(formats.read(str(out), required=()).frame.sort("time", "query").drop("row").to_dicts())
    assert outs[0] == outs[1]


def test_rows_of_one_search_leave_together(tmp_path):
    rows = [
        {"user": u, "query": "q", "time": "2006-03-01 10:00:00", "rank": r, "url": f"http://x.example/{r}"}
        for u in "ab"
        for r in (1, 2)
    ]
    log, out, truth = tmp_path / "log.csv", tmp_path / "out.csv", tmp_path / "t.parquet"
    pl.DataFrame(rows).write_csv(log)
    report = protect(_request(str(log), out, settings={"k": "2"}, truth=truth))
    assert report.released == 4
    assert pl.read_csv(out).filter(pl.col("rank") == 2).height == 2


def test_nothing_is_left_behind_when_a_promise_breaks(tmp_path, log_file, monkeypatch):
    class Leaky(Rules):
        """Lets everything through. Guarantee: all. Limits: anything."""

        name = "leaky"

        def push(self, batch):
            return batch

    monkeypatch.setitem(METHODS.added, "leaky", Leaky)
    before = _files(tmp_path)
    with pytest.raises(BrokenPromise) as caught:
        protect(_request(log_file, tmp_path / "out.parquet", ["leaky"], {"max_words": "3"}))
    assert _files(tmp_path) == before
    assert "leaky: no released query has too many words or letters (12 rows" in str(caught.value)
    assert "rare thing" not in str(caught.value)


def test_a_dry_run_audits_and_writes_nothing(tmp_path, log_file):
    before = _files(tmp_path)
    report = protect(
        _request(log_file, tmp_path / "out.parquet", dry_run=True, source="web", state=tmp_path / "s")
    )
    assert report.certificate["audit"] == "kept"
    assert report.written == []
    assert [name for name in _files(tmp_path) if name != "s"] == before


def test_repeated_releases_of_a_source_are_counted_in_its_ledger(tmp_path, log_file):
    reports = [
        protect(_request(log_file, tmp_path / f"out{n}.parquet", source="web", state=tmp_path / "state"))
        for n in range(3)
    ]
    assert [report.earlier_releases for report in reports] == [0, 1, 2]
    heads = [report.certificate["ledger"]["head"] for report in reports]
    lines = (tmp_path / "state" / "ledger.jsonl").read_text().splitlines()
    assert [json.loads(line)["hash"] for line in lines] == heads
    with pytest.raises(UsageError, match="whose state"):
        protect(_request(log_file, tmp_path / "x.parquet", state=tmp_path / "state"))


def test_ids_that_are_addresses_are_not_kept(tmp_path, small_log):
    log = tmp_path / "log.parquet"
    formats.write(small_log.with_columns(pl.col("user") + "@made-up.example"), log)
    with pytest.raises(Refused, match="e-mail or IP") as caught:
        protect(_request(str(log), tmp_path / "out.parquet", ["rules"], {"labels": "keep"}, source="web"))
    assert "made-up.example" not in str(caught.value)
    protect(_request(str(log), tmp_path / "out.parquet", ["rules"], seed=1))
    labels = pl.read_parquet(tmp_path / "out.parquet")["user"]
    assert labels.n_unique() == 12
    assert not labels.str.contains("@").any()


def test_a_log_without_a_column_that_a_method_needs_is_refused(tmp_path, small_log):
    log = tmp_path / "log.parquet"
    formats.write(small_log.drop("time"), log)
    with pytest.raises(DataError, match="`z-anonymity` needs the column `time`"):
        protect(_request(str(log), tmp_path / "out.parquet", ["z-anonymity"]))
    protect(_request(str(log), tmp_path / "out.parquet", ["frequent-only"]))


def test_settings_find_their_stage():
    stages = parse_stages(["rules", "frequent-only"], {"k": "7", "rules.digits": "no", "labels": "fresh"})
    assert stages[1].settings.k == 7
    assert (stages[0].settings.digits, stages[0].settings.labels) == (False, "fresh")
    with pytest.raises(UsageError, match="`labels` is a setting of rules and z-anonymity"):
        parse_stages(["rules", "z-anonymity"], {"labels": "fresh"})
    with pytest.raises(UnknownName, match="no stage is called `km`"):
        parse_stages(["rules"], {"km.k": "2"})
    with pytest.raises(UsageError, match="named twice"):
        parse_stages(["rules", "rules"], {})
    with pytest.raises(ParameterError, match="`k` must be int, at least 2; got 1"):
        parse_stages(["frequent-only"], {"k": "1"})


def test_a_pipeline_restarts_from_its_snapshot(small_log):
    from querycloak.dictionary import Dictionaries
    from querycloak.engines.codec import encode_and_register
    from querycloak.engines.time_order import in_order
    from querycloak.testing.conformance import rows

    stages, texts, key = parse_stages(["rules", "frequent-only"], {"k": "3"}), Dictionaries(), b"k" * 32
    whole = Pipeline(stages, key, texts)
    batch = encode_and_register(in_order(small_log, key), whole, 0)
    expected = rows(whole.push(batch) + whole.close())
    first, second = Pipeline(stages, key, texts), Pipeline(stages, key, texts)
    shown = first.push(batch[:30])
    second.restore(first.snapshot())
    assert rows(shown + second.push(batch[30:]) + second.close()) == expected


def test_python_has_the_same_verbs(tmp_path, small_log):
    release = qc.protect(qc.Log(small_log), "frequent-only", k=12, seed=1)
    assert len(release.log) == release.truth.height == 60
    assert release.certificate["randomness"]["publishable"] is False
    found = qc.measure(qc.Log(small_log), release.log)
    assert found["release_rate"] == pytest.approx(60 / 72)
    qc.protect(
        qc.Log(small_log), "frequent-only", k=12, output=tmp_path / "out.csv", truth=tmp_path / "t.parquet"
    )
    assert qc.verify(tmp_path / "out.csv").holds


def test_records_that_a_stage_returns_out_of_order_have_the_same_order():
    """By moment of release, then by time; a keyed hash decides between equal times, never the input row."""
    rows, texts = np.arange(90), Dictionaries()
    pipeline = Pipeline(parse_stages(["rules"], {}), bytes(32), texts)
    batch = Batch.of({"row": rows, "seq": rows // 45, "time": rows % 3}, texts)
    expected = pipeline._release_order(batch).row
    mixed = batch[np.random.default_rng(1).permutation(rows)]
    assert pipeline._release_order(mixed).row.tolist() == expected.tolist()
    assert expected.tolist() != np.lexsort((rows, batch.time, batch.seq)).tolist()


def test_a_column_that_is_released_anyway_may_be_named_with_keep():
    log = made_up(60, seed=3, categories=True)
    kept = qc.protect(log, "swap", k=3, keep=["category"], seed=1)
    assert kept.log.frame.equals(qc.protect(log, "swap", k=3, seed=1).log.frame)
