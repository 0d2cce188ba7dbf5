"""Texts that an older extractor made are made anew; the old ones serve until the new ones are embedded."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from corpus import receipt
from corpus.errors import UsageError
from corpus.passages import Section
from ingest.redraft import store_reextraction
from ingest.reextract import list_outdated, reextract
from ingest.text.result import EXTRACTOR_VERSION, refuse
from search_server.service import SearchService
from tests.farm.support import check_whole, drain, one
from tests.ingest.support import FILE, add, check_slices, older, run, served, today
from tests.search.corpus import WORDS, in_step, params, ready, settings_at


async def test_the_old_text_is_found_until_the_new_one_is_embedded(database, connection, store, tmp_path, home):
    add(connection, store, tmp_path)
    await drain(database)
    async with SearchService.open(database, settings_at(home)) as service:
        await ready(service)
        run(database, store)
        for right, wrong in (("Staleword", "Quickword"), ("Quickword", "Staleword")):
            await in_step(service)
            (hit,) = (await service.search(params(right, **WORDS)))["hits"]
            assert right in hit["passage"]["text"]
            assert (await service.search(params(wrong, **WORDS)))["hits"] == []
            (hit,) = (await service.search(params(f"{right} ends it", weights="passage_vector:1")))["hits"]
            assert wrong not in hit["passage"]["text"]
            await drain(database)


async def test_the_old_text_serves_until_the_new_one_is_embedded(database, connection, store, tmp_path):
    add(connection, store, tmp_path)
    await drain(database)
    kept = dict(
        connection.execute("SELECT passage_id, text FROM passage WHERE position('Staleword' IN text) = 0").fetchall()
    )
    before = receipt.take(connection)
    report = run(database, store)
    assert (report.n_waiting, report.n_drafts, report.problems) == (1, 1, [])
    assert served(connection, "Staleword") == (True, True)
    assert served(connection, "Quickword") == (False, False)
    assert receipt.take(connection).papers == before.papers
    # Only what changed is queued: one passage of many.
    assert one(database, "SELECT sum(n_items) FROM job") == 1
    assert (again := run(database, store)).n_wanted == 0
    assert again.n_drafts == 1
    await drain(database)
    assert served(connection, "Staleword") == (False, False)
    assert served(connection, "Quickword") == (True, True)
    assert dict(connection.execute("SELECT passage_id, text FROM passage").fetchall()).items() >= kept.items()
    check_slices(connection)
    check_whole(database)
    assert one(database, "SELECT extractor_version FROM document") == EXTRACTOR_VERSION
    assert (
        one(database, "SELECT count(*) FROM document_draft") + one(database, "SELECT count(*) FROM passage_draft") == 0
    )
    assert run(database, store).n_wanted == 0
    # A corpus that was read by today's extractor from the beginning is the same one.
    after = receipt.take(connection)
    connection.execute("DELETE FROM paper")
    connection.execute("DELETE FROM passage_embedding")
    connection.execute("DELETE FROM paper_embedding")
    add(connection, store, tmp_path, made=today())
    await drain(database)
    assert receipt.take(connection).papers == after.papers


async def test_a_change_whose_words_are_known_serves_at_once(database, connection, store, tmp_path):
    """Only the pages differ: no text is new, so nothing waits for a worker."""
    add(connection, store, tmp_path, made=replace(today(), page_starts=(0, 500), n_pages=2, extractor_version=1))
    await drain(database)
    ids = connection.execute("SELECT array_agg(passage_id ORDER BY passage_id) FROM passage").fetchone()
    assert run(database, store).n_changed == 1
    assert one(database, "SELECT count(*) FROM job") == 0
    assert one(database, "SELECT count(*) FROM passage WHERE page_from IS NOT NULL") == 0
    assert connection.execute("SELECT array_agg(passage_id ORDER BY passage_id) FROM passage").fetchone() == ids


async def test_the_same_text_is_marked_as_read_and_nothing_else(database, connection, store, tmp_path):
    add(connection, store, tmp_path, made=replace(today(), extractor_version=1))
    await drain(database)
    n_changes = one(database, "SELECT count(*) FROM change")
    assert run(database, store).n_same == 1
    assert one(database, "SELECT count(*) FROM change") == n_changes
    assert one(database, "SELECT extractor_version FROM document") == EXTRACTOR_VERSION


async def test_title_and_abstract_of_the_file_change_with_it(database, connection, store, tmp_path):
    add(connection, store, tmp_path, made=older(title="A Stvdy of Snai1s"))
    await drain(database)
    assert run(database, store).n_waiting == 1
    assert one(database, "SELECT title FROM paper") == "A Stvdy of Snai1s"
    await drain(database)
    assert connection.execute("SELECT title, text FROM paper").fetchone() == ("A Study of Snails",) * 2
    assert connection.execute("SELECT text FROM passage WHERE part = 'abstract'").fetchall() == [("A Study of Snails",)]
    check_whole(database)


async def test_a_title_that_somebody_stated_stays(database, connection, store, tmp_path):
    document_id = add(connection, store, tmp_path)
    connection.execute(
        "UPDATE paper SET title = 'Mine', text = 'Mine', text_sha256 = sha256('Mine'), provenance = '{}'"
    )
    await drain(database)
    run(database, store)
    await drain(database)
    assert connection.execute("SELECT title FROM paper").fetchone() == ("Mine",)
    assert (
        one(database, "SELECT extractor_version FROM document WHERE document_id = %s", [document_id])
        == EXTRACTOR_VERSION
    )


async def test_what_cannot_be_read_today_keeps_its_text_and_is_named(database, connection, store, tmp_path):
    add(connection, store, tmp_path, "gone.txt", FILE + "\n\nOne more.")
    kept_id = add(connection, store, tmp_path)
    await drain(database)
    store.remove(one(database, "SELECT encode(sha256, 'hex') FROM document WHERE file_name = 'gone.txt'"))
    report = run(database, store)
    assert len(report.missing) == 1
    assert "gone.txt" in report.missing[0]
    with connection.transaction():
        assert store_reextraction(connection, kept_id, refuse("damaged", "torn"), is_all=True) == "kept"
    await drain(database)
    assert served(connection, "Staleword") == (True, True)
    warnings = "SELECT warnings, extractor_version FROM document WHERE document_id = %s"
    assert connection.execute(warnings, [kept_id]).fetchone() == (["older_text:damaged"], EXTRACTOR_VERSION)
    assert one(database, "SELECT count(*) FROM document_draft") == 0
    check_whole(database)


async def test_a_file_that_was_refused_is_read_today(database, connection, store, tmp_path):
    add(connection, store, tmp_path, made=replace(refuse("damaged", "could not"), extractor_version=1))
    assert run(database, store).n_changed == 1
    await drain(database)
    assert served(connection, "Quickword") == (True, True)
    check_whole(database)


async def test_scans_are_read_once_recognition_is_there(database, connection, store, tmp_path):
    document_id = add(connection, store, tmp_path, made=refuse("needs_ocr", "the pages are images"))
    assert list_outdated(connection) == []
    (scan,) = list_outdated(connection, is_ocr=True)
    assert reextract(database, store, [scan], is_ocr=True, n_children=1).n_changed == 1
    assert one(database, "SELECT verdict FROM document WHERE document_id = %s", [document_id]) == "ok"
    assert list_outdated(connection, is_ocr=True) == []


async def test_a_text_that_is_not_cut_yet_is_replaced(database, connection, store, tmp_path):
    add(connection, store, tmp_path)
    assert run(database, store).n_changed == 1
    await drain(database)
    assert served(connection, "Quickword") == (True, True)
    assert served(connection, "Staleword") == (False, False)
    check_whole(database)


async def test_a_passage_that_cannot_be_embedded_does_not_hold_the_text_up(database, connection, store, tmp_path):
    add(connection, store, tmp_path)
    await drain(database)
    run(database, store)
    job = connection.execute("SELECT job_id, lease_token FROM job_claim('embed_passages', 1, NULL, 1, 60)").fetchone()
    assert job
    assert connection.execute("SELECT job_fail(%s, %s, 'poison', 'no', NULL)", job).fetchall() == [(job[0],)]
    assert served(connection, "Quickword") == (True, True)
    # Sent back to the queue it is embedded under the same number.
    connection.execute("UPDATE job SET state = 'waiting', n_attempts = 0")
    await drain(database)
    check_whole(database)


async def test_two_nodes_that_embed_its_last_passages_at_once_let_it_serve(database, connection, store, tmp_path):
    """Neither may miss the other's embeddings: whoever comes second sees both."""
    made = older()
    add(connection, store, tmp_path, made=replace(made, text=made.text.replace("noon", "moon"), text_sha256=""))
    await drain(database)
    run(database, store)
    ids = one(database, "SELECT array_agg(passage_id ORDER BY passage_id) FROM passage_draft p WHERE NOT EXISTS"
              " (SELECT FROM passage_embedding e WHERE e.text_sha256 = p.text_sha256)")  # fmt: skip
    assert len(ids) > 2
    connection.execute("DELETE FROM job")
    for part in (ids[::2], ids[1::2]):
        connection.execute("SELECT job_enqueue_passages(1, %s, 100)", [part])
    vector = "[" + ",".join(["1"] + ["0"] * 767) + "]"
    end = (
        "SELECT embed_complete('embed_passages', 1, NULL, ARRAY[%s::bigint], ARRAY[%s::uuid], 1, h.j, h.h, h.v, '{}', '{}', '{}', '{}', '{}')"
        " FROM (SELECT array_agg(%s::bigint) AS j, array_agg(text_sha256) AS h, array_agg(%s::halfvec) AS v FROM passage_draft WHERE passage_id = ANY (%s)) h"
    )
    claimed = connection.execute(
        "SELECT job_id, lease_token, item_ids FROM job_claim('embed_passages', 1, NULL, 2, 60)"
    ).fetchall()
    ended = []

    def other_node():
        job, token, items = claimed[1]
        with database.connect(autocommit=True) as other:
            ended.append(other.execute(end, [job, token, job, vector, items]).fetchall())

    thread = threading.Thread(target=other_node)
    with database.connect() as first:
        job, token, items = claimed[0]
        assert first.execute(end, [job, token, job, vector, items]).fetchall() == [(job,)]
        thread.start()
        waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        while thread.is_alive() and connection.execute(waits).fetchone() == (0,):
            pass
    thread.join()
    assert ended == [[(claimed[1][0],)]]
    assert one(database, "SELECT count(*) FROM document_draft") == 0
    assert served(connection, "noon") == (True, True)


