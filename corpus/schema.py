"""Creates and upgrades the schema: migrations once (frozen by hash), functions every time, under a lock of our own.

Two machines that run it at once both succeed: the second waits for the first. A killed run leaves nothing behind,
because the lock belongs to a session and each migration to a transaction.
"""

from __future__ import annotations

import contextlib
import json
import logging
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import Connection, errors

from corpus.database import Database, check_server, translated
from corpus.errors import SchemaMismatch, UnsupportedDatabase
from sql import files

_LOCK = 0x62726169  # one number for "a schema change of this project is under way"


def migrate(database: Database) -> list[str]:
    """Bring the schema to this program's version; returns the migrations that were run.

    Raises UnsupportedDatabase (too old, no pgvector, no right) or SchemaMismatch (the database is newer than we are).
    """
    database.ensure_started()
    with translated(database), _locked(database) as connection:
        check_server(connection)
        _refuse_newer(connection)
        with _rights_explained():
            _check_rights(connection)
            done = _run_migrations(database)
            with connection.transaction():
                for path in files.function_files():
                    connection.execute(path.read_bytes())
                connection.execute(
                    "INSERT INTO setting (name, value) VALUES ('instance', to_jsonb(%s::text)) ON CONFLICT DO NOTHING",
                    [str(uuid.uuid4())],
                )
                connection.execute(
                    "INSERT INTO setting (name, value) VALUES ('functions', %s) "
                    "ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = now()",
                    [json.dumps(functions_digest())],
                )
        return done


def check_schema(connection: Connection[Any]) -> None:
    """Raise SchemaMismatch with the mend unless the schema is the one that this program knows."""
    have = applied(connection)
    known = [path.stem for path in files.migration_files()]
    if not have:
        raise SchemaMismatch("The database has no schema yet.", mend="Run `brain init`.")
    if missing := [name for name in known if name not in have]:
        raise SchemaMismatch(
            f"The database's schema is older than this program: it lacks {', '.join(missing)}.",
            mend="Run `brain init`.",
        )
    _refuse_newer(connection)


def applied(connection: Connection[Any]) -> set[str]:
    """Names of the migrations that the database has seen."""
    try:
        with connection.transaction():
            return {row[0] for row in connection.execute("SELECT migration_id FROM _yoyo_migration").fetchall()}
    except errors.UndefinedTable:
        return set()


def functions_digest() -> str:
    """One hash over the re-runnable definitions."""
    return "".join(files.digest(path)[:8] for path in files.function_files())


def _refuse_newer(connection: Connection[Any]) -> None:
    unknown = applied(connection) - {path.stem for path in files.migration_files()}
    if unknown:
        raise SchemaMismatch(
            f"The database's schema is newer than this program: it has {', '.join(sorted(unknown))}.",
            mend="Upgrade this machine's research-brain.",
        )


@contextlib.contextmanager
def _locked(database: Database) -> Iterator[Connection]:
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        yield connection


def _check_rights(connection: Connection[Any]) -> None:
    """Ask before anything is made: yoyo hides the refusal of its own first table."""
    row = connection.execute("SELECT current_schema(), has_schema_privilege(current_schema(), 'CREATE')").fetchone()
    if row is None or not row[1]:
        raise errors.InsufficientPrivilege(f"no right to create in the schema {row[0] if row else '?'}")
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")


@contextlib.contextmanager
def _rights_explained() -> Iterator[None]:
    try:
        yield
    except errors.InsufficientPrivilege as error:
        said = str(error).splitlines()[0]
        raise UnsupportedDatabase(
            f"The database login may not create the schema: {said}.",
            mend="Let a superuser run CREATE EXTENSION vector in this database once, and give this login CREATE on it "
            "(GRANT CREATE ON DATABASE … TO …; GRANT CREATE ON SCHEMA public TO …).",
        ) from error


def _run_migrations(database: Database) -> list[str]:
    """yoyo-migrations on a connection of ours: its own address parser knows one host only."""
    from yoyo import read_migrations
    from yoyo.backends.core.postgresql import PostgresqlPsycopgBackend
    from yoyo.connections import parse_uri

    logging.getLogger("yoyo").setLevel(logging.WARNING)
    frozen = files.frozen_hashes()
    for path in files.migration_files():
        if frozen.get(path.name) != files.digest(path):
            raise SchemaMismatch(
                f"The migration {path.name} is not the one that was shipped.", mend="Install the package again."
            )

    class Backend(PostgresqlPsycopgBackend):
        def connect(self, dburi: object) -> Connection:  # noqa: ARG002 - ours knows the address
            return psycopg.connect(database.conninfo, autocommit=True)

    backend = Backend(parse_uri("postgresql+psycopg:///"), "_yoyo_migration")
    try:
        backend.init_database()
        pending = backend.to_apply(read_migrations(str(files.folder() / "migrations")))
        names = [migration.id for migration in pending]
        backend.apply_migrations(pending)
    finally:
        backend.connection.close()
    return names
