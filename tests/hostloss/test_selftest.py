"""The self-test is green where all is well, and names each thing that was broken on purpose."""

import asyncio
import errno
import json
from dataclasses import replace

import psycopg
import pytest
from psycopg import conninfo

from brain.selftest_steps import run
from corpus import selftest as parts
from corpus.database import Database
from corpus.dburl import DatabaseUrl
from corpus.encoders import get_active
from corpus.errors import BrainError
from corpus.selftest import PartFailed, Report
from corpus.settings import Settings
from embed_worker.served import load_and_prove
from ingest import selftest as intake
from ingest.papers import write_papers
from ingest.records import PaperRecord
from ingest.selftest_payloads import CITING, PAYLOADS, Payload
from ingest.sources import SOURCES
from ingest.store import Store
from search_server.selftest import check_word_index
from search_server.service import SearchService
from tests.search.corpus import ready


def settings_at(home):
    return Settings(home=home, seeds=home / "seeds", encoder="hashing")


def failed(report):
    return {finding.part: finding.what for finding in report.findings if not finding.is_ok}


@pytest.fixture
def shapes(database, server):
    """The shape of an untouched database, and what breaks another one."""
    with database.connect() as connection:
        wanted = parts.shape(connection)

    def broken_by(*queries):
        with database.connect() as connection:
            for query in queries:
                connection.execute(query)
        with database.connect() as connection, pytest.raises(PartFailed) as caught:
            parts.check_shape(parts.shape(connection), wanted)
        return caught.value.what

    return broken_by


def test_where_all_is_well_every_part_works_and_the_result_is_kept(database, home):
    report = run(database, settings_at(home))
    assert failed(report) == {}
    assert report.is_ok
    names = [finding.part for finding in report.findings]
    assert {f"source {name}" for name in SOURCES} <= set(names)
    assert {
        "extraction",
        "full-text finder",
        "store",
        "schema",
        "intake",
        "cutting and embedding",
        "lists and fusion",
        "links and seed export",
        "citations in answers",
    } <= set(names)
    with database.connect() as connection:
        row = connection.execute("SELECT value FROM setting WHERE name = 'selftest'").fetchone()
        assert row[0]["is_ok"] is True
        assert connection.execute("SELECT count(*) FROM paper").fetchone() == (0,)
        assert connection.execute(
            "SELECT count(*) FROM pg_database WHERE datname LIKE 'brain_selftest%%'"
        ).fetchone() == (0,)


def test_a_whole_run_over_a_broken_database_names_each_break_and_stops_at_none(database, home):
    with database.connect() as connection:
        connection.execute("ALTER TABLE paper RENAME COLUMN abstract TO summary")
        connection.execute("DROP TABLE citation")
        connection.execute("DROP INDEX passage_embedding_1_hnsw_idx")
        connection.execute("UPDATE encoder SET weights_sha256 = 'other'")
    (home / "seeds").mkdir()
    (home / "seeds" / "t.jsonl").write_text('{"_meta": {"topic": "t"}}\nnot json\n')
    (home / "store").write_text("a file where the store should be")
    found = failed(run(database, settings_at(home)))
    assert "column paper.abstract is missing" in found["schema"]
    assert "table citation is missing" in found["schema"]
    assert "passage embeddings: missing" in found["vector index"]
    assert "is not the database's" in found["encoder"]
    assert "line 2" in found["seed files"]
    assert "store" in found["store"]
    with database.connect() as connection:
        row = connection.execute("SELECT value FROM setting WHERE name = 'selftest'").fetchone()
    assert {each["part"] for each in row[0]["failed"]} == set(found)
    assert json.dumps(row[0])


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("ALTER TABLE document RENAME COLUMN verdict TO outcome", "column document.verdict is missing"),
        ("DROP TABLE passage CASCADE", "table passage is missing"),
        ("ALTER TABLE paper ALTER COLUMN year TYPE bigint", "column paper.year is another one"),
        ("DROP TRIGGER passage_insert_change ON passage", "trigger passage_insert_change of passage is missing"),
        ("ALTER TABLE paper DISABLE TRIGGER paper_update_change", "trigger paper_update_change of paper is another one"),
        ("DROP INDEX job_waiting_idx", "index job_waiting_idx of job is missing"),
        ("DROP FUNCTION active_encoder_id() CASCADE", "function active_encoder_id() is missing"),
        ("CREATE OR REPLACE FUNCTION active_encoder_id() RETURNS integer LANGUAGE sql STABLE AS 'SELECT 1'", "function active_encoder_id() is another one"),
        ("ALTER TABLE document DROP CONSTRAINT document_verdict_check", "constraint document_verdict_check of document is missing"),
    ],
)  # fmt: skip
def test_each_break_of_the_schema_is_named(shapes, query, named):
    assert named in shapes(query)


def test_tables_of_somebody_else_are_no_finding(database):
    with database.connect() as connection:
        wanted = parts.shape(connection)
        connection.execute("CREATE TABLE my_own (x integer)")
        parts.check_shape(parts.shape(connection), wanted)


