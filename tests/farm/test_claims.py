"""Claiming: what is claimed and in which order, and that no claim ever reads more than a few pages, at any backlog."""

from __future__ import annotations

import time
import uuid

import psycopg
import pytest

from corpus import farm, jobs
from corpus.jobs import Cursors
from tests.farm.support import make_filling

WANTED = {"chunk": 8, "embed_papers": 1, "embed_passages": 1}
FEW_PAGES = 80
"""Pages that a claim of one job touches: the queue's index for each step, one row, and the indexes that it stands in."""


async def _connect(database):
    return await psycopg.AsyncConnection.connect(database.conninfo, autocommit=True)


async def _claim(connection, cursors, wanted=None, *, is_full=False, encoder_id=1, below=None, lease_s=30.0):
    return await jobs.claim(
        connection, n_wanted=wanted or WANTED, encoder_id=encoder_id, node_id=None, lease_s=lease_s, cursors=cursors,
        is_full=is_full, below=below,
    )  # fmt: skip


def _held(got):
    return {job.job_id: job.lease_token for job in got}


async def _fill(connection, *rows):
    for kind, priority, n in rows:
        await connection.execute(
            "INSERT INTO job (kind, encoder_id, priority, item_ids) SELECT %s, CASE WHEN %s = 'chunk' THEN NULL ELSE 1 END, %s, ARRAY[g] "
            "FROM generate_series(1, %s) g",
            [kind, kind, priority, n],
        )


async def test_the_most_urgent_goes_first_whatever_its_kind(database):
    async with await _connect(database) as connection:
        await _fill(
            connection,
            ("embed_papers", 100, 2),
            ("embed_passages", 10, 2),
            ("chunk", 100, 1),
            ("embed_passages", 55, 1),
        )
        cursors = Cursors()
        seen = []
        while got := await _claim(connection, cursors) or await _claim(connection, cursors, is_full=True):
            seen += [(job.priority, job.kind) for job in got]
    assert seen[:2] == [(10, "embed_passages")] * 2
    assert seen[2] == (100, "chunk")
    assert sorted(seen[3:]) == [(55, "embed_passages"), (100, "embed_papers"), (100, "embed_papers")]


async def test_a_claim_below_takes_only_what_is_more_urgent(database):
    async with await _connect(database) as connection:
        await _fill(connection, ("embed_passages", 100, 1))
        cursors = Cursors()
        assert await _claim(connection, cursors, below=100) == []
        assert await _claim(connection, cursors, below=10) == []
        assert len(await _claim(connection, cursors)) == 1


async def test_nothing_is_claimed_twice_and_a_wrong_token_does_nothing(database):
    async with await _connect(database) as one, await _connect(database) as other:
        await _fill(one, ("embed_passages", 100, 1))
        (job,) = await _claim(one, Cursors())
        assert await _claim(other, Cursors(), is_full=True) == []
        forged = {job.job_id: uuid.uuid4()}
        assert await jobs.renew(other, forged, 60) == set()
        assert await jobs.release(other, forged) == set()
        assert await jobs.renew(one, _held([job]), 60) == {job.job_id}


async def test_an_expired_lease_comes_back_with_its_attempt_counted(database):
    async with await _connect(database) as connection:
        await _fill(connection, ("embed_passages", 100, 1))
        cursors = Cursors()
        (job,) = await _claim(connection, cursors, lease_s=-1)
        assert (await jobs.sweep(connection)).n_back == 1
        assert await jobs.renew(connection, _held([job]), 60) == set()
        assert await _claim(connection, cursors) == []  # behind the cursor
        (again,) = await _claim(connection, cursors, is_full=True)
        assert (again.job_id, again.n_attempts) == (job.job_id, 2)
        assert again.lease_token != job.lease_token


async def test_a_job_that_kills_its_workers_is_halved_until_the_bad_one_stands_alone(database):
    async with await _connect(database) as connection:
        await connection.execute(
            "INSERT INTO job (kind, encoder_id, item_ids) SELECT 'embed_passages', 1, array_agg(g) FROM generate_series(1, 64) g"
        )
        n_deaths = 0
        while True:
            got = await _claim(connection, Cursors(), is_full=True, lease_s=-1)
            if not got:
                break
            (job,) = got
            if 13 in job.item_ids:
                n_deaths += 1
                await jobs.sweep(connection)
            else:
                await connection.execute(
                    "SELECT job_complete(%s::bigint[], %s::uuid[])", [[job.job_id], [job.lease_token]]
                )
        rows = await (await connection.execute("SELECT item_ids, state, error_class FROM job")).fetchall()
    assert rows == [([13], "failed", "lost")]
    assert n_deaths == 5 + 3 * 6


