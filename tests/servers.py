"""Fixtures: real servers, started when the first test asks, one of each; a test may stop and restart them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.servers.chromium import launch_arguments
from tests.support.servers.kafka import LocalKafka
from tests.support.servers.postgres import LocalPostgres

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def postgres_of_the_session() -> Iterator[LocalPostgres]:
    with LocalPostgres() as server:
        yield server


@pytest.fixture
def postgres(postgres_of_the_session: LocalPostgres) -> LocalPostgres:
    """A PostgreSQL that answers, whatever the test before did to it."""
    postgres_of_the_session.start()
    return postgres_of_the_session


@pytest.fixture
def postgres_url(postgres: LocalPostgres) -> Iterator[str]:
    """The address of an empty database of the test's own."""
    import psycopg

    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield postgres.url.rpartition("/")[0] + f"/{name}"
    postgres.start()
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def kafka_of_the_session() -> Iterator[LocalKafka]:
    with LocalKafka() as server:
        yield server


@pytest.fixture
def kafka(kafka_of_the_session: LocalKafka) -> LocalKafka:
    """A Kafka broker that answers; topics of earlier tests are still in it, so name yours for yourself."""
    kafka_of_the_session.start()
    return kafka_of_the_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark on two cores of this machine; starting it takes some 20 seconds."""
    from querycloak.spark.session import start_session

    folder = tmp_path_factory.mktemp("spark")
    options = {
        "spark.driver.memory": "2g",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "4",
        "spark.default.parallelism": "2",
    }
    session = start_session("local[2]", options)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium without windows; each test opens pages or contexts of its own.

    Not for the session: while Playwright is on, no other test of this worker could call `asyncio.run`.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(**launch_arguments())
        yield found
        found.close()
