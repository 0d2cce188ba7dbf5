"""The binary index with exact rescoring: a setting that works, keeps its recall, and is a quarter as large at most."""

import numpy as np
import pytest
from psycopg import sql

from corpus import vector_index
from corpus.halfvec import COPY_HEAD, COPY_TAIL, pack_copy_rows
from search_server.filters import Filters
from search_server.service import SearchService
from search_server.vectors import Halfvec, scan, scan_statement
from sql.files import queries
from tests.search.corpus import ready, settings_at

N, N_QUERIES, K = 6000, 40, 20


@pytest.fixture(scope="module")
def vectors():
    """Unit vectors in clusters, as texts of a few subjects lie."""
    chance = np.random.default_rng(3)
    centres = chance.normal(size=(60, 768))
    found = centres[chance.integers(60, size=N + N_QUERIES)] + 1.1 * chance.normal(size=(N + N_QUERIES, 768))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def filled(database, vectors):
    with database.connect() as connection:
        connection.execute("INSERT INTO paper (paper_id) SELECT 'p:' || n FROM generate_series(1, 60) n")
        connection.execute(
            "INSERT INTO passage (paper_pk, part, ordinal, char_start, char_end, text, text_sha256) "
            "SELECT p, 'abstract', n, n, n + 1, n::text, sha256(n::text::bytea) FROM generate_series(1, %s) n, "
            "LATERAL (SELECT paper_pk AS p FROM paper ORDER BY paper_pk OFFSET n %% 60 LIMIT 1) q", [N],
        )  # fmt: skip
        hashes = [row[0] for row in connection.execute("SELECT text_sha256 FROM passage ORDER BY ordinal").fetchall()]
        vector_index.drop(connection, 1, "passage")
        with connection.cursor() as cursor:
            cursor.execute("CREATE TEMP TABLE incoming (text_sha256 bytea, embedding halfvec(768))")
            with cursor.copy("COPY incoming FROM STDIN (FORMAT binary)") as copy:
                copy.write(COPY_HEAD)
                copy.write(pack_copy_rows(hashes, vectors[:N]))
                copy.write(COPY_TAIL)
            cursor.execute("INSERT INTO passage_embedding SELECT 1, text_sha256, embedding FROM incoming")
    with database.connect(autocommit=True) as connection:
        vector_index.ensure(connection, 1)
        connection.execute("ANALYZE")
    return database


def index_size(database):
    with database.connect() as connection:
        return connection.execute(
            "SELECT pg_relation_size('passage_embedding_1_hnsw_idx'), pg_get_indexdef('passage_embedding_1_hnsw_idx'::regclass)"
        ).fetchone()


async def recall(database, home, vectors):
    exact = np.argsort(-(vectors[:N].astype(np.float16).astype(np.float32) @ vectors[N:].T), axis=0)[:K].T
    found = 0
    async with SearchService.open(database, settings_at(home)) as service:
        await ready(service)
        for query, wanted in zip(vectors[N:], exact, strict=True):
            rows = await scan(
                service.pool,
                "passage",
                Halfvec(query),
                encoder_id=1,
                filters=Filters(),
                n=K,
                n_left=None,
                settings=service.state.scan,
            )
            assert len(rows) == K
            assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
            ids = {row.passage_id for row in rows}
            async with service.pool.connection() as connection:
                cursor = await connection.execute(
                    "SELECT ordinal FROM passage WHERE passage_id = ANY (%s)", [list(ids)]
                )
                found += len({row[0] - 1 for row in await cursor.fetchall()} & set(wanted.tolist()))
    return found / exact.size


async def plan(database, home, query):
    """How the binary list's statement is run."""
    statement, values = scan_statement("passage", "binary", 1, Filters())
    async with SearchService.open(database, settings_at(home)) as service:
        await ready(service)
        async with service.pool.connection() as connection, connection.transaction():
            session = {"ef_search": "400", "max_scan_tuples": "100000", "timeout_ms": "3000"}
            await connection.execute(queries("search")["session_settings"], session)
            cursor = await connection.execute(
                sql.SQL("EXPLAIN ") + statement, {**values, "embedding": Halfvec(query), "n": 400}
            )
            return "\n".join(row[0] for row in await cursor.fetchall())


async def test_the_binary_index_keeps_its_recall_in_a_quarter_of_the_room(filled, home, vectors):
    large, _ = index_size(filled)
    assert await recall(filled, home, vectors) >= 0.98
    with filled.connect(autocommit=True) as connection:
        assert vector_index.get_kind(connection) == "halfvec"
        assert vector_index.switch_kind(connection, 1, "binary")
        assert not vector_index.switch_kind(connection, 1, "binary")
        assert vector_index.list_states(connection, 1)["passage"] is True
    small, definition = index_size(filled)
    assert "binary_quantize" in definition
    assert small <= large / 4
    assert await recall(filled, home, vectors) >= 0.98
    assert "passage_embedding_1_hnsw_idx" in await plan(filled, home, vectors[N])
    with filled.connect(autocommit=True) as connection:
        vector_index.drop(connection, 1, "passage")
        vector_index.ensure(connection, 1)  # a rebuild builds the kind that is set
        assert "binary_quantize" in index_size(filled)[1]
        assert vector_index.switch_kind(connection, 1, "halfvec")
    assert "halfvec_cosine_ops" in index_size(filled)[1]
