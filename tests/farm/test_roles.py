"""What each login may do, and what it may not."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import conninfo

from corpus.database import Database
from corpus.dburl import DatabaseUrl
from corpus.schema import migrate
from sql import files
from tests.farm.support import add_document, add_papers, add_passages, check_whole, drain, one

MAKE_LOGINS = """
DO $$ BEGIN CREATE ROLE test_laptop IN ROLE brain_worker; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
DO $$ BEGIN CREATE ROLE test_desktop IN ROLE brain_worker; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
DO $$ BEGIN CREATE ROLE test_web IN ROLE brain_search; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
"""


@pytest.fixture
def roles(database):
    """The rights of sql/roles.sql, twice, and three logins."""
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        for _ in range(2):
            connection.execute((files.folder() / "roles.sql").read_bytes())
        connection.execute(MAKE_LOGINS)
    return database


def _as(database, role) -> Database:
    info = conninfo.make_conninfo(database.url.conninfo, options=f"-c role={role}")
    return Database(DatabaseUrl(conninfo=info), application_name="test")


async def test_a_workers_login_can_do_a_workers_work(roles):
    with roles.connect() as connection:
        add_papers(connection, [f"paper {i}" for i in range(70)])
        add_passages(connection, [f"passage {i}" for i in range(70)])
        add_document(connection, "A document. " * 300)
    assert await drain(_as(roles, "test_laptop"), name="node") == 0
    assert check_whole(roles) > 140
    assert one(roles, "SELECT login::text FROM node") == "test_laptop"


async def test_a_name_of_another_login_is_not_taken_over(roles):
    assert await drain(_as(roles, "test_laptop"), name="node") == 0
    assert await drain(_as(roles, "test_desktop"), name="node") == 0
    with psycopg.connect(roles.conninfo) as connection:
        assert connection.execute("SELECT name, login::text FROM node ORDER BY name").fetchall() == [
            ("node", "test_laptop"),
            ("node-2", "test_desktop"),
        ]


async def test_rights_outlive_an_upgrade(roles):
    migrate(roles)
    assert await drain(_as(roles, "test_laptop")) == 0


FORBIDDEN_TO_BOTH = (
    "INSERT INTO paper (paper_id) VALUES ('x')",
    "UPDATE paper SET title = 'x'",
    "DELETE FROM paper",
    "DELETE FROM passage",
    "UPDATE passage SET text = 'x'",
    "INSERT INTO passage (paper_pk, part, ordinal, char_start, char_end, text, text_sha256) VALUES (1, 'abstract', 0, 0, 1, 'x', sha256('x'))",
    "INSERT INTO job (kind, item_ids) VALUES ('chunk', ARRAY[1])",
    "UPDATE job SET state = 'waiting'",
    "DELETE FROM job",
    "INSERT INTO passage_embedding VALUES (1, sha256('x'), array_fill(1, ARRAY[768])::real[]::halfvec)",
    "DELETE FROM passage_embedding",
    "TRUNCATE passage_embedding_1",
    "UPDATE encoder SET state = 'retired'",
    "SELECT encoder_activate(1)",
    "SELECT encoder_partitions(9)",
    "SELECT job_enqueue_missing(1, 10)",
    "INSERT INTO setting (name, value) VALUES ('x', '1')",
    "UPDATE setting SET value = '1'",
    "CREATE TABLE mine (x integer)",
    "DROP TABLE paper",
    "ALTER TABLE node DISABLE ROW LEVEL SECURITY",
    "INSERT INTO topic (name) VALUES ('x')",
    "DELETE FROM node",
    "INSERT INTO node (name, role, host, pid, version) VALUES ('x', 'ingest', 'h', 1, '1')",
    "INSERT INTO node (name, role, host, pid, version, login) VALUES ('x', 'worker', 'h', 1, '1', 'test_other')",
    "GRANT brain_worker TO test_web",
)


@pytest.mark.parametrize("role", ["test_laptop", "test_web"])
def test_what_neither_may_do(roles, role):
    with roles.connect() as connection:
        add_passages(connection, ["a text"], is_queued=False)
    with psycopg.connect(_as(roles, role).conninfo, autocommit=True) as connection:
        for statement in FORBIDDEN_TO_BOTH:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_what_a_search_server_may_do(roles):
    with roles.connect() as connection:
        add_passages(connection, ["a text"])
    with psycopg.connect(_as(roles, "test_web").conninfo, autocommit=True) as connection:
        for table in (
            "paper",
            "passage",
            "passage_embedding",
            "passage_embedding_1",
            "topic",
            "setting",
            "change",
            "encoder",
            "job",
            "node",
        ):
            connection.execute(f"SELECT count(*) FROM {table}")
        connection.execute("INSERT INTO node (name, role, host, pid, version) VALUES ('web', 'search', 'h', 1, '1')")
        assert connection.execute("UPDATE node SET state = 'ready'").rowcount == 1
        for call in (
            "SELECT * FROM job_claim_any('{chunk}', '{1}', NULL, NULL, 30, '{}', '{}', true)",
            "SELECT * FROM job_sweep(5)",
            "SELECT * FROM job_complete('{}', '{}')",
            "SELECT * FROM embed_read('embed_papers', 1, '{}')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(call)


def test_a_login_cannot_change_the_row_of_another(roles):
    with psycopg.connect(_as(roles, "test_laptop").conninfo, autocommit=True) as connection:
        connection.execute("INSERT INTO node (name, role, host, pid, version) VALUES ('one', 'worker', 'h', 1, '1')")
    with psycopg.connect(_as(roles, "test_desktop").conninfo, autocommit=True) as connection:
        assert connection.execute("UPDATE node SET state = 'stopped'").rowcount == 0


def test_a_temporary_table_does_not_stand_in_for_a_real_one(roles):
    with roles.connect() as connection:
        add_passages(connection, ["a text"])
    with psycopg.connect(_as(roles, "test_laptop").conninfo, autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE job (LIKE public.job INCLUDING ALL)")
        got = connection.execute(
            "SELECT * FROM job_claim_any('{embed_passages}', '{1}', 1, NULL, 30, '{}', '{}', true)"
        ).fetchall()
    assert len(got) == 1
    assert one(roles, "SELECT state FROM public.job") == "running"
