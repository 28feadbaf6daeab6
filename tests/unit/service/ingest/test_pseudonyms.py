"""Users who were erased and return get another label; nobody else is renamed."""

from __future__ import annotations

import polars as pl
import pytest

from querycloak.service.ingest import pseudonyms
from querycloak.service.ingest.pseudonyms import ErasedPseudonyms, Pseudonyms


def test_only_users_of_the_batch_who_were_erased_are_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    erased = ErasedPseudonyms(b"secret")
    for number in range(1000):
        erased.erase(f"gone{number}")
    erased.erase("gone1")
    hashed, real = [], pseudonyms.keyed_hash
    monkeypatch.setattr(pseudonyms, "keyed_hash", lambda text, key: hashed.append(text) or real(text, key))
    users = ["a", "gone1", "b", "gone1", "gone2"]
    found = erased.rename(pl.DataFrame({"user": users}), epoch=0)["user"].to_list()
    assert sorted(hashed) == ["gone1 2", "gone2 1"]  # once each, and no user who is absent
    assert found == [erased.current(user, 0) for user in users]
    assert (found[0], found[2]) == ("a", "b")
    assert found[1] == found[3] != "gone1"


def test_records_of_others_stay_as_they_are() -> None:
    erased = ErasedPseudonyms(b"secret")
    erased.erase("gone")
    frame = pl.DataFrame({"user": ["a", "b"]})
    assert erased.rename(frame, epoch=0).equals(frame)


def test_all_labels_of_all_epochs_are_known() -> None:
    erased = ErasedPseudonyms(b"secret")
    labels = ["first", "second"]
    erased.erase("first")
    labels.insert(1, erased.current("first", 0))
    erased.erase("first")
    labels.insert(2, erased.current("first", 0))
    assert erased.all_labels(["first", "second"]) == labels
    assert len(set(labels)) == 4


def test_spellings_of_one_id_have_one_pseudonym():
    first = Pseudonyms(b"secret", 1)
    assert len(set(first.of(["ann", " ann", "ann\u00a0"]))) == 1
    assert len(set(first.of(["A@b.example", "a@B.example", "Ann", "ann"]))) == 3
    assert first.before(" ann") == first.before("ann")
