"""The database restarts, sessions end, the network refuses, stalls and heals: workers wait and go on."""

from __future__ import annotations

import asyncio
import sys

import psycopg
import pytest
from psycopg import conninfo

from corpus.database import Database
from corpus.dburl import DatabaseUrl
from corpus.embedded import EmbeddedServer
from corpus.encoders import register_encoder
from corpus.schema import migrate
from embed_worker.feed import Feed
from embed_worker.worker import Worker
from encoders.load import resolve_spec
from tests.chaos.proxy import Proxy
from tests.farm.support import add_passages, check_whole, make_filling, one, options, start_worker, until


def _load(database, n=8000):
    with database.connect() as connection:
        make_filling(connection)
        for part in range(0, n, 2000):
            add_passages(connection, [f"passage {i} tells of tides" for i in range(part, part + 2000)])


def _n_embedded(database):
    return one(database, "SELECT count(*) FROM passage_embedding")


def _end(workers):
    for each in workers:
        each.kill()
        each.wait()


async def test_a_hard_restart_of_the_database(server, database):
    _load(database)
    # They go on until they are told: however fast they are, the database is gone under them.
    workers = [start_worker(database, "--lease", "3") for _ in range(2)]
    try:
        # One that has not reached the database yet ends with a sentence when there is none.
        await until(lambda: one(database, "SELECT count(*) FROM node WHERE encoder_id IS NOT NULL") == 2)
        await until(lambda: _n_embedded(database) > 0)
        server.stop(immediate=True)
        assert [each.poll() for each in workers] == [None, None]
        server.ensure_running()
        with database.connect() as connection:
            add_passages(connection, [f"more after it {i}" for i in range(500)])
        await until(lambda: not _is_left(database), 60)
        for each in workers:
            each.terminate()
        await until(lambda: all(each.poll() is not None for each in workers), 60)
        assert [each.returncode for each in workers] == [0, 0]
    finally:
        _end(workers)
    assert check_whole(database) == 8500


async def test_every_session_ended_again_and_again(database):
    _load(database)
    worker = start_worker(database, "--drain", "--lease", "3")
    try:
        for _ in range(6):
            n = _n_embedded(database)
            with psycopg.connect(database.conninfo, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            await until(lambda n=n: _n_embedded(database) > n or worker.poll() is not None)
        await until(lambda: worker.poll() is not None)
        assert worker.returncode == 0
    finally:
        _end([worker])
    assert check_whole(database) == 8000


def _through(database, proxy) -> Database:
    given = conninfo.conninfo_to_dict(database.url.conninfo)
    target = conninfo.make_conninfo(database.url.conninfo, host="127.0.0.1", port=proxy.port)
    assert given["host"].startswith("/")
    return Database(DatabaseUrl(conninfo=target), application_name="test")


async def test_a_network_that_refuses_cuts_half_closes_delays_and_swallows(server, database):
    _load(database)
    async with Proxy(f"{server.socket_dir}/.s.PGSQL.{server.port}") as proxy:
        worker = Worker(_through(database, proxy), options(lease_s=4, is_draining=False, call_timeout_s=2))
        running = asyncio.create_task(worker.run())
        n = -1
        for weather in ("refused", "cut", "half-closed", "delayed", "swallowed"):
            await until(lambda n=n: _n_embedded(database) > n or not _is_left(database))
            n = _n_embedded(database)
            with database.connect() as connection:
                add_passages(connection, [f"more before it {weather} {i}" for i in range(500)])
            if weather == "refused":
                await proxy.refuse()
                await asyncio.sleep(1)  # the length of the outage
            elif weather == "cut":
                proxy.cut()
            elif weather == "half-closed":
                proxy.half_close()
            elif weather == "delayed":
                proxy.delay_s = 0.05
                await asyncio.sleep(1)
            else:
                proxy.weather = "swallowed"
                await asyncio.sleep(1)
            assert not running.done()
            await proxy.heal()
        await until(lambda: not _is_left(database), 40)
        worker.stop()
        assert await running == 0
    assert check_whole(database) == 10_500


@pytest.mark.parametrize("weather", ["swallowed", "slow"])
async def test_one_long_look_puts_off_no_later_look(server, database, weather):
    """A look through the whole queue may cost a hundredth of the time: what the weather took is no cost of the look."""
    async with Proxy(f"{server.socket_dir}/.s.PGSQL.{server.port}") as proxy:
        worker = Worker(_through(database, proxy), options(is_draining=False, call_timeout_s=1))
        running = asyncio.create_task(worker.run())
        await until(
            lambda: one(database, "SELECT count(*) FROM node WHERE state = 'idle' AND encoder_id IS NOT NULL") == 1
        )
        feed = Feed(worker._context, worker._followed, asyncio.Queue())
        if weather == "swallowed":
            proxy.weather = "swallowed"
            looking = asyncio.create_task(feed._claim_once(None, is_full=True))
            await until(lambda: not worker._context.reading.is_up)
            await proxy.heal()
            assert await looking == []
        else:
            proxy.delay_s = 0.1
            assert await feed._claim_once(None, is_full=True) == []
            assert feed._looks_s[-1] > 0.1
        assert not feed._is_look_due(0.5)
        await asyncio.sleep(0.6)  # the pace that an idle worker looks at
        assert feed._is_look_due(0.5)
        if weather == "slow":
            assert await feed._claim_once(None, is_full=True) == []
            await asyncio.sleep(0.6)
            assert not feed._is_look_due(0.5), "looks that are always long cost more than a hundredth of the time"
        worker.stop()
        assert await running == 0


def _is_left(database):
    return one(database, "SELECT EXISTS (SELECT FROM job)")


async def test_a_wall_clock_that_is_an_hour_off_changes_nothing(database):
    _load(database, 2000)
    workers = []
    for hours in (-1, 1):
        code = (
            f"import sys, time; real = time.time; time.time = lambda: real() + 3600 * ({hours}); "
            "from embed_worker.cli import main; main(sys.argv[1:])"
        )
        workers.append(
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", code, "--db", database.url.conninfo, "--drain", "--lease", "3"
            )
        )
    async with asyncio.timeout(40):
        assert [await each.wait() for each in workers] == [0, 0]
    assert check_whole(database) == 2000
    assert one(database, "SELECT max(abs(extract(epoch FROM clock_timestamp() - last_seen_at))) < 60 FROM node")


async def test_a_stopped_embedded_database_is_not_started_by_a_running_worker(home):
    server = EmbeddedServer(home / "db")
    server.ensure_running()
    database = Database(DatabaseUrl(embedded_dir=home / "db"))
    migrate(database)
    with database.connect() as connection:
        register_encoder(connection, resolve_spec("hashing"), activate=True)
    by_socket = Database(DatabaseUrl(conninfo=server.conninfo))
    worker = Worker(Database(DatabaseUrl(embedded_dir=home / "db"), _ready=True), options(is_draining=False))
    running = asyncio.create_task(worker.run())
    await until(lambda: one(by_socket, "SELECT count(*) FROM node WHERE state = 'idle'") == 1)
    await asyncio.to_thread(server.stop)
    await asyncio.sleep(1.5)  # several tries of the worker
    assert server.find_pid() is None
    assert not running.done()
    await asyncio.to_thread(server.ensure_running)
    with database.connect() as connection:
        add_passages(connection, ["words after the pause"])
    await until(lambda: _n_embedded(by_socket) == 1)
    worker.stop()
    assert await running == 0
