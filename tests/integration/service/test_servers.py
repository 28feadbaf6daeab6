"""The servers that other tests lean on: they start, answer, keep data over a crash, and leave nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from querycloak.errors import UsageError
from tests.support.ports import free_ports
from tests.support.servers import chromium
from tests.support.servers.base import LocalServer
from tests.support.servers.kafka import LocalKafka
from tests.support.servers.postgres import LocalPostgres
from tests.support.servers.process import alive, wait_until

SERVERS = [
    pytest.param(LocalPostgres, marks=pytest.mark.postgres),
    pytest.param(LocalKafka, marks=pytest.mark.kafka),
]


class Echo(LocalServer):
    """A stand-in that starts at once: a port that listens, and a child that must not be forgotten."""

    name = "Echo"
    program = (
        "import socket, subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "listening = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "time.sleep(600)"
    )

    def __init__(self, folder: Path | None = None, program: str = program) -> None:
        super().__init__(folder)
        (self.port,) = free_ports(1)
        self.program = program

    def prepare(self) -> None:
        self.folder.mkdir(exist_ok=True)

    def command(self) -> list[str | Path]:
        return [sys.executable, "-c", self.program, str(self.port)]

    def answers(self) -> bool:
        return listens(self.port)


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def family(pid: int) -> list[int]:
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def rows(url: str) -> list[tuple[int]]:
    import psycopg

    with psycopg.connect(url) as connection:
        return connection.execute("SELECT number FROM kept").fetchall()


def committed(bootstrap: str, topic: str, partitions: int) -> set[bytes]:
    """Read a topic to its end, leaving out what no finished transaction wrote."""
    from confluent_kafka import Consumer, TopicPartition

    choices = {"group.id": "reader", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer(choices | {"bootstrap.servers": bootstrap, "log_level": 0})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found, ended = set[bytes](), set[int]()
    while len(ended) < partitions:
        message = consumer.poll(60)
        assert message is not None, "the broker sent nothing for a minute"
        if message.error():
            ended.add(message.partition())
        else:
            found.add(message.value())
    consumer.close()
    return found


@pytest.mark.postgres
def test_postgres_keeps_what_was_committed_over_a_crash(postgres, postgres_url):
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE kept (number int)")
        connection.execute("INSERT INTO kept VALUES (7)")
    with psycopg.connect(postgres_url) as connection:
        connection.execute("INSERT INTO kept VALUES (8)")  # not committed when the crash comes
        before = family(postgres.pid)
        postgres.stop(hard=True)
        assert not any(map(alive, before))
        assert len(before) > 1
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    postgres.start()
    assert postgres.pid not in before
    assert rows(postgres_url) == [(7,)]
    postgres.restart()
    assert rows(postgres_url) == [(7,)]


@pytest.mark.postgres
def test_postgres_takes_nobody_without_the_password(postgres):
    import psycopg

    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(f"postgresql://querycloak:guess@127.0.0.1:{postgres.port}/postgres")


@pytest.mark.kafka
def test_kafka_keeps_what_was_committed_over_a_crash(kafka):
    from confluent_kafka import Producer

    kafka.create_topic("kept", partitions=3)
    with pytest.raises(Exception, match="TOPIC_ALREADY_EXISTS"):
        kafka.create_topic("kept", partitions=3)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "one", "log_level": 0})
    producer.init_transactions(60)
    for number, finish in enumerate([producer.commit_transaction, producer.abort_transaction]):
        producer.begin_transaction()
        for partition in range(3):
            producer.produce("kept", f"{number}/{partition}".encode(), partition=partition)
        producer.flush(60)
        finish(60)
    expected = {b"0/0", b"0/1", b"0/2"}
    assert committed(kafka.bootstrap, "kept", 3) == expected
    before = kafka.pid
    kafka.restart(hard=True)
    assert kafka.pid != before
    assert not alive(before)
    assert committed(kafka.bootstrap, "kept", 3) == expected


@pytest.mark.browser
def test_chromium_opens_a_page_and_finds_nobody_outside(browser):
    from playwright.sync_api import Error

    page = browser.new_page()
    page.goto("data:text/html,<title>here</title><p>hello</p>")
    assert (page.title(), page.inner_text("p")) == ("here", "hello")
    with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
        page.goto("http://somewhere.invalid/")
    page.close()


@pytest.mark.parametrize("kind", [Echo, *SERVERS])
def test_at_the_end_nothing_is_left(kind):
    with kind() as server:
        there = [pid for pid in family(server.pid) if alive(pid)]  # some start, and end at once
        assert server.pid in there
        assert listens(server.port)
    wait_until(lambda: not any(map(alive, there)), "all are gone", 20)
    assert not listens(server.port)
    assert not server.folder.exists()


OWNER = """
import sys, time
from tests.support.servers.{module} import {kind}
with {kind}() as server:
    print(server.pid, server.folder, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_ends_when_its_owner_is_killed(kind):
    code = OWNER.format(module=kind.__module__.rpartition(".")[2], kind=kind.__name__)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as owner:
        pid, folder = owner.stdout.readline().split()
        there = family(int(pid))
        owner.kill()
    wait_until(lambda: not any(map(alive, there)), "the server is gone", 30)
    wait_until(lambda: not Path(folder).exists(), "its folder is gone", 30)


@pytest.mark.postgres
def test_a_server_ends_when_its_watchdog_is_killed():
    with LocalPostgres() as server:
        there = family(server.pid)
        watchdog = int(Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(watchdog, signal.SIGKILL)
        wait_until(lambda: not any(map(alive, there)), "the server is gone", 30)


def test_a_server_outlives_the_thread_that_started_it():
    with Echo() as server:
        server.stop()
        thread = threading.Thread(target=server.start)
        thread.start()
        thread.join()
        assert server.answers()


def test_data_stays_in_a_folder_that_was_given(tmp_path):
    with Echo(tmp_path / "mine") as server:
        assert server.pid
        (server.folder / "kept").write_text("data")
    assert server.pid == 0
    assert (tmp_path / "mine" / "kept").read_text() == "data"


def test_a_server_that_ends_at_once_tells_its_last_words():
    server = Echo(program="raise SystemExit('no room here')")
    with pytest.raises(UsageError, match=r"Echo ended while it started; its last words:\nno room here"):
        server.__enter__()
    assert not server.folder.exists()


def test_waiting_has_an_end():
    with pytest.raises(UsageError, match=r"waited 0\.1 seconds in vain until pigs fly"):
        wait_until(lambda: False, "pigs fly", 0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (LocalPostgres, "PostgreSQL's programs are not on this machine"),
        (lambda: LocalKafka(Path("jars")), "Java is not on this machine"),
        (chromium.launch_arguments, "Chromium is not on this machine"),
    ],
)
def test_what_is_missing_is_said_with_how_to_get_it(make, message, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("tests.support.programs.POSTGRES_HOMES", tmp_path)
    with pytest.raises(UsageError, match=message) as caught:
        make()
    assert "make test-services" in caught.value.hint


def test_a_broker_without_jars_says_how_to_get_them(monkeypatch, tmp_path):
    monkeypatch.setenv("QUERYCLOAK_KAFKA_JARS", str(tmp_path))
    monkeypatch.setattr("querycloak.environment.java", lambda: Path("java"))
    with pytest.raises(UsageError, match="no Kafka broker is on this machine"):
        LocalKafka()
