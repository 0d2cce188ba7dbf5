"""Every earlier schema, with data in it, migrates to today's and keeps what it held."""

from __future__ import annotations

import os
import shutil

import psycopg
import pytest
from psycopg import conninfo

from corpus import receipt
from corpus.database import Database
from corpus.dburl import DatabaseUrl
from corpus.encoders import register_encoder
from corpus.errors import SchemaMismatch
from corpus.schema import applied, check_schema, migrate
from encoders.load import resolve_spec
from sql import files

EARLIER = [path.stem for path in files.migration_files()][:-1]
DATA = (
    "INSERT INTO setting (name, value) VALUES ('search', '{\"ef_search\": 50}')",
    "INSERT INTO topic (name, title) VALUES ('snails', 'Snails')",
    "INSERT INTO paper (paper_id, title, abstract, text, text_sha256, mark) VALUES ('doi:10.1/a', 'A', 'b', E'A\\n\\nb', sha256(E'A\\n\\nb'), 'star')",
    "INSERT INTO paper_identifier SELECT 'doi', '10.1/a', paper_pk FROM paper",
    "INSERT INTO paper_topic SELECT paper_pk, topic_id FROM paper, topic",
    "INSERT INTO document (paper_pk, sha256, n_bytes, verdict, text, text_sha256) SELECT paper_pk, sha256('x'), 1, 'ok', 'x', sha256('x') FROM paper",
    "INSERT INTO passage (paper_pk, part, ordinal, char_start, char_end, text, text_sha256) SELECT paper_pk, 'abstract', 0, 0, 4, text, text_sha256 FROM paper",
)  # fmt: skip


@pytest.mark.parametrize("last", [name for name in EARLIER if name >= "0001"])
def test_an_earlier_schema_keeps_its_data(server, tmp_path, monkeypatch, last):
    name = f"old_{os.getpid()}_{last.replace('.', '_')}"
    address = conninfo.make_conninfo(server.conninfo, dbname=name)
    admin = conninfo.make_conninfo(server.conninfo, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    try:
        database = Database(DatabaseUrl(conninfo=address))
        old = tmp_path / "sql"
        shutil.copytree(files.folder(), old, ignore=shutil.ignore_patterns("functions", "__pycache__"))
        (old / "functions").mkdir()
        for path in (old / "migrations").glob("*.sql"):
            if path.stem > last:
                path.unlink()
        with monkeypatch.context() as patched:
            patched.setattr(files, "folder", lambda: old)
            migrate(database)
        with database.connect() as connection:
            for query in DATA:
                connection.execute(query)
        with database.connect() as connection, pytest.raises(SchemaMismatch, match="older than this program"):
            check_schema(connection)
        migrate(database)
        with database.connect() as connection:
            check_schema(connection)
            assert {path.stem for path in files.migration_files()} <= applied(connection)
            register_encoder(connection, resolve_spec("hashing"), activate=True)
        with database.connect(autocommit=True) as connection:
            now = receipt.take(connection)
            assert receipt.counts(now) == {"papers": 1, "documents": 1, "passages": 1, "embeddings": 0}
            assert now.head["settings"] == {"search": {"ef_search": 50}}
            assert now.papers["doi:10.1/a"]["topics"] == ["snails"]
            assert connection.execute("SELECT mark, title FROM paper").fetchone() == ("star", "A")
    finally:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
