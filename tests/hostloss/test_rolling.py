"""A rolling upgrade: each program beside a schema that is older or newer than it works, or refuses in one sentence (exit 5)."""

from __future__ import annotations

import asyncio
import shutil

import psycopg
import pytest

from brain import cli as brain_cli
from corpus.database import Database
from corpus.dburl import DatabaseUrl
from corpus.schema import migrate
from embed_worker import cli as worker_cli
from embed_worker.worker import Options, Worker
from encoders.hashing import HashingEncoder
from search_server import cli as server_cli
from search_server.service import SearchService
from sql import files
from tests.search.corpus import ids, load, params, ready, settings_at

PROGRAMS = (
    (worker_cli, ["--drain"]),
    (server_cli, ["--port", "0"]),
    (brain_cli, ["search", "snails"]),
    (brain_cli, ["status"]),
    (brain_cli, ["ingest", "--jsonl", "ROWS"]),
    (brain_cli, ["receipt"]),
    (brain_cli, ["vectors", "export", "FOLDER"]),
    (brain_cli, ["seed", "export"]),
    (brain_cli, ["topic", "report", "snails"]),
    (brain_cli, ["encoder", "list"]),
)


@pytest.fixture
def older(empty, tmp_path, monkeypatch):
    """A database as the previous version left it: the last migration is missing."""
    old = tmp_path / "sql"
    shutil.copytree(files.folder(), old, ignore=shutil.ignore_patterns("functions", "__pycache__"))
    (old / "functions").mkdir()
    max((old / "migrations").glob("*.sql")).unlink()
    with monkeypatch.context() as patched:
        patched.setattr(files, "folder", lambda: old)
        migrate(Database(DatabaseUrl(conninfo=empty)))
    return empty


def refusal(module, words, address, folder, monkeypatch, capsys) -> tuple[int, str]:
    """The exit code of a program, and what it says."""
    rows = folder / "rows.jsonl"
    rows.write_text('{"_id": "1", "title": "Snails", "text": "Slow."}\n')
    monkeypatch.setenv("BRAIN_HOME", str(folder / "home"))
    monkeypatch.setenv("BRAIN_SEEDS", str(folder / "seeds"))
    named = {"ROWS": str(rows), "FOLDER": str(folder / "vectors")}
    with pytest.raises(SystemExit) as ended:
        module.main([*(named.get(word, word) for word in words), "--db", address])
    return int(ended.value.code or 0), capsys.readouterr().err.strip()


def check_refusals(programs, address, folder, monkeypatch, capsys, *, why: str, mend: str) -> None:
    """Each program says in one line why it refuses and what helps, and nothing is written."""
    for module, words in programs:
        code, said = refusal(module, words, address, folder, monkeypatch, capsys)
        assert (code, why in said, mend in said) == (5, True, True), (words, code, said)
        assert "Traceback" not in said
        assert said.count("\n") == 0, said
    assert not (folder / "vectors").exists()
    assert not (folder / "seeds").exists()
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT count(*) FROM paper").fetchone() == (0,)


def newer(database: Database) -> None:
    """What a later version's migration leaves that we do not know."""
    with database.connect() as connection:
        connection.execute("ALTER TABLE paper ADD COLUMN invented_later integer")
        connection.execute("CREATE TABLE invented_later (n integer)")
        connection.execute(
            "INSERT INTO _yoyo_migration (migration_hash, migration_id, applied_at_utc) VALUES ('x', '9999.later', now())"
        )


def test_beside_an_older_schema_each_program_refuses_and_writes_nothing(older, tmp_path, monkeypatch, capsys):
    check_refusals(PROGRAMS, older, tmp_path, monkeypatch, capsys, why="older than this program", mend="brain init")


def test_beside_a_newer_schema_each_program_refuses_and_writes_nothing(database, tmp_path, monkeypatch, capsys):
    newer(database)
    programs = (*PROGRAMS, (brain_cli, ["init"]))
    check_refusals(
        programs, database.conninfo, tmp_path, monkeypatch, capsys, why="newer than this program", mend="9999.later"
    )


async def test_a_worker_and_a_server_that_run_go_on_when_the_schema_is_upgraded(database, home, tmp_path):
    """What a later version adds is no trouble to those who run: they finish what they do, and restart when it suits."""
    options = Options(cache=tmp_path, version="test", name="runs", loader=lambda *_: HashingEncoder())
    worker = Worker(database, options)
    async with SearchService.open(database, settings_at(home)) as service:
        await ready(service)
        running = asyncio.create_task(worker.run())
        await asyncio.to_thread(load, database, [{"_id": "before", "title": "Before", "text": "beforeword"}])
        await found(service, "beforeword", "t:before")
        await asyncio.to_thread(newer, database)
        await asyncio.to_thread(load, database, [{"_id": "after", "title": "After", "text": "afterword"}])
        await found(service, "afterword", "t:after")
        worker.stop()
        assert await asyncio.wait_for(running, 10) == 0


async def found(service: SearchService, word: str, paper_id: str) -> None:
    """Wait until the paper is found by words and by its embedding, nothing missing."""
    async with asyncio.timeout(20):
        while True:
            answer = await service.search(params(word, k=3))
            lists = {
                entry for hit in answer["hits"] if hit["paper_id"] == paper_id for entry in (hit.get("lists") or [1])
            }
            if lists and not answer["degraded"] and paper_id in ids(answer):
                return
            await asyncio.sleep(0.05)
