"""What callers meet while something is down, slow, full or still loading."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from psycopg import conninfo

from corpus.database import Database
from corpus.dburl import DatabaseUrl
from corpus.embedded import EmbeddedServer
from corpus.encoders import register_encoder
from corpus.errors import EncoderUnavailable
from corpus.schema import migrate
from encoders.hashing import HASHING, HashingEncoder
from search_server import state
from search_server.app import create_app
from search_server.errors import Overloaded
from search_server.service import SearchService
from tests.chaos.proxy import Proxy
from tests.search.corpus import WORDS, embed, ids, in_step, load, params, ready, settings_at

ROWS = [{"_id": "a", "title": "Attention heads", "text": "Multi-head attention."}]


async def test_words_answer_while_the_encoder_loads(database, home):
    may_load = threading.Event()

    def slow(*_, **__):
        may_load.wait(20)
        return HashingEncoder()

    load(database, ROWS)
    embed(database)
    async with SearchService.open(database, settings_at(home), load=slow) as service:
        await asyncio.to_thread(service.words.wait_open, timedelta(seconds=20))
        answer = await service.search(params("attention heads"))
        assert ids(answer) == ["t:a"]
        assert {d["list"]: d["reason"] for d in answer["degraded"]} == {
            "passage_vector": "encoder_loading", "paper_vector": "encoder_loading"
        }  # fmt: skip
        may_load.set()
        await ready(service)
        assert (await service.search(params("attention heads")))["degraded"] == []


async def test_an_encoder_that_cannot_be_had(database, home):
    def broken(*_, **__):
        raise EncoderUnavailable("no weights here")

    load(database, ROWS)
    async with SearchService.open(database, settings_at(home), load=broken) as service:
        await ready(service)
        answer = await service.search(params("attention"))
        assert ids(answer) == ["t:a"]
        assert {d["reason"] for d in answer["degraded"]} == {"encoder_down"}


async def test_another_encoder_than_the_databases_is_not_used(database, home):
    with database.connect() as connection:
        connection.execute("UPDATE encoder SET max_tokens = 5")
    async with SearchService.open(database, settings_at(home)) as service:
        await ready(service)
        assert "max_tokens" in service.encoder.state["detail"]


async def test_beyond_the_queue_questions_are_refused(database, home):
    started = threading.Event()
    go_on = threading.Event()

    class Slow(HashingEncoder):
        def encode(self, texts, *, kind="document"):
            if texts != ["warm up"]:
                started.set()
                go_on.wait(10)
            return super().encode(texts, kind=kind)

    load(database, ROWS)
    embed(database)
    async with SearchService.open(
        database, settings_at(home), load=lambda *_, **__: Slow(), n_running=1, n_waiting=1
    ) as service:
        await ready(service)
        first = asyncio.create_task(service.search(params("attention")))
        await asyncio.to_thread(started.wait, 5)
        second = asyncio.create_task(service.search(params("heads")))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded) as caught:
            await service.search(params("third"))
        assert caught.value.retry_after_s == 1
        go_on.set()
        assert ids(await first) == ids(await second) == ["t:a"]


async def test_equal_questions_are_encoded_once(service, database):
    load(database, ROWS)
    embed(database)
    await in_step(service)
    before = service.encoder.n_encoded
    await asyncio.gather(*(service.search(params("the same question")) for _ in range(6)))
    assert service.encoder.n_encoded == before + 1


@pytest.fixture
def own_server(home: Path):
    """A database server of the test's own, which it may stop."""
    database = Database.at("embedded:", home)
    migrate(database)
    with database.connect() as connection:
        register_encoder(connection, HASHING, activate=True)
    return database, EmbeddedServer(home / "db")


async def test_the_database_stops_and_comes_back(own_server, home):
    database, server = own_server
    load(database, ROWS)
    embed(database)
    app = create_app(database, settings_at(home))
    async with app.router.lifespan_context(app):
        service = await ready(app.state.service)
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            assert (await client.get("/brain_search?q=attention")).status_code == 200
            await asyncio.to_thread(server.stop)
            for _ in range(3):
                began = time.monotonic()
                answer = await client.get("/brain_search?q=attention")
                assert time.monotonic() - began < 2
                assert answer.status_code == 503
                assert answer.json()["type"].endswith("database-unavailable")
                assert answer.headers["retry-after"]
            assert (await client.get("/readyz")).status_code == 503
            assert (await client.get("/livez")).status_code == 200
            assert server.find_pid() is None
            await asyncio.to_thread(server.ensure_running)
            async with asyncio.timeout(15):
                while (await client.get("/readyz")).status_code != 200:
                    await asyncio.sleep(0.1)
            assert (await client.get("/brain_search?q=attention")).status_code == 200
            load(database, [{"_id": "b", "title": "Later", "text": "laterword"}])
            await in_step(service)
            assert ids(await service.search(params("laterword", **WORDS))) == ["t:b"]