async def test_a_release_costs_no_attempt_and_can_wait(database):
    async with await _connect(database) as connection:
        await _fill(connection, ("embed_passages", 100, 1))
        got = await _claim(connection, Cursors())
        assert await jobs.release(connection, _held(got), wait_s=60, why="throttled: slow down") == {got[0].job_id}
        assert await _claim(connection, Cursors(), is_full=True) == []
        row = await (await connection.execute("SELECT n_attempts, error FROM job")).fetchone()
    assert row == (0, "throttled: slow down")


async def test_a_slow_node_takes_a_part_of_a_slice_and_leaves_the_rest_quietly(database):
    async with await _connect(database) as listener, await _connect(database) as connection:
        await connection.execute(
            "INSERT INTO job (kind, encoder_id, item_ids) SELECT 'embed_passages', 1, array_agg(g) FROM generate_series(1, 64) g"
        )
        await listener.execute("LISTEN job_embed_passages")
        (job,) = await jobs.claim(
            connection, n_wanted=WANTED, encoder_id=1, node_id=None, lease_s=30, cursors=Cursors(), most_items=10
        )
        rest = await (
            await connection.execute("SELECT item_ids, state FROM job WHERE job_id <> %s", [job.job_id])
        ).fetchall()
        heard = [notify async for notify in listener.notifies(timeout=0.2)]
    assert job.item_ids == list(range(1, 11))
    assert rest == [(list(range(11, 65)), "waiting")]
    assert heard == []


async def test_inserts_call_out_once_and_claims_not_at_all(database):
    async with await _connect(database) as listener, await _connect(database) as connection:
        await listener.execute("LISTEN job_embed_passages")
        await _fill(connection, ("embed_passages", 100, 50))
        got = await _claim(connection, Cursors())
        await jobs.renew(connection, _held(got), 30)
        await connection.execute(
            "SELECT job_complete(%s::bigint[], %s::uuid[])", [[got[0].job_id], [got[0].lease_token]]
        )
        heard = [notify async for notify in listener.notifies(timeout=0.3)]
    assert [(notify.channel, notify.payload) for notify in heard] == [("job_embed_passages", "")]


def _pages(connection, cursors, *, is_full=False):
    """Pages that one claim touches."""
    priorities, from_ids = cursors.steps(list(WANTED))
    (plan,) = connection.execute(
        "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM job_claim_any(%s::text[], %s::integer[], 1, NULL, 30, %s::smallint[], %s::bigint[], %s)",
        [list(WANTED), list(WANTED.values()), priorities, from_ids, is_full],
    ).fetchone()
    return plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]


def _queue_a_million(connection):
    """A tenth papers, the rest passages; the indexes are made afterwards, which is faster."""
    indexes = connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'job' AND indexname <> 'job_pkey'"
    ).fetchall()
    with connection.transaction():
        connection.execute("ALTER TABLE job DISABLE TRIGGER USER")
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}")
        connection.execute(
            "INSERT INTO job (kind, encoder_id, item_ids) SELECT CASE WHEN g % 10 = 0 THEN 'embed_papers' ELSE 'embed_passages' END, 1, "
            "ARRAY[g] FROM generate_series(1, 1000000) g"
        )
        for _, definition in indexes:
            connection.execute(definition)
        connection.execute("ALTER TABLE job ENABLE TRIGGER USER")


@pytest.mark.slow
async def test_claims_and_status_stay_cheap_at_a_million_jobs(database):
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        make_filling(connection)
        _queue_a_million(connection)
        cursors = Cursors()
        _pages(connection, cursors)  # the first call of a session reads the catalog
        for _ in range(8):  # plans are made anew for the first calls and kept afterwards: both must be right
            assert _pages(connection, cursors) < FEW_PAGES
            assert _pages(connection, cursors, is_full=True) < FEW_PAGES

        began = time.perf_counter()
        stages = farm.status(connection)["stages"]
        assert time.perf_counter() - began < 2
        for stage, n in (("embed_papers", 100_000), ("embed_passages", 900_000)):
            found = stages[stage]["waiting"]
            assert abs(found - n) < (n * 0.2 if stages[stage].get("is_estimate") else 100)

        # An old snapshot keeps every dead row: the head of the queue grows, and claims must not walk over it.
        with psycopg.connect(database.conninfo) as old:
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT 1 FROM job LIMIT 1").fetchone()
            async with await _connect(database) as worker:
                for _ in range(100):
                    got = await _claim(worker, cursors, {"chunk": 8, "embed_papers": 64, "embed_passages": 64})
                    await worker.execute(
                        "SELECT job_complete(%s::bigint[], %s::uuid[])",
                        [[j.job_id for j in got], [j.lease_token for j in got]],
                    )
            assert _pages(connection, cursors) < FEW_PAGES
            assert _pages(connection, Cursors()) > 1000, (
                "without cursors the dead head is walked over: the test tests nothing"
            )
