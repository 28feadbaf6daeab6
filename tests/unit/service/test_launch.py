"""The process: TLS files, and lines of its log."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from querycloak import json_log
from querycloak.errors import UsageError
from querycloak.service.launch import LOGGED, tls_context
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


def test_a_log_line_holds_allowed_fields_only() -> None:
    record = logging.makeLogRecord({"msg": "started", "position": 3, "user": "planted", "query": "planted"})
    try:
        raise ValueError("planted")
    except ValueError as error:
        record.exc_info = (type(error), error, error.__traceback__)
    line = json.loads(json_log.JsonLines(LOGGED).format(record))
    assert (line["position"], line["fault"]) == (3, "ValueError")
    assert "planted" not in json.dumps(line)