def test_a_missing_right_is_named(database, server):
    with database.connect(autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS selftest_poor")
        connection.execute("CREATE ROLE selftest_poor")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO selftest_poor")
        connection.execute("REVOKE INSERT ON passage FROM selftest_poor")
        try:
            with connection.transaction(force_rollback=True):
                connection.execute("SET LOCAL ROLE selftest_poor")
                with pytest.raises(PartFailed, match="lacks INSERT on passage"):
                    parts.check_rights(connection)
        finally:
            connection.execute("DROP OWNED BY selftest_poor")
            connection.execute("DROP ROLE selftest_poor")


def test_a_login_that_may_not_create_the_scratch_database_is_told(database, server):
    name = conninfo.conninfo_to_dict(database.conninfo)["dbname"]
    with database.connect(autocommit=True) as connection:
        connection.execute("CREATE ROLE selftest_plain")
        try:
            poor = DatabaseUrl(
                conninfo=conninfo.make_conninfo(server.conninfo, dbname=name, options="-c role=selftest_plain")
            )
            with pytest.raises(PartFailed, match="may not create"), parts.scratch_database(Database(poor), "never"):
                pytest.fail("it was created")
        finally:
            connection.execute("DROP ROLE selftest_plain")


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_a_changed_payload_is_named(name):
    changed = {**PAYLOADS, name: Payload(PAYLOADS[name].body.replace(b"itle", b"aption"), PAYLOADS[name].identifier)}
    checks = dict(intake.list_source_parts(changed))
    with pytest.raises(BrainError):
        checks[f"source {name}"]()
    with pytest.raises(PartFailed, match="no payload"):
        dict(intake.list_source_parts({}))[f"source {name}"]()


@pytest.mark.parametrize(("name", "field"), [("crossref", b'"reference"'), ("openalex", b'"referenced_works"')])
def test_citations_that_are_no_longer_read_are_named(database, name, field):
    """The adapter still reads the work; only what it cites has another place."""
    body = CITING[name].body
    changed = {**CITING, name: replace(CITING[name], body=body.replace(field, b'"cites"'))}
    assert changed[name].body != body
    with pytest.raises(PartFailed, match=f"an answer of {name} cites was not linked"):
        intake.check_citations(database, changed)


def test_a_full_disk_and_a_store_that_cannot_be_written_are_named(tmp_path, monkeypatch):
    with pytest.raises(PartFailed, match="is full"):
        intake.check_store(Store(tmp_path / "store"), least_free_bytes=1 << 60)
    real = intake.Store

    class Full(real):
        def put_bytes(self, content):
            raise OSError(errno.ENOSPC, "No space left on device")

    report = Report()
    report.run("store", lambda: intake.check_store(Full(tmp_path / "store")))
    assert "No space left" in report.findings[0].what


def test_missing_weights_are_named(database, tmp_path):
    with database.connect() as connection:
        row = get_active(connection)
    gone = {
        "name": "gone",
        "revision": "",
        "weights_sha256": "0" * 64,
        "max_tokens": 512,
        "prompts": {},
        "source": f"dir:{tmp_path / 'none'}",
    }
    report = Report()
    report.run(
        "encoder",
        lambda: load_and_prove(replace(row, name="gone", spec=gone, weights_sha256="0" * 64), "auto", tmp_path),
    )
    assert not report.is_ok
    assert "gone" in report.findings[0].what
    assert report.findings[0].mend


def test_an_extractor_that_cannot_work_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(
        intake,
        "extract_file",
        lambda path: __import__("ingest.text.result", fromlist=["refuse"]).refuse("timeout", "too slow"),
    )
    with pytest.raises(PartFailed, match=r"reads a\.pdf as timeout"):
        intake.check_extraction(tmp_path)


async def test_a_stale_word_index_is_named(database, home):
    root = home / "word-index"
    async with SearchService.open(database, settings_at(home)) as service:
        await ready(service)
        with database.connect(autocommit=True) as connection:
            await asyncio.to_thread(check_word_index, connection, root)
    # Nobody keeps the index now: what it has not seen is caught up with before anybody searches it, and no finding.
    with database.connect() as connection:
        write_papers(connection, [PaperRecord("p:1", is_prefixed=True, title="Snails", abstract="Slow.")])
    with database.connect(autocommit=True) as connection:
        check_word_index(connection, root, stale_s=-1)
        # A database that went back in time does not hold the last row that the index saw.
    async with SearchService.open(database, settings_at(home)) as service:
        await ready(service)
    with database.connect(autocommit=True) as connection:
        check_word_index(connection, root)
        connection.execute("DELETE FROM change")
        with pytest.raises(PartFailed, match="is stale"):
            check_word_index(connection, root)


async def test_an_index_that_somebody_keeps_without_following_is_stale(database, home):
    from search_server.words.lock import FolderLock

    root = home / "word-index"
    async with SearchService.open(database, settings_at(home)) as service:
        await ready(service)
    with database.connect() as connection:
        write_papers(connection, [PaperRecord("p:1", is_prefixed=True, title="Snails", abstract="Slow.")])
    (folder,) = root.glob("*-0")
    lock = FolderLock(folder / "lock")
    assert lock.acquire()
    try:
        with database.connect(autocommit=True) as connection, pytest.raises(PartFailed, match="is stale"):
            check_word_index(connection, root, stale_s=-1)
    finally:
        lock.release()


def test_a_damaged_word_index_is_named(database, home):
    async def make():
        async with SearchService.open(database, settings_at(home)) as service:
            await ready(service)

    asyncio.run(make())
    for path in (home / "word-index").rglob("*.store"):
        path.write_bytes(b"x" * path.stat().st_size)
    with database.connect(autocommit=True) as connection, pytest.raises(PartFailed, match="is damaged"):
        check_word_index(connection, home / "word-index")


def test_a_database_that_is_not_there_is_a_finding(tmp_path):
    report = Report()
    database = Database(DatabaseUrl(conninfo="host=127.0.0.1 port=1 dbname=x"))

    def connect():
        with database.connect():
            pass

    report.run("database", connect)
    assert "does not answer" in report.findings[0].what
    report.run("raw", lambda: psycopg.connect("host=127.0.0.1 port=1"))
    assert not report.findings[1].is_ok
