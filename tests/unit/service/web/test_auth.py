"""Tokens: stored as hashes, compared in constant time, revoked by reloading."""

from __future__ import annotations

import hmac
from pathlib import Path

import pytest

from querycloak.errors import UsageError
from querycloak.service.web import auth


def test_a_token_is_kept_as_a_hash_and_compared_in_constant_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokens"
    made = [auth.add_token(path, name, "read") for name in "abc"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert not any(token in path.read_text() for token in made)
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(
        auth.hmac, "compare_digest", lambda one, other: compared.append(one) or real(one, other)
    )
    known = auth.Tokens(path)
    holder = known.holder(made[0])
    assert holder is not None
    assert (holder.name, len(compared)) == ("a", 3)  # all of them, wherever it is found
    assert known.holder("wrong") is None


def test_a_token_that_is_gone_from_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    token = auth.add_token(path, "a", "read")
    known = auth.Tokens(path)
    path.write_text("")
    assert known.holder(token) is not None
    known.reload()
    assert known.holder(token) is None
    assert known.required  # an empty file lets nobody in, not everybody


GOOD = '{"name": "a", "role": "read", "hash": "%s"}' % ("0" * 64)


@pytest.mark.parametrize(
    "line",
    ["{}", "nonsense", "[1]", GOOD.replace("read", "king"), GOOD[:-1]],
    ids=["empty", "text", "list", "role", "cut"],
)
def test_a_damaged_token_file_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "tokens"
    path.touch(0o600)
    path.write_text(f"{GOOD}\n{line}\n")
    with pytest.raises(UsageError, match="line 2"):
        auth.Tokens(path)
    with pytest.raises(UsageError, match="line 2"):
        auth.add_token(path, "b", "read")
    assert path.read_text() == f"{GOOD}\n{line}\n"


def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(GOOD)
    path.chmod(0o644)
    with pytest.raises(UsageError, match=r"readable by other users: tokens \(mode 0644\)"):
        auth.Tokens(path)


def test_a_token_is_added_behind_a_last_line_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(GOOD)
    token = auth.add_token(path, "b", "read")
    assert auth.Tokens(path).holder(token) == auth.TokenHolder("b", "read")
    with pytest.raises(UsageError, match="exists already"):
        auth.add_token(path, "a", "read")
