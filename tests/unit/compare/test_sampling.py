"""The log that candidates get: people drawn whole, categories there, private on disk."""

from __future__ import annotations

import stat

import polars as pl
import pytest

import querycloak as qc
from querycloak.compare import sampling
from querycloak.compare.sampling import draw_sample
from querycloak.engines.source import silent
from querycloak.errors import DataError
from tests.support.logs import made_up


@pytest.fixture(scope="module")
def log():
    return made_up(users=120, seed=4, categories=True)


def made(log, path, **options):
    about = draw_sample(log, path, progress=silent, **{"sample": 0, "seed": 1} | options)
    return about, pl.read_parquet(path)


def test_everybody_is_there_if_no_sample_is_asked(log, tmp_path):
    about, frame = made(log, tmp_path / "log.parquet")
    assert (about.records, about.people, about.sampled) == (log.frame.height, 120, False)
    assert about.categories == "given"
    assert frame["query"].to_list() == log.frame["query"].to_list()
    assert stat.S_IMODE((tmp_path / "log.parquet").stat().st_mode) == 0o600


def test_people_are_drawn_with_all_their_records(log, tmp_path):
    about, frame = made(log, tmp_path / "log.parquet", sample=30)
    assert (about.people, about.of_people, about.sampled) == (30, 120, True)
    whole = log.frame.group_by("user").len().rows()
    assert set(frame.group_by("user").len().rows()) <= set(whole)
    assert about.records == frame.height < about.of_records == log.frame.height


def test_the_draw_is_the_same_in_pieces_and_another_with_another_seed(log, tmp_path, monkeypatch):
    path = tmp_path / "in.parquet"
    qc.write(log, str(path))
    whole = made(str(path), tmp_path / "a.parquet", sample=30)[1]
    monkeypatch.setattr(sampling, "_PIECE", 50)
    assert made(str(path), tmp_path / "b.parquet", sample=30)[1].equals(whole)
    assert set(made(str(path), tmp_path / "c.parquet", sample=30, seed=2)[1]["user"]) != set(whole["user"])


@pytest.mark.parametrize("sample", [0, 5, 60, 119])
def test_the_work_is_linear_in_the_records_however_small_the_pieces(log, tmp_path, monkeypatch, sample):
    path, seen = tmp_path / "in.parquet", []
    qc.write(log, str(path))
    restrict = sampling._UserDraw.restrict
    monkeypatch.setattr(
        sampling._UserDraw,
        "restrict",
        lambda self, frame: (seen.append(frame.height), restrict(self, frame))[1],
    )
    monkeypatch.setattr(sampling, "_PIECE", 20)
    about, _ = made(str(path), tmp_path / "a.parquet", sample=sample)
    assert about.of_records <= sum(seen) <= 4 * about.of_records


def test_a_log_without_categories_gets_them(tmp_path):
    about, frame = made(made_up(users=40, seed=4), tmp_path / "log.parquet")
    assert about.categories == "by `querycloak classify`"
    assert 0.9 < about.classified <= 1
    assert "category" in frame.columns


def test_bad_rows_are_counted_and_an_empty_log_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,query,time\na,red shoes,2026-01-01 10:00:00\nb,blue,never\n")
    about, _ = made(str(path), tmp_path / "log.parquet")
    assert (about.records, sum(about.skipped.values())) == (1, 1)
    path.write_text("user,query,time\n")
    with pytest.raises(DataError):
        made(str(path), tmp_path / "log.parquet")
