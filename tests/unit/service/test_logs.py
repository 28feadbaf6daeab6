"""Log lines: only fields that are allowed."""

from __future__ import annotations

import json
import logging

from querycloak import json_log
from querycloak.service import logs


def test_a_log_line_holds_allowed_fields_only() -> None:
    record = logging.makeLogRecord({"msg": "started", "position": 3, "user": "planted", "query": "planted"})
    try:
        raise ValueError("planted")
    except ValueError as error:
        record.exc_info = (type(error), error, error.__traceback__)
    line = json.loads(json_log.JsonLines(logs.ALLOWED).format(record))
    assert (line["position"], line["fault"]) == (3, "ValueError")
    assert "planted" not in json.dumps(line)
