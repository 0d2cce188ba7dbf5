"""What the tests of the intake share."""

import pytest

from ingest.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def connection(database):
    with database.connect(autocommit=True) as connection:
        yield connection
