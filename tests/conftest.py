"""Fixtures: one embedded PostgreSQL a run, a migrated template, a clone of it for each test."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from corpus.database import Database
from corpus.dburl import DatabaseUrl
from corpus.embedded import EmbeddedServer
from corpus.schema import migrate

_numbers = itertools.count()


def pytest_report_header() -> str:
    return f"CI={os.environ.get('CI', '')} cores={os.cpu_count()}"


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedServer]:
    """An embedded server of the run's own, without fsync: its data need not survive."""
    folder = Path(tempfile.mkdtemp(prefix="brain-test-"))
    folder.chmod(0o755)
    server = EmbeddedServer(folder / "db")
    server.ensure_running()
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("ALTER SYSTEM SET synchronous_commit = off")
        connection.execute("SELECT pg_reload_conf()")
    yield server
    server.stop(immediate=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def template(server: EmbeddedServer) -> str:
    """Name of a migrated database with the hashing encoder active."""
    from corpus.encoders import register_encoder
    from encoders.load import resolve_spec

    database = _database(server, "brain")
    migrate(database)
    with database.connect() as connection:
        register_encoder(connection, resolve_spec("hashing"), activate=True)
    return "brain"


@pytest.fixture
def database(server: EmbeddedServer, template: str) -> Iterator[Database]:
    """A migrated database of the test's own (hashing encoder active)."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    admin = conninfo.make_conninfo(server.conninfo, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    yield _database(server, name)
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture
def home() -> Iterator[Path]:
    """A BRAIN_HOME that the server's user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="brain-home-"))
    folder.chmod(0o755)
    yield folder
    embedded = EmbeddedServer(folder / "db")
    if embedded.is_initialised:
        embedded.stop(immediate=True)
    shutil.rmtree(folder, ignore_errors=True)


def _database(server: EmbeddedServer, name: str) -> Database:
    return Database(DatabaseUrl(conninfo=conninfo.make_conninfo(server.conninfo, dbname=name)), application_name="test")
