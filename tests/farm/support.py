"""What the farm's tests share: texts in the database, workers in this process and in others, what must hold at the end."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg import Connection

from corpus.database import Database
from corpus.halfvec import unpack
from embed_worker.worker import Options, Worker
from encoders.hashing import HashingEncoder

ENCODER_ID = 1


def sha(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def make_filling(connection: Connection[Any]) -> None:
    """No vector index: what the tests of speed and faults need is not slowed down by it."""
    connection.execute("DROP INDEX IF EXISTS passage_embedding_1_hnsw_idx, paper_embedding_1_hnsw_idx")


def add_papers(connection: Connection[Any], texts: Sequence[str], *, priority: int = 100) -> list[int]:
    """Papers with these texts, queued."""
    pks = [
        row[0]
        for row in connection.execute(
            "INSERT INTO paper (paper_id, title, text, text_sha256) SELECT 'file:' || gen_random_uuid(), t, t, h "
            "FROM unnest(%s::text[], %s::bytea[]) AS x (t, h) RETURNING paper_pk",
            [list(texts), [sha(t) for t in texts]],
        ).fetchall()
    ]
    connection.execute("SELECT job_enqueue_papers(%s, %s, %s)", [ENCODER_ID, pks, priority])
    return pks


def add_passages(
    connection: Connection[Any], texts: Sequence[str], *, priority: int = 100, is_queued: bool = True
) -> list[int]:
    """One paper with a document of these passages, queued."""
    row = connection.execute(
        "INSERT INTO paper (paper_id, title) VALUES ('file:' || gen_random_uuid(), 'a paper') RETURNING paper_pk"
    ).fetchone()
    assert row
    document = connection.execute(
        "INSERT INTO document (paper_pk, sha256, n_bytes, verdict, is_cut) VALUES (%s, %s, 1, 'ok', true) RETURNING document_id",
        [row[0], os.urandom(32)],
    ).fetchone()
    assert document
    ids = [
        each[0]
        for each in connection.execute(
            "INSERT INTO passage (paper_pk, document_id, part, ordinal, char_start, char_end, text, text_sha256) "
            "SELECT %s, %s, 'document', n, n * 10000, n * 10000 + length(t), t, h "
            "FROM unnest(%s::text[], %s::bytea[]) WITH ORDINALITY AS x (t, h, n) RETURNING passage_id",
            [row[0], document[0], list(texts), [sha(t) for t in texts]],
        ).fetchall()
    ]
    if is_queued:
        connection.execute("SELECT job_enqueue_passages(%s, %s, %s)", [ENCODER_ID, ids, priority])
    return ids


def add_document(
    connection: Connection[Any], text: str, *, sections: str = "[]", page_starts: Sequence[int] = ()
) -> int:
    """A document with a text and its chunk job."""
    row = connection.execute(
        "WITH p AS (INSERT INTO paper (paper_id, title) VALUES ('file:' || gen_random_uuid(), 'a paper') RETURNING paper_pk) "
        "INSERT INTO document (paper_pk, sha256, n_bytes, verdict, text, text_sha256, sections, page_starts) "
        "SELECT paper_pk, %s, 1, 'ok', %s, %s, %s, %s FROM p RETURNING document_id",
        [os.urandom(32), text, sha(text), sections, list(page_starts)],
    ).fetchone()
    assert row
    connection.execute("INSERT INTO job (kind, item_ids) VALUES ('chunk', ARRAY[%s::bigint])", [row[0]])
    return row[0]


def options(name: str = "tester", **values: Any) -> Options:
    return Options(**{"cache": Path("/nonexistent"), "version": "test", "name": name, "is_draining": True, **values})


async def drain(database: Database, name: str = "tester", **values: Any) -> int:
    """A worker in this process until nothing is left; its exit code."""
    async with asyncio.timeout(60):
        return await Worker(database, options(name, **values)).run()


def start_worker(database: Database, *words: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """A worker in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "embed_worker.cli", "--db", database.url.conninfo or "", *words],
        env={**os.environ, "BRAIN_LOG_LEVEL": "warning", **(env or {})},
        start_new_session=True,
    )


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until the condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


def one(database: Database, query: str, values: Sequence[Any] = ()) -> Any:
    """The one value of a query."""
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        row = connection.execute(query, values).fetchone()
        assert row
        return row[0]


def check_whole(database: Database) -> int:
    """Every passage and paper has exactly one embedding, equal to the hashing encoder's to the bit; no job is left. Returns
    the number of embeddings."""
    encoder = HashingEncoder()
    n = 0
    with psycopg.connect(database.conninfo) as connection:
        assert connection.execute("SELECT count(*) FROM job WHERE state <> 'failed'").fetchone() == (0,)
        for table, leaf in (("passage", "passage_embedding"), ("paper", "paper_embedding")):
            rows = connection.execute(
                f"SELECT DISTINCT ON (t.text_sha256) t.text, t.text_sha256, halfvec_send(e.embedding) FROM {table} t "
                f"LEFT JOIN {leaf} e ON e.encoder_id = 1 AND e.text_sha256 = t.text_sha256 WHERE t.text_sha256 IS NOT NULL"
            ).fetchall()
            assert all(row[2] is not None for row in rows), f"{sum(row[2] is None for row in rows)} of {table} are lost"
            total = connection.execute(f"SELECT count(*) FROM {leaf}").fetchone()
            assert total == (len(rows),), "an embedding belongs to nobody, or two to one text"
            if rows:
                stored = unpack([row[2] for row in rows])
                expected = encoder.encode([row[0] for row in rows]).astype(np.float16)
                assert np.array_equal(stored, expected), "an embedding is not its text's"
            n += len(rows)
    return n
