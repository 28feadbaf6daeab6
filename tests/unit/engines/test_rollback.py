"""State that was put back is refused; a release that stops between two writes blocks no later one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import querycloak as qc
from querycloak import ledger as ledgers
from querycloak.certificate import path_of
from querycloak.cli import main
from querycloak.engines.pipeline import OTHER_RELEASES, ROLLED_BACK, parse_stages
from querycloak.engines.release import ReleaseJob, make_release
from querycloak.engines.source_state import SourceFiles
from querycloak.engines.verify import CHAIN, ENTRY
from querycloak.errors import DataError, Refused
from querycloak.ledger import KEY, Ledger, default_state
from tests.support.logs import made_up


@pytest.fixture(scope="module")
def nights():
    frame = made_up(users=90, seed=2, categories=True).frame.sort("time").drop("row")
    size = frame.height // 3
    return [
        qc.Log(part.with_row_index("row").cast({"row": pl.Int64}))
        for part in (frame[:size], frame[size : 2 * size], frame[2 * size :])
    ]


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def night(log, state, method="cohort", **settings):
    settings = {"k": 3, "shards": 1} if method == "cohort" else settings
    stages = parse_stages([method], {name: str(value) for name, value in settings.items()})
    return make_release(ReleaseJob(log, None, stages, source="web", state=state, keep_truth=True))


def stored(state, name="cohort"):
    return next(state.glob(f"*.{name}.parquet"))


def cohorts(release):
    return release.truth.select("original_user", "cohort").unique()


def test_assignments_that_were_put_back_are_refused(nights, state):
    night(nights[0], state)
    old = stored(state).read_bytes()
    night(nights[1], state)
    new = stored(state).read_bytes()
    stored(state).write_bytes(old)
    with pytest.raises(Refused, match="stored state of this source is not the one of the last") as caught:
        night(nights[2], state)
    assert caught.value.exit_status == 2
    assert "put back the whole state folder" in caught.value.hint
    stored(state).write_bytes(new)
    assert night(nights[2], state).report.earlier_releases == 2


def test_a_budget_that_was_put_back_is_refused(nights, state):
    pytest.importorskip("opendp")
    chosen = {"budget": 9, "epsilon": 4, "max_queries": 2, "per": "history"}
    night(nights[0], state, "dp-semantic", **chosen)
    old = stored(state, "budget").read_bytes()
    night(nights[1], state, "dp-semantic", **chosen)
    stored(state, "budget").write_bytes(old)
    with pytest.raises(Refused, match="the stored state of this source is not the one of the last"):
        night(nights[2], state, "dp-semantic", **chosen)


def test_settings_that_were_changed_beside_the_assignments_are_refused(nights, state):
    night(nights[0], state)
    stored(state).with_suffix(".json").write_text('{"k": 3, "shards": 1, "x": 1}')
    with pytest.raises(Refused, match="the stored state"):
        night(nights[1], state)


def test_assignments_without_their_ledger_are_refused(nights, state):
    night(nights[0], state)
    (state / "ledger.jsonl").unlink()
    with pytest.raises(Refused, match="belongs to no release that the ledger names"):
        night(nights[1], state)


def unkeyed(state):
    """Write the ledger as versions without a key did."""
    path, previous, lines = state / "ledger.jsonl", "0" * 64, []
    for line in path.read_text().splitlines():
        entry = {n: v for n, v in json.loads(line).items() if n not in ("hash", "keyed", "state", "input")}
        entry["previous"] = previous
        entry["hash"] = previous = ledgers._hash(entry, None)
        lines.append(json.dumps(entry, sort_keys=True) + "\n")
    path.write_text("".join(lines))
    (state / KEY).unlink()


def test_a_ledger_without_a_key_is_continued_with_one(nights, state):
    first = night(nights[0], state)
    unkeyed(state)
    second = night(nights[1], state)
    both = cohorts(first).join(cohorts(second), on="original_user", suffix="_later")
    assert both.height > 20
    assert (both["cohort"] == both["cohort_later"]).all()
    assert [bool(entry.get("keyed")) for entry in Ledger(state).entries()] == [False, True]
    path = state / "ledger.jsonl"
    path.write_text(path.read_text().replace('"k": 3', '"k": 2', 1))
    with pytest.raises(DataError, match="the ledger was changed: entry 1"):
        night(nights[2], state)


def test_unkeyed_entries_that_were_rewritten_do_not_fit_the_key(nights, state):
    night(nights[0], state)
    unkeyed(state)
    ledger = Ledger(state)
    ledger.digest("state", b"")  # as a power cut between key and entry leaves it
    assert len(Ledger(state).entries()) == 1
    path = state / "ledger.jsonl"
    entry = json.loads(path.read_text()) | {"release": "another"}
    entry["hash"] = ledgers._hash(entry, None)
    path.write_text(json.dumps(entry, sort_keys=True) + "\n")
    with pytest.raises(DataError, match="its key was made for other entries"):
        Ledger(state).entries()


def test_an_entry_cannot_be_made_without_the_key(nights, state):
    night(nights[0], state)
    path = state / "ledger.jsonl"
    entry = json.loads(path.read_text()) | {"release": "another"}
    del entry["keyed"]
    entry["hash"] = ledgers._hash(entry, None)
    path.write_text(json.dumps(entry, sort_keys=True) + "\n")
    with pytest.raises(DataError, match="the ledger was changed"):
        night(nights[1], state)


def test_a_ledger_whose_key_is_gone_is_refused_until_it_is_back(nights, state):
    night(nights[0], state)
    key = (state / KEY).read_bytes()
    assert (state / KEY).stat().st_mode & 0o777 == 0o600
    (state / KEY).unlink()
    with pytest.raises(DataError, match="the key of the ledger is missing") as caught:
        night(nights[1], state)
    assert "put `ledger.key` back" in caught.value.hint
    (state / KEY).write_bytes(key)
    with pytest.raises(DataError, match="readable by other users") as caught:
        night(nights[1], state)
    assert "chmod 600" in caught.value.hint
    (state / KEY).chmod(0o600)
    night(nights[1], state)


def test_another_key_does_not_fit_the_chain(nights, state):
    night(nights[0], state)
    after = (state / KEY).read_text().split()[1]
    (state / KEY).write_text(f"{'1' * 64}\n{after}\n")
    with pytest.raises(DataError, match="the ledger was changed: entry 1"):
        night(nights[1], state)


def verdicts(release, ledger):
    found = qc.verify(release, ledger=ledger)
    lists = {"kept": found.checked, "not checkable": found.not_checkable, "broken": found.broken}
    return {one["check"]: (name, one["detail"]) for name, lines in lists.items() for one in lines}


def test_a_later_certificate_shows_that_ledger_and_state_were_put_back(nights, state, tmp_path):
    night(nights[0], state)
    shutil.copytree(state, tmp_path / "yesterday")
    stages = parse_stages(["cohort"], {"k": "3", "shards": "1"})
    out = tmp_path / "out.parquet"
    make_release(ReleaseJob(nights[1], str(out), stages, source="web", state=state))
    found = verdicts(out, state / "ledger.jsonl")
    assert (found[CHAIN], found[ENTRY]) == (("kept", ""), ("kept", ""))
    put_back = verdicts(out, tmp_path / "yesterday" / "ledger.jsonl")
    assert put_back[ENTRY] == ("broken", "it ends at entry 1, the certificate names entry 2")
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "yesterday", state)
    night(nights[2], state)
    assert verdicts(out, state / "ledger.jsonl")[ENTRY] == ("broken", "entry 2 is another one")
    copy = shutil.copy(state / "ledger.jsonl", tmp_path / "copy.jsonl")
    assert verdicts(out, copy)[CHAIN] == ("not checkable", "ledger.key is not beside it")
    limits = json.loads(path_of(out).read_text())["methods"][0]["does_not_protect_against"]
    assert ROLLED_BACK in limits
    assert OTHER_RELEASES not in limits


def test_without_a_source_the_certificate_lists_other_releases(nights):
    made = {name: qc.protect(nights[0], name, k=3).certificate for name in ("cohort", "frequent-only")}
    assert OTHER_RELEASES in made["cohort"]["methods"][0]["does_not_protect_against"]
    assert OTHER_RELEASES not in made["frequent-only"]["methods"][0]["does_not_protect_against"]


def test_totals_over_releases_are_unknown_without_a_ledger(nights, state):
    pytest.importorskip("opendp")
    release = qc.protect(nights[0], "dp-semantic", per="history", epsilon=4)
    totals = ("spent_by_anyone_at_most", "delta_of_all_releases")
    facts = release.certificate["methods"][0]["facts"]
    assert [facts[name] for name in totals] == [None, None]
    assert release.certificate["ledger"] is None
    assert release.report.earlier_releases is None
    for spent in (4, 8):
        found = night(nights[0], state, "dp-semantic", per="history", epsilon=4)
        assert found.certificate["methods"][0]["facts"]["spent_by_anyone_at_most"] == spent


# Releases without a source


@pytest.fixture
def log_file(tmp_path, nights):
    qc.write(nights[0], str(tmp_path / "log.csv"))
    return tmp_path / "log.csv"


def before(log_file, **more):
    return qc.protect(log_file, "rules", **more).report.released_elsewhere


def test_a_second_release_of_a_file_without_a_source_is_noticed(log_file, nights, state):
    assert before(nights[0]) is None
    assert [before(log_file), before(log_file)] == [0, 1]
    assert before(log_file, source="web", state=state) == 2
    assert before(log_file, source="web", state=state) == 2
    assert before(log_file, source="shop") == 4
    assert before(log_file) == 5
    assert before(log_file, dry_run=True) == 6
    assert before(log_file) == 6
    log_file.write_text(log_file.read_text() + "9,new,,,,\n")
    assert before(log_file) == 0


def test_a_trial_with_a_seed_is_no_release_to_be_noticed(log_file):
    assert [before(log_file, seed=1), before(log_file)] == [None, 0]


def test_a_release_is_made_though_the_default_ledger_cannot_be_written(log_file, nights, state):
    default_state().parent.mkdir(parents=True, exist_ok=True)
    default_state().write_text("no folder")
    assert [before(log_file), before(log_file)] == [0, 0]
    assert night(nights[0], state).report.earlier_releases == 0
    assert night(nights[1], state).report.earlier_releases == 1


def test_the_default_ledger_holds_no_hash_of_the_log_itself(log_file):
    before(log_file)
    digest = hashlib.sha256(log_file.read_bytes()).hexdigest()
    assert digest not in (default_state() / "ledger.jsonl").read_text()


def test_the_command_line_warns_of_a_second_release_without_a_source(log_file, tmp_path):
    asked = ["protect", str(log_file), "-m", "rules", "-o", str(tmp_path / "out.csv")]
    first, second = (CliRunner().invoke(main, asked) for _ in range(2))
    assert "warning" not in first.stderr
    assert second.exit_code == 0
    assert "warning: this log was released 1 time before: releases of the same users" in second.stderr
    assert "--source NAME" in second.stderr


def test_a_source_is_locked_in_whatever_folder_its_state_is(tmp_path):
    default_state().mkdir(parents=True)
    first = SourceFiles("web", tmp_path / "one")
    with pytest.raises(Refused, match="another release of this source is being made"):
        SourceFiles("web", tmp_path / "two")
    first.unlock()
    SourceFiles("web", tmp_path / "two").unlock()


# Power cuts


class PowerCut(BaseException):
    """The machine stops: from here on nothing reaches the disk."""


class Disk:
    """Counts what changes the disk, and stops before operation `limit`."""

    #: What makes a change, or makes one durable.
    OPERATIONS = ("fsync", "replace", "rename", "link", "unlink", "mkdir")

    def __init__(self, monkeypatch, limit):
        self.done, self.limit = 0, limit
        for name in self.OPERATIONS:
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))
        monkeypatch.setattr(os, "open", self._opened(os.open))

    def _counted(self, function):
        def counted(*args, **more):
            if self.done == self.limit:
                raise PowerCut
            self.done += 1
            return function(*args, **more)

        return counted

    def _opened(self, function):
        counted = self._counted(function)

        def opened(path, flags, *rest, **more):
            writes = flags & (os.O_WRONLY | os.O_RDWR)
            return (counted if writes else function)(path, flags, *rest, **more)

        return opened


def changes_of_a_release(log, folder, monkeypatch, limit):
    """Make a release on a disk that stops before an operation; return how many it did."""
    stages = parse_stages(["cohort"], {"k": "3", "shards": "1"})
    files = {"state": folder / "state", "secret_file": folder / "secret", "truth": folder / "truth"}
    job = ReleaseJob(log, str(folder / "out.parquet"), stages, source="web", **files)
    with monkeypatch.context() as patch:
        disk = Disk(patch, limit)
        with contextlib.suppress(PowerCut):
            make_release(job)
    return disk.done


@pytest.mark.parametrize("earlier", [0, 1])
def test_a_power_cut_between_any_two_writes_leaves_a_usable_source(nights, tmp_path, monkeypatch, earlier):
    """After each, the next release continues the assignments of the last one that was entered."""
    clean, whole = tmp_path / "clean", tmp_path / "whole"
    clean.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(clean / "home"))
    known = [cohorts(night(nights[0], clean / "state")) for _ in range(earlier)]
    shutil.copytree(clean, whole)
    monkeypatch.setenv("XDG_STATE_HOME", str(whole / "home"))
    steps = changes_of_a_release(nights[1], whole, monkeypatch, limit=-1)
    assert steps > 20
    for limit in range(steps):
        folder = tmp_path / f"cut-{limit}"
        shutil.copytree(clean, folder)
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "home"))
        changes_of_a_release(nights[1], folder, monkeypatch, limit)
        release = night(nights[2], folder / "state")
        for before in known:
            both = before.join(cohorts(release), on="original_user", suffix="_later")
            assert both.height > 20
            assert (both["cohort"] == both["cohort_later"]).all()
        entered = release.report.earlier_releases == earlier + 1
        assert entered or not (folder / "out.parquet").exists(), limit
        assert not list((folder / "state").glob("*.next.parquet"))


def test_an_unfinished_line_of_the_ledger_is_an_entry_that_was_never_made(nights, state):
    night(nights[0], state)
    path = Path(state / "ledger.jsonl")
    whole = path.read_bytes()
    night(nights[1], state)
    shutil.copy(next(state.glob("*.cohort.parquet")), state / "newer")
    path.write_bytes(whole + path.read_bytes()[len(whole) :][:40])
    assert len(Ledger(state).entries()) == 1
    with pytest.raises(Refused, match="the stored state"):  # its table has its final name already
        night(nights[2], state)
    Ledger(state).append({"source": "shop", "methods": []})
    assert [entry["number"] for entry in Ledger(state).entries()] == [1, 2]
