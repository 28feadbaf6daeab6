"""The process: TLS files, and its end when the worker fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from querycloak.errors import UsageError
from querycloak.service.launch import tls_context
from querycloak.service.settings import ServiceSettings


def test_tls_needs_both_files_and_good_ones(tmp_path: Path) -> None:
    assert tls_context(ServiceSettings()) is None
    with pytest.raises(UsageError, match="both"):
        tls_context(ServiceSettings(tls_certificate="a"))
    with pytest.raises(UsageError, match="No such file"):
        tls_context(ServiceSettings(tls_certificate=str(tmp_path / "a"), tls_key=str(tmp_path / "b")))
    (tmp_path / "a").write_text("no certificate")
    with pytest.raises(UsageError, match="cannot use"):
        tls_context(ServiceSettings(tls_certificate=str(tmp_path / "a"), tls_key=str(tmp_path / "a")))
