"""The vector lists: their plans name their index under every filter, and their rows are the nearest ones."""

import itertools
import re

import numpy as np
import pytest
from psycopg import errors, sql

from search_server import vectors
from search_server.filters import Filters
from search_server.vectors import Halfvec, ScanSettings, scan, scan_statement
from sql.files import queries
from tests.search.corpus import literal

N = 1200
FILTERS = {
    "none": Filters(),
    "topic": Filters(topics=(1,)),
    "without_topic": Filters(without_topics=(1, 2)),
    "kind": Filters(kinds=("paper", "book")),
    "without_kind": Filters(without_kinds=("session", "exam", "news")),
    "years": Filters(year_from=2001, year_to=2010),
    "all": Filters((1, 2, 3), (4,), ("paper",), ("session",), 1990, 2020),
}


def points(n: int) -> np.ndarray:
    """Clusters: uniform points have no neighbours, and recall among them means nothing."""
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(40, 768))
    found = centres[rng.integers(0, 40, n)] + 0.6 * rng.normal(size=(n, 768))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def filled(database):
    vectors_of = points(N)
    with database.connect() as connection:
        connection.execute("INSERT INTO topic (name) SELECT 't' || n FROM generate_series(1, 5) n")
        connection.execute(
            "INSERT INTO paper (paper_id, title, text, text_sha256, year, kind) SELECT 't:' || n, 'T', 'T', sha256(('p' || n)::bytea), "
            "CASE WHEN n %% 9 > 0 THEN 1990 + n %% 30 END, CASE WHEN n %% 11 = 0 THEN 'news' ELSE 'paper' END FROM generate_series(0, %s - 1) n",
            [N],
        )
        connection.execute(
            "INSERT INTO paper_topic SELECT paper_pk, 1 + paper_pk % 40 FROM paper WHERE paper_pk % 40 < 5"
        )
        connection.execute(
            "INSERT INTO passage (paper_pk, part, ordinal, char_start, char_end, text, text_sha256) "
            "SELECT paper_pk, 'abstract', 0, 0, 1, 'T', text_sha256 FROM paper"
        )
        with connection.cursor() as cursor:
            for what in ("passage", "paper"):
                cursor.execute(f"DROP INDEX {what}_embedding_1_hnsw_idx")
                cursor.executemany(
                    f"INSERT INTO {what}_embedding SELECT 1, sha256(%s::bytea), %s::text::halfvec",
                    [(f"p{n}", literal(v)) for n, v in enumerate(vectors_of)],
                )
        connection.execute("SELECT encoder_indexes(1)")
    return vectors_of


@pytest.fixture
async def pool(database):
    opened = database.pool(configure=vectors.configure)
    await opened.open()
    yield opened
    await opened.close()


async def test_every_list_uses_its_index_under_every_filter(database, filled, pool):
    """With no statistics, and with those that the server gathers."""
    await check_plans(filled, pool)
    with database.connect(autocommit=True) as connection:
        connection.execute("ANALYZE")
    await check_plans(filled, pool)


async def check_plans(filled, pool):
    question = Halfvec(filled[3])
    session = {"ef_search": "100", "max_scan_tuples": "20000", "timeout_ms": "3000"}
    for what, (name, filters) in itertools.product(("passage", "paper"), FILTERS.items()):
        statement, values = scan_statement(what, "nearest", 1, filters)
        async with pool.connection() as connection, connection.transaction():
            await connection.execute(queries("search")["session_settings"], session)
            cursor = await connection.execute(
                sql.SQL("EXPLAIN ") + statement, {**values, "embedding": question, "n": 20}
            )
            plan = "\n".join(row[0] for row in await cursor.fetchall())
        assert f"{what}_embedding_1_hnsw_idx" in plan, (name, plan)
        assert "Seq Scan" not in plan, (name, plan)
        assert "Sort" not in plan, (name, plan)
        assert "paper_year_idx" not in plan, (name, plan)


async def test_an_exact_scan_finds_embeddings_by_the_whole_key(database, filled, pool):
    """An index that begins with the encoder is of no use to a server before PostgreSQL 18 that is asked by hash alone."""
    question = Halfvec(filled[3])
    with database.connect(autocommit=True) as connection:
        connection.execute("ANALYZE")
    asked = [
        (*scan_statement(what, "exact", 1, filters), {"n": 20}, [f"{what}_embedding_1_pkey"])
        for what, filters in itertools.product(("passage", "paper"), FILTERS.values())
    ]
    both = [f"{what}_embedding_1_pkey" for what in ("passage", "paper")]
    asked.append((vectors._cosines_text(1), {"passages": [1, 2], "papers": [3, 4]}, {}, both))
    for statement, values, more, indexes in asked:
        async with pool.connection() as connection, connection.transaction():
            await connection.execute(
                "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
            )
            cursor = await connection.execute(
                sql.SQL("EXPLAIN ") + statement, {**values, **more, "embedding": question}
            )
            plan = "\n".join(row[0] for row in await cursor.fetchall())
        for index in indexes:
            assert re.search(rf"{index} .*\n *Index Cond: \(\(encoder_id = 1\) AND \(text_sha256 = ", plan), plan


