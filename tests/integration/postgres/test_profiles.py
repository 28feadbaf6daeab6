"""Profiles in a real PostgreSQL: all or nothing, also when the server restarts or dies in between."""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak.errors import DataError, ParameterError, StoreUnavailable
from querycloak.service.sinks import profiles_postgres as postgres
from querycloak.service.sinks.profiles import open_store
from tests.support.servers.postgres import LocalPostgres
from tests.unit.service.sinks.profile_store import changes, follow, made_up, model_of

NAMES = tuple(f"p{number}" for number in range(40))


@pytest.fixture
def server(postgres) -> LocalPostgres:
    return postgres


@pytest.fixture
def stream(request):
    return request.node.name


def password_of(url: str) -> str:
    return urlsplit(url).password or ""


def without_password(url: str) -> str:
    return url.replace(f":{password_of(url)}@", "@")


@given(steps=changes, number=st.integers(0, 10**12))
def test_it_does_what_a_dictionary_would_do(postgres_of_the_session, steps, number):
    import psycopg

    server = postgres_of_the_session
    server.start()
    stream = f"model {number}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres, "_READ_PATIENCE", 60.0)  # a busy machine connects slowly
        follow(lambda: open_store(server.url, stream), open_store(server.url, stream), steps)
    with psycopg.connect(server.url) as database:  # the same number may come again
        database.execute(
            "DELETE FROM querycloak_profile USING querycloak_stream WHERE id = stream AND name = %s",
            (stream,),
        )
        database.execute("DELETE FROM querycloak_stream WHERE name = %s", (stream,))


def test_streams_share_a_database_without_seeing_each_other(server):
    stores = [open_store(server.url, f"shared {number}") for number in range(4)]

    def count(number):
        for upto in range(1, 20):
            stores[number].add(upto, made_up(upto * 4 + number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))
    for number, store in enumerate(stores):
        model = model_of(upto * 4 + number for upto in range(1, 20))
        model.last = 19
        model.assert_same(store, NAMES)
        store.close()


def test_many_services_may_start_at_once(postgres_url):
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda number: open_store(postgres_url, f"start {number % 3}"), range(8)))
    for store in stores:
        assert store.last == 0
        store.close()


@pytest.mark.parametrize("hard", [False, True])
def test_counting_goes_on_over_restarts_and_counts_each_part_once(server, stream, hard):
    store, ended, faults = open_store(server.url, stream, patience=60), threading.Event(), []
    counted = [0]

    def count():
        try:
            while not ended.is_set():
                store.add(counted[0] + 1, made_up(counted[0] + 1))
                counted[0] += 1
        except BaseException as error:
            faults.append(error)

    worker = threading.Thread(target=count)
    worker.start()
    for _ in range(3):
        before, end = counted[0], time.monotonic() + 60
        while counted[0] < before + 5 and time.monotonic() < end:
            time.sleep(0.01)
        server.restart(hard)
    ended.set()
    worker.join(90)
    assert not faults
    assert counted[0] >= 15
    model_of(range(1, counted[0] + 1)).assert_same(store, NAMES)
    store.close()


def test_a_server_that_stays_away_is_told_and_the_same_call_works_later(server, stream):
    store = open_store(server.url, stream, patience=0.3)
    store.add(1, made_up(1))
    server.stop()
    try:
        for call in (lambda: store.add(2, made_up(2)), lambda: store.counts_of("p1")):
            with pytest.raises(StoreUnavailable, match=r"was not available for 0\.3 seconds") as caught:
                call()
            assert password_of(server.url) not in str(caught.value)
            assert caught.value.http_status == 503
        with pytest.raises(StoreUnavailable):
            open_store(server.url, stream, patience=0.1)
        assert store.last == 1
    finally:
        server.start()
    store.add(2, made_up(2))
    model_of([1, 2]).assert_same(store, NAMES)
    store.close()