async def test_another_encoder_that_begins_to_serve_takes_its_drafts_along(database, connection, store, tmp_path):
    add(connection, store, tmp_path)
    await drain(database)
    run(database, store)
    connection.execute(
        "INSERT INTO encoder (name, weights_sha256, max_tokens, state) VALUES ('other', 'x', 1, 'filling')"
    )
    connection.execute("SELECT encoder_partitions(2), job_enqueue_missing(2, 200)")
    connection.execute(
        "INSERT INTO passage_embedding SELECT DISTINCT 2, text_sha256, (SELECT embedding FROM passage_embedding LIMIT 1) FROM passage_any"
    )
    assert served(connection, "Quickword") == (False, False)
    connection.execute("SELECT encoder_activate(2)")
    assert served(connection, "Quickword") == (True, True)


async def test_a_draft_goes_when_it_is_drawn_up_again(database, connection, store, tmp_path):
    document_id = add(connection, store, tmp_path)
    await drain(database)
    wrong = older(FILE.replace("Quickword", "Fastword"), EXTRACTOR_VERSION)
    with connection.transaction():
        assert store_reextraction(connection, document_id, wrong) == "waiting"
        assert store_reextraction(connection, document_id, wrong) == "gone"
    assert run(database, store, is_all=True).n_waiting == 1
    await drain(database)
    assert served(connection, "Quickword") == (True, True)
    check_whole(database)


