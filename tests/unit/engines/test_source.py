"""A log is protected as it is given: a path, a `Log` or a frame, with the caller's row numbers."""

from __future__ import annotations

import errno
import threading

import polars as pl
import pytest
from click.testing import CliRunner

import querycloak as qc
from querycloak.cli import main
from querycloak.engines.pipeline import parse_stages
from querycloak.engines.release import ReleaseJob, make_release
from querycloak.engines.source_state import SourceFiles
from querycloak.errors import Refused, UnknownName, UsageError
from querycloak.keys import Secret, write_private
from querycloak.ledger import Ledger
from querycloak.methods.rules import Rules
from querycloak.registry import METHODS
from tests.support.logs import made_up


@pytest.fixture(scope="module")
def log():
    return made_up(users=60, seed=2, categories=True)


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))


def filtered(log):
    users = log.frame["user"].unique().sort()
    kept = log.frame.filter(pl.col("user").is_in(users.gather_every(2).implode()))
    return log.with_frame(kept)


def test_the_truth_has_the_row_numbers_of_a_filtered_log(log):
    some = filtered(log)
    release = qc.protect(some, "cohort", k=3, shards=1, seed=1)
    joined = release.truth.join(some.frame, left_on="original_row", right_on="row", how="left")
    assert joined["user"].equals(joined["original_user"], check_names=False)


def test_measures_and_attacks_on_a_filtered_log_are_those_of_the_same_log_renumbered(log):
    some = filtered(log)
    again = some.with_frame(some.frame.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64)))
    found = []
    for one in (some, again):
        release = qc.protect(one, "rules", seed=1)
        names = ["meaning_kept", "sessions_kept", "release_rate", "delay"]
        found.append(
            (
                qc.measure(one, release.log, names, truth=release.truth),
                [f.success for f in qc.attack(release, one, "link-repeat", k=3)],
            )
        )
    assert found[0] == found[1]


def test_a_frame_is_protected_like_the_file_that_holds_it(log, tmp_path):
    frame = log.frame.drop("row").rename({"user": "client_id"})
    frame.write_parquet(tmp_path / "log.parquet")
    mapping = {"user": "client_id"}
    direct = qc.protect(frame, "rules", mapping=mapping, seed=1)
    by_file = qc.protect(tmp_path / "log.parquet", "rules", mapping=mapping, seed=1)
    assert direct.certificate["release"]["sha256"] == by_file.certificate["release"]["sha256"]
    assert direct.to_polars().equals(by_file.to_polars())


def test_bad_rows_of_a_frame_are_counted(log):
    frame = log.frame.drop("row").with_columns(
        user=pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise(pl.col("user"))
    )
    release = qc.protect(frame, "rules", seed=1)
    assert sum(release.report.skipped.values()) == 3