def test_a_lock_that_another_session_keeps_is_told_and_the_same_call_works_later(server, stream):
    import psycopg

    store = open_store(server.url, stream, patience=0.5)
    with psycopg.connect(server.url) as other:
        other.execute("SELECT * FROM querycloak_stream FOR UPDATE")
        with pytest.raises(StoreUnavailable, match="lock"):
            store.add(1, made_up(1))
        other.rollback()
    store.add(1, made_up(1))
    model_of([1]).assert_same(store, NAMES)
    store.close()


def test_a_commit_whose_answer_was_lost_is_not_counted_twice(server, stream, monkeypatch):
    import psycopg

    store = open_store(server.url, stream)
    real, lost = store._writer._once, []

    def lose_one_answer(work):
        given = real(work)
        if not lost:
            lost.append(given)
            raise psycopg.OperationalError("the connection is lost")
        return given

    monkeypatch.setattr(store._writer, "_once", lose_one_answer)
    store.add(1, made_up(1))
    assert lost == [1]
    model_of([1]).assert_same(store, NAMES)
    store.close()


def test_counts_that_overlap_with_what_another_counted_are_refused(server, stream):
    one, other = open_store(server.url, stream), open_store(server.url, stream)
    one.add(10, [("p1", "Arts", 10)])
    with pytest.raises(DataError, match="up to line 10 already, not 0"):
        other.add(15, [("p1", "Arts", 15)])
    assert other.counts_of("p1") == {"Arts": 10}
    one.close()
    other.close()


def test_an_add_that_fails_in_the_middle_leaves_nothing(server, stream):
    store = open_store(server.url, stream)
    store.add(1, [("p1", "Arts", 2**62)])
    with pytest.raises(DataError, match="error 22003") as caught:
        store.add(2, [("p0", "Arts", 3), ("p1", "Arts", 2**62)])
    assert "p1" not in str(caught.value)
    assert (store.last, store.counts_of("p0"), store.counts_of("p1")) == (1, None, {"Arts": 2**62})
    store.close()


def test_the_password_may_come_from_the_environment_or_a_file(server, stream, monkeypatch, tmp_path):
    url = without_password(server.url)
    with pytest.raises(StoreUnavailable):
        open_store(url, stream, patience=0.05)
    monkeypatch.setenv("PGPASSWORD", password_of(server.url))
    open_store(url, stream).close()
    monkeypatch.delenv("PGPASSWORD")
    parts = urlsplit(server.url)
    file = tmp_path / "pgpass"
    file.write_text(f"{parts.hostname}:{parts.port}:*:{parts.username}:{parts.password}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    open_store(url, stream).close()


def test_the_password_is_in_no_message_and_in_no_process_list(server, stream):
    wrong = server.url.replace(password_of(server.url), "planted-password")
    with pytest.raises(StoreUnavailable) as caught:
        open_store(wrong, stream, patience=0.05)
    assert "planted" not in repr(caught.value)
    for odd in ("postgresql://me:planted-password@[::1/db", "postgresql://me:planted-password%zz@host/db"):
        with pytest.raises(ParameterError, match="cannot be understood") as refused:
            open_store(odd)
        assert "planted" not in repr(refused.value)
    store = open_store(server.url, stream)
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert password_of(server.url) not in processes
    assert all(password_of(server.url) not in value for value in os.environ.values())
    store.close()


def test_a_role_that_may_not_create_tables_can_use_those_that_are_there(postgres_url, stream):
    import psycopg

    role, tables = f"counter_{secrets.token_hex(6)}", "querycloak_stream, querycloak_profile"
    parts = urlsplit(postgres_url)
    url = postgres_url.replace(f"{parts.username}:{parts.password}", f"{role}:made-up")
    with psycopg.connect(postgres_url, autocommit=True) as database:
        database.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'made-up'")
        with pytest.raises(DataError, match="error 42501"):
            open_store(url, stream)
        open_store(postgres_url, stream).close()
        database.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {role}")
        store = open_store(url, stream)
        store.add(1, made_up(1))
        model_of([1]).assert_same(store, NAMES)
        store.close()
        database.execute(f"DROP OWNED BY {role}")
        database.execute(f"DROP ROLE {role}")
