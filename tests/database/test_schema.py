"""The schema: made once by however many, frozen by hash, refused with a mend where it cannot be."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from corpus.database import Database, is_connection_loss, translate
from corpus.dburl import DatabaseUrl
from corpus.errors import DatabaseUnavailable, SchemaMismatch, UnsupportedDatabase
from corpus.schema import applied, check_schema, migrate
from sql import files


@pytest.fixture
def empty(server, request):
    """An empty database."""
    name = "empty_" + re.sub(r"\W", "_", request.node.name)[:40].lower()
    admin = conninfo.make_conninfo(server.conninfo, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
    yield Database(DatabaseUrl(conninfo=conninfo.make_conninfo(server.conninfo, dbname=name)))
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def test_shipped_migrations_are_frozen():
    assert {path.name: files.digest(path) for path in files.migration_files()} == files.frozen_hashes()


def test_two_machines_at_once_both_succeed_and_a_third_finds_nothing_to_do(empty):
    results, failures = [], []

    def run():
        try:
            results.append(migrate(empty))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    n = len(files.migration_files())
    assert sorted(len(done) for done in results) == [0, 0, n]
    assert migrate(empty) == []
    with empty.connect() as connection:
        check_schema(connection)


def test_after_a_killed_run_the_next_one_succeeds(empty):
    """Killed while it holds the lock and has migrations open, at several moments."""
    code = (
        "import sys; from corpus.database import Database; from corpus.schema import migrate; from pathlib import Path;"
        "print('begun', flush=True); migrate(Database.at(sys.argv[1], Path('/')))"
    )
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", code, empty.conninfo], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
        )
        process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    migrate(empty)
    with empty.connect() as connection:
        check_schema(connection)


def test_an_older_or_newer_schema_is_told_apart(empty):
    with empty.connect() as connection, pytest.raises(SchemaMismatch, match="brain init"):
        check_schema(connection)
    migrate(empty)
    with empty.connect() as connection:
        connection.execute(
            "INSERT INTO _yoyo_migration (migration_hash, migration_id, applied_at_utc) VALUES ('x', '9999.later', now())"
        )
    with empty.connect() as connection, pytest.raises(SchemaMismatch, match="newer"):
        check_schema(connection)
    with pytest.raises(SchemaMismatch, match="9999.later"):
        migrate(empty)


def test_a_login_without_the_right_is_told_what_to_grant(server, empty):
    with psycopg.connect(empty.conninfo, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS nobody_special")
        connection.execute("CREATE ROLE nobody_special")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    weak = Database(DatabaseUrl(conninfo=conninfo.make_conninfo(empty.conninfo, options="-c role=nobody_special")))
    with pytest.raises(UnsupportedDatabase, match="CREATE"):
        migrate(weak)
    with empty.connect() as connection:
        assert applied(connection) == set()


def test_a_database_that_is_not_there():
    gone = Database(DatabaseUrl(conninfo="postgresql://u:Secret77@127.0.0.1:1/d"))
    with pytest.raises(DatabaseUnavailable, match=r"127\.0\.0\.1") as caught, gone.connect():
        pass
    assert "Secret77" not in str(caught.value)
    assert is_connection_loss(caught.value.__cause__)


def test_a_missing_table_says_brain_init(empty):
    with pytest.raises(UnsupportedDatabase, match="brain init"), empty.connect() as connection:
        connection.execute("SELECT 1 FROM paper")


def test_statement_errors_are_no_connection_loss(database):
    with psycopg.connect(database.conninfo) as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("SELECT 1 / 0")
        assert not is_connection_loss(caught.value)
        assert translate(caught.value, database).exit_code == 1


def test_named_queries_can_all_be_planned(database):
    """Every named query names tables and columns that exist: it can be prepared."""
    skip = re.compile(r"^\s*(COPY|CREATE|LISTEN|SET|LOCK|REINDEX|DROP|VACUUM|ANALYZE|ALTER)", re.IGNORECASE)
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        from ingest.papers import SQL

        connection.execute(SQL["create_incoming"])
        for path in sorted((files.folder() / "queries").glob("*.sql")):
            for name, text in files.queries(path.stem).items():
                plain = re.sub(r"(?m)^\s*--.*$", "", text)
                if skip.match(plain) or "{" in plain:
                    continue
                numbers = {}
                prepared = re.sub(
                    r"%\((\w+)\)s", lambda m: f"${numbers.setdefault(m.group(1), len(numbers) + 1)}", plain
                )
                count = iter(range(1, 100))
                prepared = re.sub(r"%s", lambda _: f"${next(count)}", prepared).replace("%%", "%")
                try:
                    connection.execute(f"PREPARE q AS {prepared}".encode())
                    connection.execute("DEALLOCATE q")
                except (
                    psycopg.errors.IndeterminateDatatype,
                    psycopg.errors.AmbiguousParameter,
                    psycopg.errors.AmbiguousFunction,
                ):
                    pass
                except psycopg.Error as error:
                    if "incoming" not in str(error) and "does not exist" in str(error) and "temp" not in str(error):
                        pytest.fail(f"{path.name} {name}: {error}")
