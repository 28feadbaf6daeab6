"""A service that cannot continue ends its process, with a status other than 0 and the reason in its log."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.service_process import LiveService
from tests.unit.service.running import SECRET_QUERY, SECRET_USER, made_up


def test_a_dead_worker_ends_the_process(tmp_path: Path) -> None:
    sink = tmp_path / "lines" / "out"
    sink.parent.mkdir()
    with LiveService(tmp_path / "state", "--sink", f"file:{sink}", "-s", "k=3", "--seed", "1") as service:
        lines = made_up()
        assert service.post(lines[:400]).status_code == 202
        assert service.settled()["released"]
        sink.unlink()
        service.post(lines[400:])
        assert service.wait() == 3
        written = service.log()
    (failed,) = [json.loads(line) for line in written.splitlines() if '"level": "critical"' in line]
    assert failed["event"] == "applying records failed"
    assert failed["code"]
    assert str(sink) in failed["trouble"]
    assert f"error: {failed['trouble']}" in written
    assert not [word for word in (SECRET_USER, SECRET_QUERY) if word in written]
