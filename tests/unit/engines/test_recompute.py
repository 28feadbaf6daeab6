"""With the secret, `verify` makes a release once more and finds every row that differs."""

from __future__ import annotations

import hashlib
import json
import stat

import polars as pl
import pytest

import querycloak as qc
from querycloak.certificate import path_of
from querycloak.engines.verify import CHECK
from querycloak.errors import UsageError
from tests.support.logs import made_up

METHODS = [("cohort", {"k": 5}), ("cohort", {"k": 5, "labels": "fresh"}), ("swap", {"k": 3, "level": 2})]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.parquet"
    qc.write(made_up(60, seed=3, categories=True), str(path))
    return path


def release(log, method, settings, **more):
    out = log.with_name("out.parquet")
    qc.protect(log, method, output=out, secret_file=log.with_name("secret"), **more, **settings)
    return out


def verdicts(found):
    lists = {"kept": found.checked, "not checkable": found.not_checkable, "broken": found.broken}
    return [
        (name, line["detail"]) for name, lines in lists.items() for line in lines if line["check"] == CHECK
    ]


def verified(out, log):
    return verdicts(qc.verify(out, original=log, secret_file=log.with_name("secret")))


@pytest.mark.parametrize(("method", "settings"), METHODS)
def test_the_secret_gives_the_same_labels(log, method, settings):
    assert verified(release(log, method, settings), log) == [("kept", "")]


def test_the_secret_is_made_once_and_kept_private(log):
    secret = log.with_name("secret")
    release(log, "cohort", {"k": 5})
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    kept = secret.read_text()
    release(log, "cohort", {"k": 5})
    assert secret.read_text() == kept
    assert secret.read_text().strip() not in path_of(log.with_name("out.parquet")).read_text()


def test_one_exchanged_label_is_found_even_with_the_hash_fixed_up(log):
    out = release(log, "cohort", {"k": 5})
    shown = pl.read_parquet(out)
    other = next(user for user in shown["user"] if user != shown["user"][7])
    row = pl.int_range(pl.len()) == 7
    shown.with_columns(user=pl.when(row).then(pl.lit(other)).otherwise("user")).write_parquet(out)
    document = json.loads(path_of(out).read_text())
    document["release"]["sha256"] = hashlib.sha256(out.read_bytes()).hexdigest()
    path_of(out).write_text(json.dumps(document))
    ((verdict, detail),) = verified(out, log)
    assert verdict == "broken"
    assert detail == "1 row of the release, the first: 7 differ from what the secret makes"


def test_a_secret_used_again_gives_nobody_the_same_pseudonym(log):
    labels = [
        set(pl.read_parquet(release(log, "cohort", {"k": 5, "labels": "fresh"}))["user"]) for _ in range(2)
    ]
    assert not labels[0] & labels[1]


def test_any_changed_column_is_found(log):
    out = release(log, "cohort", {"k": 5})
    shown = pl.read_parquet(out)
    shown.with_columns(url=pl.col("url") + "?me").write_parquet(out)
    ((verdict, _),) = verified(out, log)
    assert verdict == "broken"


def test_another_secret_is_told_apart_from_a_broken_release(log):
    out = release(log, "cohort", {"k": 5})
    secret = log.with_name("secret")
    secret.write_text("another secret, long enough")
    with pytest.raises(UsageError, match="not the secret"):
        qc.verify(out, original=log, secret_file=secret)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_secret_that_others_can_read_is_refused(log, mode):
    secret = log.with_name("secret")
    secret.write_text("0123456789abcdef0123456789abcdef")
    secret.chmod(mode)
    with pytest.raises(UsageError, match="others can read"):
        release(log, "cohort", {"k": 5})


def test_the_second_release_of_a_source_says_why_it_cannot_be_made_again(log, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(log.parent / "home"))
    for _ in range(2):
        out = release(log, "cohort", {"k": 5}, source="s", state=log.parent / "state")
    ((verdict, detail),) = verified(out, log)
    assert verdict == "not checkable"
    assert "their book has gone on" in detail


@pytest.mark.parametrize("evidence", ["truth", "secret_file", "original"])
def test_evidence_that_shows_nothing_alone_is_refused(log, evidence):
    out = release(log, "cohort", {"k": 5})
    with pytest.raises(UsageError):
        qc.verify(out, **{evidence: log.with_name("secret")})
