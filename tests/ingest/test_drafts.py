"""Texts that were read anew begin to serve whatever embeds them, and take nothing away that somebody else wrote."""

import threading
from dataclasses import replace

import pytest

from corpus import vectors
from corpus.shards import write_shard
from encoders.hashing import HASHING, HashingEncoder
from ingest.redraft import store_reextraction
from ingest.text.result import EXTRACTOR_VERSION
from tests.farm.support import check_whole, drain, one
from tests.ingest.support import FILE, add, older, run, served, today


def import_drafts(connection, tmp_path, without="no such word"):
    """Import the embeddings of the drafts' passages that do not hold the word, as another machine has made them."""
    rows = connection.execute(
        "SELECT text_sha256, text FROM passage_draft WHERE position(%s IN text) = 0", [without]
    ).fetchall()
    path = tmp_path / "drafts.npz"
    write_shard(path, HASHING.identity(), [row[0] for row in rows], HashingEncoder().encode([row[1] for row in rows]))
    return vectors.import_vectors(connection, [path])


@pytest.mark.parametrize("most_jobs", [vectors._MOST_JOBS, 0])
async def test_imported_embeddings_let_a_draft_serve_without_any_worker(
    database, connection, store, tmp_path, monkeypatch, most_jobs
):
    """However long the queue is."""
    add(connection, store, tmp_path)
    await drain(database)
    run(database, store)
    monkeypatch.setattr(vectors, "_MOST_JOBS", most_jobs)
    report = import_drafts(connection, tmp_path)
    assert (report.n_passages, report.n_kept) == (1, 0)
    assert served(connection, "Quickword") == (True, True)
    await drain(database)
    check_whole(database)


async def test_words_of_a_file_that_is_not_cut_yet_change_with_its_text(database, connection, store, tmp_path):
    add(connection, store, tmp_path, made=older(title="A Stvdy of Snai1s"))
    assert run(database, store).n_changed == 1
    assert connection.execute("SELECT title, text FROM paper").fetchone() == ("A Study of Snails",) * 2
    assert connection.execute("SELECT text FROM passage WHERE part = 'abstract'").fetchall() == [("A Study of Snails",)]
    await drain(database)
    assert served(connection, "Quickword") == (True, True)
    check_whole(database)


async def test_words_that_are_written_while_a_draft_begins_to_serve_stay(database, connection, store, tmp_path):
    add(connection, store, tmp_path, made=older(title="A Stvdy of Snai1s"))
    await drain(database)
    run(database, store)
    thread = threading.Thread(target=lambda: import_with_own_connection(database, tmp_path))
    with database.connect() as writer:
        writer.execute(
            "UPDATE paper SET title = 'Mine', text = 'Mine', text_sha256 = sha256('Mine'), provenance = '{}'"
        )
        thread.start()
        waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        while thread.is_alive() and connection.execute(waits).fetchone() == (0,):
            pass
    thread.join()
    assert served(connection, "Quickword") == (True, True)
    assert connection.execute("SELECT title, text FROM paper").fetchone() == ("Mine", "Mine")


def import_with_own_connection(database, tmp_path):
    with database.connect(autocommit=True) as other:
        import_drafts(other, tmp_path)


async def test_what_is_embedded_of_a_draft_serves_the_next_one(database, connection, store, tmp_path):
    """It is drawn up again before all of it was embedded: only what differs is left to do."""
    made = older()
    document_id = add(
        connection, store, tmp_path, made=replace(made, text=made.text.replace("noon", "moon"), text_sha256="")
    )
    await drain(database)
    first = replace(today(), text=FILE.replace("Quickword", "Fastword"), text_sha256="")
    with connection.transaction():
        assert store_reextraction(connection, document_id, first) == "waiting"
    assert import_drafts(connection, tmp_path, without="Fastword").n_passages > 2
    assert run(database, store, is_all=True).n_waiting == 1
    missing = (
        "SELECT text FROM passage_draft p WHERE NOT EXISTS"
        " (SELECT FROM passage_embedding e WHERE e.text_sha256 = p.text_sha256)"
    )
    ((text,),) = connection.execute(missing).fetchall()
    assert "Quickword" in text
    await drain(database)
    assert one(database, "SELECT extractor_version FROM document") == EXTRACTOR_VERSION
    check_whole(database)