async def test_a_network_that_says_nothing_for_a_while_costs_no_connection_for_good(own_server, home, monkeypatch):
    monkeypatch.setattr(state, "_LOOK_S", 0.5)
    database, server = own_server
    load(database, ROWS)
    embed(database)
    async with Proxy(f"{server.socket_dir}/.s.PGSQL.5432") as proxy:
        target = conninfo.make_conninfo(server.conninfo, host="127.0.0.1", port=proxy.port, connect_timeout=2)
        async with SearchService.open(Database(DatabaseUrl(conninfo=target)), settings_at(home)) as service:
            await ready(service)
            proxy.weather = "swallowed"
            async with asyncio.timeout(30):
                while service.state.failed_at is None:
                    await asyncio.sleep(0.1)
            await proxy.heal()
            async with asyncio.timeout(20):
                while service.state.failed_at is not None:
                    await asyncio.sleep(0.1)
            await ready(service)
            held = await asyncio.gather(*(service.pool.getconn(timeout=5) for _ in range(service.pool.max_size)))
            for connection in held:
                await service.pool.putconn(connection)
            assert ids(await service.search(params("attention", **WORDS))) == ["t:a"]


def _start(database: Database, home: Path, *words: str) -> subprocess.Popen[str]:
    env = {**os.environ, "BRAIN_HOME": str(home), "BRAIN_DB": database.conninfo}
    return subprocess.Popen(
        [sys.executable, "-c", "from search_server.cli import main; main()", *words],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_sigterm_ends_it_with_callers_on_the_line(database, home):
    load(database, ROWS)
    process = _start(database, home, "--port", "0")
    line = process.stdout.readline()
    port = int(re.search(r":(\d+)$", line.strip())[1])
    idle, half, slow = (socket.create_connection(("127.0.0.1", port), 5) for _ in range(3))
    idle.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"200" in idle.recv(1000)
    half.sendall(b"GET /brain_search?q=att")
    slow.sendall(b"GET /papers HTTP/1.1\r\nHost: x\r\n\r\n")
    process.send_signal(signal.SIGTERM)
    assert process.wait(15) == 0
    for held in (idle, half, slow):
        held.close()


@pytest.mark.parametrize(
    "words", [["--host", "0.0.0.0"], ["--host", "::"], ["--trusted-network", "nowhere"], ["--port", "99999"]]
)
def test_usage(database, home, words):
    process = _start(database, home, *words)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 2, said
    assert "error:" in said


async def test_no_request_fails_when_all_connections_are_cut(database, client):
    """What reads is asked again on new connections, whichever address it is."""
    for path in ("/papers", "/topics", "/health", "/brain_search?q=moraine", "/readyz"):
        with database.connect(autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        answer = await client.get(path)
        assert answer.status_code == 200, (path, answer.text)


class _Unreadable:
    """What the index library does when its files cannot be read any more."""

    def __getattr__(self, name: str):
        raise ValueError("An IO error occurred: 'Input/output error'")


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"explain": True, "fusion": "rrf"}, "search_server.finish.words_of_hits"),
        ({"passages": 2, "fusion": "rrf"}, "search_server.words.search.Reader.score_papers"),
        ({}, "search_server.words.search.Reader.score_papers"),
        ({}, "search_server.words.search.Reader.papers_titled"),
    ],
    ids=["explain", "passages", "rescored", "titles"],
)
async def test_a_word_index_that_fails_late_lacks_in_the_answer_too(database, service, monkeypatch, more, where):
    load(database, ROWS)
    embed(database)
    await in_step(service)
    monkeypatch.setattr(where, _fail)
    answer = await service.search(params("Attention heads", **more))
    assert [(part["list"], part["reason"]) for part in answer["degraded"]] == [("passage_bm25", "index_building")]
    assert "t:a" in ids(answer)


def _fail(*_: object, **__: object) -> None:
    raise ValueError("An IO error occurred: 'Input/output error'")


async def test_damage_that_a_late_question_reports_orders_no_second_rebuild(database, service):
    load(database, ROWS)
    embed(database)
    await in_step(service)
    was = service.words.reader
    service.words.report_damage(was, "unreadable")
    assert service.words.reader is None
    async with asyncio.timeout(20):
        while service.words.reader is None:
            await asyncio.sleep(0.05)
    service.words.report_damage(was, "unreadable")
    assert service.words.reader is not None


@pytest.mark.parametrize("more", [{}, {"year_from": 1990}], ids=["all", "filtered"])
async def test_a_word_index_that_cannot_be_read_lacks_in_the_answer_and_is_built_anew(database, service, more):
    load(database, [{**row, "metadata": {"year": 2000}} for row in ROWS])
    embed(database)
    await in_step(service)
    service.words.reader._searcher = _Unreadable()
    answer = await service.search(params("Attention heads", **more))
    assert [(part["list"], part["reason"]) for part in answer["degraded"]] == [("passage_bm25", "index_building")]
    assert ids(answer) == ["t:a"]
    async with asyncio.timeout(20):
        while (await service.search(params("attention", **more)))["degraded"]:
            await asyncio.sleep(0.05)
