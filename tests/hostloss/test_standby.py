"""Search servers beside a standby: nothing is missed there, nothing is built anew, and its answers go on when the primary dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from corpus.backup_manifest import run
from corpus.database import Database
from corpus.dburl import DatabaseUrl
from corpus.embedded import EmbeddedServer
from corpus.embedded_host import give_to_server_user
from corpus.encoders import register_encoder
from corpus.schema import migrate
from encoders.load import resolve_spec
from search_server.health import Health
from search_server.service import SearchService
from search_server.words.follow import Follower
from tests.search.corpus import embed, ids, load, params, ready, settings_at


class Pair:
    """A primary and its streaming standby."""

    def __init__(self, folder: Path) -> None:
        self.primary, self.standby = EmbeddedServer(folder / "one"), EmbeddedServer(folder / "two")
        self.primary.ensure_running()
        database = self.at("primary")
        migrate(database)
        with database.connect() as connection:
            register_encoder(connection, resolve_spec("hashing"), activate=True)
        load(database, [{"_id": "first", "title": "First", "text": "moraine survey"}])
        embed(database)
        words = (
            "-d",
            self.primary.conninfo,
            "-D",
            str(self.standby.folder),
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "--no-manifest",
        )
        done = run("pg_basebackup", *words)
        assert done.returncode == 0, done.stderr
        shutil.rmtree(self.standby.folder / "socket", ignore_errors=True)
        for path in (self.standby.folder, *self.standby.folder.rglob("*")):
            give_to_server_user(path)
        with contextlib.suppress(psycopg.errors.ReadOnlySqlTransaction):
            self.standby.ensure_running()  # it runs; that nothing can be created there is what a standby is

    def at(self, *which: str, attrs: str = "any") -> Database:
        """The database by the named hosts, in that order."""
        parts = [conninfo.conninfo_to_dict(getattr(self, name).conninfo) for name in which]
        hosts, ports = (",".join(str(part[name]) for part in parts) for name in ("host", "port"))
        text = conninfo.make_conninfo(self.primary.conninfo, host=hosts, port=ports, target_session_attrs=attrs)
        return Database(DatabaseUrl(conninfo=text), application_name="test")

    def tell(self, which: str, statement: str) -> None:
        with self.at(which).connect(autocommit=True) as connection:
            connection.execute(statement)


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """One pair for the whole module. The order of its tests matters: the last one kills the primary and promotes the standby,
    so that a new test goes before it."""
    folder = Path(tempfile.mkdtemp(prefix="brain-pair-"))
    folder.chmod(0o755)
    made = Pair(folder)
    yield made
    for server in (made.standby, made.primary):
        server.stop(immediate=True)
    shutil.rmtree(folder, ignore_errors=True)


def seen(follower: Follower, word: str) -> bool:
    from search_server.filters import Filters

    reader = follower.reader
    return reader is not None and bool(reader.search(reader.ask(word), Filters(), 9))


def wait(condition, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def follow(database: Database, home: Path) -> Follower:
    follower = Follower(database, home / "word-index", poll=timedelta(seconds=0.1))
    follower.start()
    return follower


def test_a_word_index_follows_a_standby_and_misses_no_late_commit(pair, home):
    """A standby can be listened to by nobody, and its snapshots do not name the transactions that are under way."""
    follower = follow(pair.at("standby"), home)
    try:
        wait(lambda: seen(follower, "moraine"))
        with pair.at("primary").connect() as slow:
            slow.execute("INSERT INTO paper (paper_id, title) VALUES ('t:slow', 'Slow one')")
            slow.execute(
                "INSERT INTO passage (paper_pk, part, ordinal, char_start, char_end, text, text_sha256) "
                "SELECT paper_pk, 'abstract', 0, 0, 8, 'slowword', sha256('x') FROM paper WHERE paper_id = 't:slow'"
            )
            load(pair.at("primary"), [{"_id": "quick", "title": "Quick", "text": "quickword"}])
            wait(lambda: seen(follower, "quickword"))
        wait(lambda: seen(follower, "slowword"))
        assert follower.state.n_rebuilds == 1
    finally:
        follower.stop()


def test_a_standby_that_is_behind_is_waited_for(pair, home):
    """What the index saw on the primary is not there yet: that is no database that went back in time."""
    follower = follow(pair.at("primary"), home)
    try:
        wait(lambda: seen(follower, "moraine"))
        pair.tell("standby", "SELECT pg_wal_replay_pause()")
        try:
            load(pair.at("primary"), [{"_id": "late", "title": "Late", "text": "lateword"}])
            wait(lambda: seen(follower, "lateword"))
            follower.stop()
            follower = follow(pair.at("standby"), home)
            wait(lambda: "not replayed" in (follower.state.why or ""))
            assert follower.state.n_rebuilds == 0
        finally:
            pair.tell("standby", "SELECT pg_wal_replay_resume()")
        wait(lambda: seen(follower, "lateword"))
        assert follower.state.n_rebuilds == 0
    finally:
        follower.stop()


async def test_a_server_beside_a_standby_is_known_to_the_farm(pair, home):
    """Its own row is written where rows can be written."""
    database = pair.at("standby", "primary")
    async with SearchService.open(database, settings_at(home)) as service:
        await ready(service)
        health = Health(service)
        await health._write_node()
        with pair.at("primary").connect() as connection:
            row = connection.execute("SELECT state FROM node WHERE name = %s", [health.name]).fetchone()
        assert row is not None
        assert (await health.report())["database"]["is_standby"] is True


async def test_when_the_primary_dies_the_standby_answers_within_the_question(pair, home):
    """No question fails, no list is missing; the same connections go on when the standby is promoted.

    How long a question may take is measured by `scripts/drill failover`; here the bound finds one that hangs.
    """
    async with SearchService.open(pair.at("primary", "standby"), settings_at(home)) as service:
        await ready(service)
        before = ids(await service.search(params("moraine survey", k=5)))
        assert before
        stop = asyncio.Event()
        n_answers = 0

        async def ask() -> None:
            nonlocal n_answers
            while not stop.is_set():
                async with asyncio.timeout(10):
                    answer = await service.search(params("moraine survey", k=5))
                assert answer["degraded"] == []
                assert ids(answer) == before
                n_answers += 1

        async def answers(n_more: int) -> None:
            end = n_answers + n_more
            while n_answers < end:
                await asyncio.sleep(0.01)

        async with asyncio.TaskGroup() as askers:  # one that fails ends the waiting too
            for _ in range(3):
                askers.create_task(ask())
            await answers(20)
            os.kill(pair.primary.find_pid(), signal.SIGKILL)
            await answers(60)
            await asyncio.to_thread(pair.tell, "standby", "SELECT pg_promote()")
            await answers(20)
            stop.set()
        load(pair.at("standby"), [{"_id": "new", "title": "New", "text": "newword"}])
        await asyncio.to_thread(wait, lambda: seen(service.words, "newword"))
        assert service.words.state.n_rebuilds == 1
