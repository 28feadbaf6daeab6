"""Profiles in PostgreSQL: a service that is killed, and whose database is restarted, counts right."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest

from tests.integration.service.test_crash import lines
from tests.support.service_process import LiveService

pytestmark = pytest.mark.timeout(600)


def counted(service):
    found = Counter()
    for line in service.released().splitlines():
        record = json.loads(line)
        found[record["user"], record["category"] or ""] += 1
    return found


def profiles(service, labels):
    found = Counter()
    for label in labels:
        answer = service.client.post("/v1/profiles", json={"label": label})
        for category, count in answer.raise_for_status().json().items():
            found[label, category] += count
    return found


def wait_for(service, expected):
    labels = {label for label, _ in expected}
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if (found := profiles(service, labels)) == expected:
                return found
        except Exception:  # not there yet, or the database is coming back
            pass
        time.sleep(0.5)
    return profiles(service, labels)


def test_profiles_are_exact_over_kills_and_a_restart_of_the_database(tmp_path, postgres, postgres_url):
    log = lines(users=60, seed=9)
    environment = {"QUERYCLOAK_SERVE_PROFILES": postgres_url}
    service = LiveService(
        tmp_path / "state", "--seed", "1", "-s", "k=3", "-o", "snapshot_seconds=0.5", environment=environment
    )
    third = len(log) // 3
    with service:
        assert service.post(log[:third]).status_code == 202
        service.settled()
        service.kill()
        service.start()
        assert service.post(log[third : 2 * third]).status_code == 202
        postgres.restart(hard=True)
        assert service.post(log[2 * third :]).status_code == 202
        counts = service.settled()
        expected = counted(service)
        assert sum(expected.values()) == counts["released"] > 100
        assert wait_for(service, expected) == expected
        assert service.stop() == 0
        assert postgres_url not in service.log()
