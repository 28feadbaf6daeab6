"""People who were erased and come back: each gets another pseudonym, and the others cost nothing."""

from __future__ import annotations

import polars as pl
import pytest

pytestmark = pytest.mark.service

from querycloak.service import pseudonyms  # noqa: E402
from querycloak.service.pseudonyms import Strangers  # noqa: E402


def test_only_who_was_erased_and_is_there_is_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    strangers = Strangers(b"secret", 0)
    for number in range(1000):
        strangers.erase(f"gone{number}")
    strangers.erase("gone1")
    hashed, real = [], pseudonyms.hashed
    monkeypatch.setattr(pseudonyms, "hashed", lambda text, key: hashed.append(text) or real(text, key))
    users = ["a", "gone1", "b", "gone1", "gone2"]
    found = strangers.renamed(pl.DataFrame({"user": users}))["user"].to_list()
    assert sorted(hashed) == ["gone1 2", "gone2 1"]  # once each, and nobody who is absent
    assert found == [strangers.now(user) for user in users]
    assert (found[0], found[2]) == ("a", "b")
    assert found[1] == found[3] != "gone1"


def test_records_of_others_are_left_as_they_are() -> None:
    strangers = Strangers(b"secret", 0)
    strangers.erase("gone")
    frame = pl.DataFrame({"user": ["a", "b"]})
    assert strangers.renamed(frame).equals(frame)