def test_vacuum_of_the_vector_indexes_yields_to_questions(database, filled):
    """It costs what a build does, and dead rows cost searches nearly nothing."""
    with database.connect() as connection:
        options = dict(
            connection.execute(
                "SELECT relname, reloptions FROM pg_class WHERE relname IN ('passage_embedding_1', 'paper_embedding_1')"
            ).fetchall()
        )
    assert len(options) == 2
    for each in options.values():
        assert {"autovacuum_vacuum_scale_factor=0.5", "autovacuum_vacuum_cost_delay=20"} <= set(each)


async def test_an_exact_scan_is_planned_for_its_own_filter(filled, pool):
    """A plan for filters of any width reads every passage where a topic has ten."""
    async with pool.connection() as connection:
        for n in range(12):
            filters = Filters(topics=(n % 3 + 1,))
            await vectors.ask(connection, "passage", "exact", Halfvec(filled[n]), 1, filters, 20, ScanSettings())
        cursor = await connection.execute(
            "SELECT sum(generic_plans), sum(custom_plans) FROM pg_prepared_statements WHERE statement LIKE '%wanted%'"
        )
        generic, custom = await cursor.fetchone()
    assert (generic, custom > 5) == (0, True)


async def test_rows_are_the_nearest_and_all_there_are(database, filled, pool):
    rng = np.random.default_rng(1)
    with database.connect() as connection:
        facts = connection.execute(
            "SELECT paper_pk, year, kind, ARRAY(SELECT topic_id FROM paper_topic t WHERE t.paper_pk = p.paper_pk) FROM paper p ORDER BY paper_pk"
        ).fetchall()
    recalls = []
    for (name, filters), exact_below in itertools.product(FILTERS.items(), (0, 10**6)):
        for number in rng.integers(0, N, 6):
            question = filled[number].astype(np.float16).astype(np.float32)
            allowed = [i for i, fact in enumerate(facts) if passes(fact, filters)]
            scores = filled[allowed].astype(np.float16).astype(np.float32) @ question
            best = [facts[allowed[i]][0] for i in np.argsort(-scores, kind="stable")[:20]]
            rows = await scan(
                pool, "passage", Halfvec(question), encoder_id=1, filters=filters, n=20, n_left=len(allowed),
                settings=ScanSettings(ef_search=100, exact_below=exact_below),
            )  # fmt: skip
            assert len(rows) == min(20, len(allowed)), name
            assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
            recall = len({row.paper_pk for row in rows} & set(best)) / max(1, len(best))
            recalls.append(recall)
            if exact_below:
                assert recall >= 0.95, name  # equal scores in half precision may change places at the edge
    assert np.mean(recalls) >= 0.98


def passes(fact, filters: Filters) -> bool:
    _, year, kind, topics = fact
    return (
        (not filters.topics or bool(set(topics) & set(filters.topics)))
        and not set(topics) & set(filters.without_topics)
        and (not filters.kinds or kind in filters.kinds)
        and kind not in filters.without_kinds
        and (filters.year_from is None or (year is not None and year >= filters.year_from))
        and (filters.year_to is None or (year is not None and year <= filters.year_to))
    )


async def test_settings_are_those_of_the_searching_transaction(pool):
    session = {"ef_search": "77", "max_scan_tuples": "20000", "timeout_ms": "3000"}
    async with pool.connection() as connection:
        async with connection.transaction():
            await connection.execute(queries("search")["session_settings"], session)
            cursor = await connection.execute(
                "SELECT current_setting('hnsw.ef_search'), current_setting('hnsw.iterative_scan')"
            )
            assert await cursor.fetchone() == ("77", "relaxed_order")
        cursor = await connection.execute("SELECT current_setting('hnsw.ef_search')")
        assert (await cursor.fetchone())[0] != "77"


async def test_settings_end_with_the_scan(filled, pool):
    """Behind a pooler the next program would get them."""
    names = ("hnsw.ef_search", "enable_seqscan", "statement_timeout")
    async with pool.connection() as connection:

        async def now() -> list[str]:
            return [(await (await connection.execute(f"SHOW {name}")).fetchone())[0] for name in names]

        before = await now()
        rows = await vectors.ask(
            connection, "passage", "nearest", Halfvec(filled[3]), 1, Filters(), 20, ScanSettings(ef_search=777)
        )
        assert len(rows) == 20
        assert await now() == before


async def test_a_scan_has_its_time_and_no_more(database, filled, pool):
    with database.connect() as other:
        other.execute("LOCK passage IN ACCESS EXCLUSIVE MODE")
        async with pool.connection() as connection:
            with pytest.raises(errors.QueryCanceled):
                await vectors.ask(
                    connection, "passage", "nearest", Halfvec(filled[3]), 1, Filters(), 20, ScanSettings(timeout_ms=50)
                )
            assert (await (await connection.execute("SHOW statement_timeout")).fetchone())[0] == "0"
