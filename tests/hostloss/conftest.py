"""What the tests of a lost host share: an empty database at an address of its own."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import conninfo

from corpus.embedded import EmbeddedServer


@pytest.fixture
def empty(server: EmbeddedServer) -> Iterator[str]:
    """The address of a database with no schema yet; dropped at the end."""
    name = f"empty_{os.getpid()}_{random.randrange(10**6)}"
    admin = conninfo.make_conninfo(server.conninfo, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    yield conninfo.make_conninfo(server.conninfo, dbname=name)
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