def test_nothing_is_written_for_a_log_in_memory(log, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.TemporaryDirectory", lambda *a, **k: pytest.fail("a temporary folder"))
    monkeypatch.setattr("tempfile.mkstemp", lambda *a, **k: pytest.fail("a temporary file"))
    monkeypatch.chdir(tmp_path)
    release = qc.protect(log, "rules", seed=1)
    assert len(release.log) == release.report.released
    assert list(tmp_path.iterdir()) == []


def test_a_release_in_memory_can_be_written_and_verified(log, tmp_path):
    release = qc.protect(log, "frequent-only", k=2, seed=1)
    release.write(tmp_path / "out.csv")
    assert qc.verify(tmp_path / "out.csv").holds


def test_a_log_takes_no_mapping(log):
    with pytest.raises(UsageError, match="has its columns already"):
        qc.protect(log, "rules", mapping={"user": "client_id"})


def test_a_column_to_keep_must_exist(log):
    with pytest.raises(UsageError, match="no column `device`"):
        qc.protect(log, "rules", keep=["device"])


def test_a_kept_column_of_a_log_is_released(log):
    some = log.with_frame(log.frame.with_columns(device=pl.lit("phone"), secret=pl.lit("x")))
    release = qc.protect(some, "rules", keep=["device"], seed=1)
    assert release.log.frame["device"].unique().to_list() == ["phone"]
    assert release.report.dropped_columns == ["secret"]


# State of a source


def test_a_second_cohort_release_without_a_state_folder_uses_the_default_state(log, tmp_path):
    for _ in range(2):
        release = qc.protect(log, "cohort", k=3, shards=1, source="web", output=tmp_path / "out.parquet")
    assert release.report.earlier_releases == 1


def test_a_plug_in_that_is_gone_does_not_block_its_source(log, monkeypatch):
    class Gone(Rules):
        """Drops queries. Guarantee: none. Limits: anything."""

        name = "gone"

    with monkeypatch.context() as installed:
        installed.setitem(METHODS.added, "gone", Gone)
        qc.protect(log, "gone", source="web")
    with pytest.raises(UnknownName):
        METHODS.get("gone")
    assert qc.protect(log, "cohort", k=3, shards=1, source="web").report.earlier_releases == 1


def test_two_releases_of_a_source_at_one_moment_do_not_get_the_same_number(log, tmp_path):
    """The plan of a release counts earlier ones: it must be made under the lock."""
    inside, go_on = threading.Event(), threading.Event()

    def wait(step, done, total):
        inside.set()
        go_on.wait(60)

    def job(**more):
        stages = parse_stages(["rules"], {})
        return ReleaseJob(log, None, stages, source="web", state=tmp_path / "state", seed=1, **more)

    first = threading.Thread(target=lambda: make_release(job(progress=wait)))
    first.start()
    assert inside.wait(60)
    with pytest.raises(Refused, match="another release of this source is being made"):
        make_release(job())
    go_on.set()
    first.join()
    assert make_release(job()).report.earlier_releases == 1


def test_the_number_of_earlier_releases_is_read_under_the_lock(tmp_path, monkeypatch):
    take = SourceFiles._take_lock

    def another_first(self, folder):
        if folder == tmp_path:
            Ledger(tmp_path).append({"source": "web", "methods": []})
        return take(self, folder)

    monkeypatch.setattr(SourceFiles, "_take_lock", another_first)
    assert len(SourceFiles("web", tmp_path).earlier) == 1


@pytest.mark.parametrize("written", [0, 1])
def test_a_source_stays_usable_when_its_state_could_not_be_written(log, tmp_path, monkeypatch, written):
    """The disk is full for the settings (0) or for the table (1) of the first release."""
    calls = iter([None] * written)

    def full(path, data):
        if next(calls, "full") == "full":
            raise OSError(errno.ENOSPC, "no space left on device")
        write_private(path, data)

    def release():
        stages = parse_stages(["cohort"], {"k": 2})
        return make_release(ReleaseJob(log, None, stages, source="web", state=tmp_path / "state", seed=1))

    with monkeypatch.context() as patch:
        patch.setattr("querycloak.engines.source_state.write_private", full)
        with pytest.raises(OSError, match="no space"):
            release()
    assert release().report.earlier_releases == 0
    assert release().report.earlier_releases == 1


def test_a_filtered_log_keeps_its_count_of_skipped_rows(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,query\na,x\n,y\n,z\nb,x\n,w\n")
    log = qc.read(path)
    release = qc.protect(log.with_frame(log.frame.filter(pl.col("user") == "a")), "rules", allow_bad=True)
    assert release.report.skipped == {"no user": 3}


# Secrets and messages


def test_a_secret_file_is_complete_from_its_first_moment(tmp_path, monkeypatch):
    """A crash while the secret is written must not leave an empty file that is refused for ever."""
    path = tmp_path / "secret"
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(UsageError, match="cannot be written"):
        Secret.load_or_create(path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    first = Secret.load_or_create(path)
    assert Secret.load_or_create(path).value == first.value
    assert path.stat().st_mode & 0o777 == 0o600


def test_state_reaches_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    from querycloak.keys import write_private

    steps = []
    fsync, replace = __import__("os").fsync, __import__("pathlib").Path.replace
    monkeypatch.setattr("os.fsync", lambda descriptor: steps.append("sync") or fsync(descriptor))
    monkeypatch.setattr("pathlib.Path.replace", lambda self, to: steps.append("rename") or replace(self, to))
    write_private(tmp_path / "book", b"1")
    assert steps == ["sync", "rename", "sync"]


def test_an_unknown_setting_of_several_methods_names_the_right_one(tmp_path, log):
    qc.write(log, tmp_path / "log.parquet")
    asked = ["protect", str(tmp_path / "log.parquet"), "-m", "rules", "-m", "cohort", "-s", "shardz=4"]
    done = CliRunner().invoke(main, [*asked, "-o", str(tmp_path / "out.parquet")])
    assert done.exit_code == 2
    assert "none of rules, cohort has a setting called `shardz`" in done.stderr
    assert "did you mean `cohort.shards`?" in done.stderr


def test_keep_is_refused_for_differential_privacy_whatever_the_settings(log):
    pytest.importorskip("opendp")
    frame = log.with_frame(log.frame.with_columns(device=pl.lit("phone")))
    with pytest.raises(Refused, match="no such column keeps"):
        qc.protect(frame, "threshold-dp", keep=["device"])


def test_queries_of_short_sessions_are_compared_with_those_asked(log):
    release = qc.protect(log, "short-sessions", k=2, seed=1)
    verdicts = {one["check"]: one["verdict"] for one in release.certificate["lineage"]}
    assert verdicts["every released query is the one that was asked"] == "kept"
