"""What Spark sessions are started with, and which are refused; as far as no Spark is needed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from querycloak.errors import UsageError
from querycloak.spark import session

CRYPTO, KNOWN = "spark.network.crypto.enabled", "spark.authenticate"


def running(master: str, **settings: str) -> SimpleNamespace:
    """A session as far as it is looked at."""
    found = {name.replace("_", "."): text for name, text in settings.items()}
    context = SimpleNamespace(master=master, getConf=lambda: SimpleNamespace(getAll=found.items))
    return SimpleNamespace(sparkContext=context)


def test_a_session_on_this_machine_listens_on_loopback():
    found = session.chosen("local[2]", {})
    assert found["spark.driver.host"] == "127.0.0.1"
    assert "spark.log.level" not in found


def test_executors_elsewhere_are_silent_unless_somebody_asks(monkeypatch):
    monkeypatch.delenv("QUERYCLOAK_SPARK_LOG", raising=False)
    found = session.chosen("spark://h:7077", {})
    assert (found["spark.log.level"], found["spark.executor.syncLogLevel.enabled"]) == ("OFF", "true")
    monkeypatch.setenv("QUERYCLOAK_SPARK_LOG", "error")
    assert session.chosen("spark://h:7077", {})["spark.log.level"] == "ERROR"


@pytest.mark.parametrize(
    ("master", "options", "shut"),
    [
        ("yarn", {}, True),
        ("k8s://https://h:443", {}, True),
        ("spark://h:7077", {}, False),
        ("spark://h:7077", {"spark.authenticate.secret": "s"}, True),
        ("spark://h:7077", {CRYPTO: "true"}, False),
        ("spark://h:7077", {CRYPTO: "true", KNOWN: "true"}, True),
        ("spark://h:7077", {"spark.ssl.rpc.enabled": "true"}, True),
        ("spark://h:7077", {CRYPTO: "false"}, True),
        ("local[*]", {}, True),
    ],
)
def test_traffic_between_machines_is_encrypted_or_somebody_says_that_it_need_not_be(master, options, shut):
    assert session.encrypted_between_machines(master, session.chosen(master, options)) is shut


def test_a_running_session_is_looked_at_as_it_is():
    """What is asked for now changes nothing about how it was started."""
    cluster = running("spark://h:7077", spark_io_encryption_enabled="true")
    with pytest.raises(UsageError, match="unencrypted between") as refused:
        session._check_encryption(cluster, {CRYPTO: "true", KNOWN: "true"})
    assert "spark.network.crypto.enabled=false" in refused.value.hint
    session._check_encryption(cluster, {CRYPTO: "false"})
    with pytest.warns(UserWarning, match="does not encrypt what it writes to disk"):
        session._check_encryption(running("local[2]"), {})
    session._check_encryption(running("local[2]"), {"spark.io.encryption.enabled": "false"})
