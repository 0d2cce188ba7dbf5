"""Workers that are killed, paused and stopped in the middle of their work: nothing lost, nothing doubled, nothing wrong."""

from __future__ import annotations

import asyncio
import random
import signal

from tests.farm.support import (
    add_document,
    add_papers,
    add_passages,
    check_whole,
    drain,
    make_filling,
    one,
    start_worker,
    until,
)

LEASE_S = "2"
HOLDERS = "SELECT array(SELECT DISTINCT pid FROM job JOIN node USING (node_id) WHERE job.state = 'running')"


def _load(database, n: int = 3000) -> int:
    with database.connect() as connection:
        make_filling(connection)
        add_papers(connection, [f"paper {i} on tides" for i in range(n // 4)])
        for part in range(0, n, 1000):
            add_passages(connection, [f"passage {i} tells of kelp {i % 97}" for i in range(part, part + 1000)])
        for i in range(6):
            add_document(
                connection, f"Document {i}. " + " ".join(f"Sentence {j} of {i} speaks of corals." for j in range(400))
            )
    return n


async def test_ten_sigkills_lose_and_double_nothing(database):
    _load(database, 3000)
    chance = random.Random(20)
    workers = {each.pid: each for each in (start_worker(database, "--lease", LEASE_S) for _ in range(2))}
    n_texts = n_kills = 0
    try:
        async with asyncio.timeout(90):
            while n_kills < 10:
                if not one(database, "SELECT EXISTS (SELECT FROM job WHERE state = 'waiting')"):
                    with database.connect() as connection:
                        add_passages(connection, [f"passage {n_texts + i} to come" for i in range(2000)])
                    n_texts += 2000
                holders = [pid for pid in one(database, HOLDERS) if pid in workers]
                if not holders:
                    await asyncio.sleep(0.02)
                    continue
                await asyncio.sleep(chance.uniform(0, 0.1))  # the moment of the kill is the point of the test
                victim = workers.pop(chance.choice(holders))
                victim.kill()
                victim.wait()
                fresh = start_worker(database, "--lease", LEASE_S)
                workers[fresh.pid] = fresh
                n_kills += 1
        assert await drain(database, lease_s=2) == 0
    finally:
        for each in workers.values():
            each.kill()
            each.wait()
    assert check_whole(database) > 3000
    assert one(database, "SELECT count(*) FROM job WHERE state = 'failed'") == 0


async def test_a_worker_paused_past_its_lease_finishes_into_nothing(database):
    _load(database)
    sleeper = start_worker(database, "--drain", "--lease", "1", "--name", "sleeper")
    try:
        await until(lambda: one(database, "SELECT count(*) FROM job WHERE state = 'running'") > 0)
        sleeper.send_signal(signal.SIGSTOP)
        await until(
            lambda: (
                one(
                    database,
                    "SELECT count(*) FROM job WHERE state = 'running' AND lease_expires_at > clock_timestamp()",
                )
                == 0
            )
        )
        assert await drain(database, name="other", lease_s=5) == 0
        check_whole(database)
        sleeper.send_signal(signal.SIGCONT)
        await until(lambda: sleeper.poll() is not None)
        assert sleeper.returncode == 0
    finally:
        sleeper.kill()
        sleeper.wait()
    check_whole(database)


async def test_sigterm_leaves_nothing_held(database):
    _load(database)
    worker = start_worker(database)
    try:
        await until(lambda: one(database, "SELECT count(*) FROM job WHERE state = 'running'") > 0)
        worker.terminate()
        await until(lambda: worker.poll() is not None, 10)
        assert worker.returncode == 0
    finally:
        worker.kill()
        worker.wait()
    assert one(database, "SELECT count(*) FROM job WHERE state = 'running'") == 0
    assert one(database, "SELECT count(*) FROM job WHERE n_attempts > 0") == 0
    assert await drain(database) == 0
    check_whole(database)