def test_only_what_was_asked_for(database, connection, store, tmp_path):
    add(connection, store, tmp_path)
    connection.execute("INSERT INTO topic (name) VALUES ('snails')")
    paper_id = one(database, "SELECT paper_id FROM paper")
    assert list_outdated(connection, topics=["snails"]) == []
    assert len(list_outdated(connection, papers=[paper_id])) == 1
    connection.execute("UPDATE document SET extractor_version = %s", [EXTRACTOR_VERSION + 1])
    assert list_outdated(connection) == []
    assert len(list_outdated(connection, is_all=True)) == 1
    with pytest.raises(UsageError, match="no topic 'slugs'"):
        list_outdated(connection, topics=["slugs"])
    with pytest.raises(UsageError, match="no paper 'doi:10.1/x'"):
        list_outdated(connection, papers=["doi:10.1/x"])


async def test_a_killed_run_goes_on_where_it_stopped(database, connection, store, tmp_path):
    for n in range(6):
        add(connection, store, tmp_path, f"{n}.txt", FILE.replace("valley", f"valley {n}."))
    await drain(database)
    env = {**os.environ, "BRAIN_STORE": store.url, "BRAIN_HOME": str(tmp_path / "home")}
    code = (
        "import sys, os, signal; import ingest.reextract as r; from corpus.database import Database; from corpus.dburl import DatabaseUrl;"
        "from ingest.store import Store; d = Database(DatabaseUrl(conninfo=sys.argv[1])); n = []\n"
        "def done(x):\n n.append(x)\n if len(n) == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        "with d.connect() as c: w = r.list_outdated(c)\n"
        "r.reextract(d, Store(sys.argv[2]), w, n_children=1, on_done=done)"
    )
    killed = subprocess.run([sys.executable, "-c", code, database.conninfo, store.url], env=env, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert one(database, "SELECT count(*) FROM document_draft") == 3
    report, _ = await asyncio.gather(asyncio.to_thread(run, database, store), drain(database))  # a worker is at it too
    assert (report.n_wanted, report.n_waiting) == (3, 3)
    await drain(database)
    assert served(connection, "Staleword") == (False, False)
    assert one(database, "SELECT count(*) FROM document WHERE extractor_version = %s", [EXTRACTOR_VERSION]) == 6
    check_slices(connection)
    check_whole(database)


def test_sections_decide_too(database, connection, store, tmp_path):
    """The same words under other headings are another cut: a section that is now a reference list makes no passages."""
    made = replace(today(), sections=(Section("references", "References", 0, len(today().text)),), extractor_version=1)
    add(connection, store, tmp_path, made=made)
    assert run(database, store).n_changed == 1
