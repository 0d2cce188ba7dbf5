"""A corpus comes back whole from seed files, store and shards, however often the rebuild is killed."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from brain.rebuild_progress import Stages, describe
from brain.rebuild_steps import run
from corpus import receipt
from corpus.errors import UsageError
from corpus.receipt_compare import compare
from corpus.vectors import export_vectors
from ingest.topics import export_seeds
from tests.hostloss.support import make_corpus

EXACT = (
    "SELECT paper_id, kind, is_prefixed, title, abstract, text, text_sha256, authors, year, published_on, venue, url, n_citations, velocity, tldr, "
    "licence, is_retracted, mark, raw, provenance, (SELECT o.paper_id FROM paper o WHERE o.paper_pk = p.same_as) AS original, "
    "(SELECT array_agg(kind || ':' || value ORDER BY kind, value) FROM paper_identifier i WHERE i.paper_pk = p.paper_pk), "
    "(SELECT array_agg(t.name ORDER BY t.name) FROM paper_topic JOIN topic t USING (topic_id) WHERE paper_pk = p.paper_pk), "
    "(SELECT array_agg((sha256, file_name, source_url, licence, content_type, n_bytes, n_pages, verdict, reason, text_sha256, is_cut)::text ORDER BY sha256) FROM document d WHERE d.paper_pk = p.paper_pk), "
    "(SELECT array_agg((part, ordinal, char_start, char_end, section, page_from, page_to, text)::text ORDER BY part, document_id, char_start) FROM passage s WHERE s.paper_pk = p.paper_pk) "
    "FROM paper p ORDER BY p.paper_id"
)
OTHERS = (
    "SELECT name, title, description, queries, meta FROM topic ORDER BY 1", "SELECT text_sha256, embedding::text FROM passage_embedding ORDER BY 1",
    "SELECT text_sha256, embedding::text FROM paper_embedding ORDER BY 1", "SELECT day, n_papers, by_topic FROM daily_count",
    "SELECT one, other FROM apart",
    "SELECT url, outcome, reason FROM fetch_attempt", "SELECT name, value, evidence FROM setting WHERE name NOT IN ('instance', 'functions', 'rebuild') ORDER BY 1",
    "SELECT a.paper_id, b.paper_id, source FROM citation c JOIN paper a ON a.paper_pk = citing_pk JOIN paper b ON b.paper_pk = cited_pk",
    "SELECT kind, state, item_ids FROM job",
)  # fmt: skip


def everything(database):
    with database.connect() as connection:
        return [connection.execute(query).fetchall() for query in (EXACT, *OTHERS)]


def take(database):
    with database.connect(autocommit=True) as connection:
        return receipt.take(connection)


def saved(database, folder):
    """A corpus, its seed files, shards and receipt."""
    settings = make_corpus(database, folder)
    with database.connect(autocommit=True) as connection:
        export_seeds(connection, settings.seeds_dir)
        export_vectors(connection, folder / "vectors")
        receipt.write(receipt.take(connection), settings.seeds_dir)
    return settings


def rebuilt(settings, address, folder, **values):
    from corpus.database import Database

    with Stages() as stages:
        outcome = run(settings, db=address, vectors=folder / "vectors", is_offline=True, progress=stages, **values)
    return outcome, Database.at(address, settings.home_dir)


def test_everything_comes_back_to_the_letter_and_a_second_run_changes_nothing(database, empty, tmp_path):
    settings = saved(database, tmp_path)
    outcome, new = rebuilt(settings, empty, tmp_path)
    assert outcome.comparison is not None
    assert outcome.comparison.to_json()["is_equal"], outcome.comparison.to_json()
    assert outcome.n_queued == 0
    assert outcome.report.n_waiting == 2
    before = everything(database)
    assert len(before[0]) > 8
    assert [row for row in before[0] if row[20]], "the corpus holds no copy"
    assert everything(new) == before
    with new.connect() as connection:
        index = connection.execute(
            "SELECT count(*) FROM pg_index WHERE indisvalid AND indexrelid::regclass::text LIKE '%%hnsw%%'"
        ).fetchone()
        assert index == (2,)
        connection.execute("UPDATE setting SET updated_at = clock_timestamp() WHERE name = 'rebuild'")
    again, _ = rebuilt(settings, empty, tmp_path)
    assert again.comparison is not None
    assert again.comparison.is_equal
    assert again.report.papers.n_changed == 0
    assert everything(new) == before
    first = {path.name: path.read_bytes() for path in settings.seeds_dir.iterdir()}
    with new.connect(autocommit=True) as connection:
        export_seeds(connection, settings.seeds_dir)
    assert {path.name: path.read_bytes() for path in settings.seeds_dir.iterdir()} == first


def test_what_is_missing_is_named(database, empty, tmp_path):
    settings = saved(database, tmp_path)
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "store").mkdir()
    for shard in (tmp_path / "vectors").iterdir():
        shard.unlink()
    outcome, _ = rebuilt(settings, empty, tmp_path)
    assert outcome.comparison is not None
    missing = outcome.comparison.missing
    assert {document["file_name"] for document in missing.documents} == {
        "snails.pdf",
        "snails-again.pdf",
        "bees.pdf",
        "broken.pdf",
        "note.md",
    }
    assert missing.papers == []
    assert missing.passages
    assert missing.embeddings
    assert outcome.n_queued > 0
    assert {each.sha256 for each in outcome.report.absent} == {document["sha256"] for document in missing.documents}


def test_killed_at_random_moments_it_goes_on_where_it_was(database, empty, tmp_path):
    settings = saved(database, tmp_path)
    words = [
        sys.executable,
        "-m",
        "brain.cli",
        "rebuild",
        "--vectors",
        str(tmp_path / "vectors"),
        "--offline",
        "--db",
        empty,
    ]
    env = {
        **os.environ,
        "BRAIN_HOME": str(settings.home),
        "BRAIN_SEEDS": str(settings.seeds),
        "BRAIN_STORE": settings.store,
        "BRAIN_ENCODER": "hashing",
    }
    chance = random.Random(7)
    n_killed = 0
    for _ in range(10):
        child = subprocess.Popen(
            words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        try:
            child.wait(0.6 + chance.random() * 3)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            n_killed += 1
        assert child.stderr is not None
        child.stderr.close()
        child.wait()
    began = time.monotonic()
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "equal" in done.stdout
    assert n_killed > 0
    assert time.monotonic() - began < 60
    from corpus.database import Database

    assert everything(Database.at(empty, settings.home_dir))[0] == everything(database)[0]


def test_a_database_that_somebody_filled_is_refused(database, tmp_path):
    settings = saved(database, tmp_path)
    with pytest.raises(UsageError, match="holds papers already"):
        rebuilt(settings, database.url.conninfo, tmp_path)
    assert compare(receipt.read(settings.seeds_dir), take(database)).is_equal


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (("papers", 500, 2000, 5.0), "papers: 500 of 2000, 100/s, about 15 s left"),
        (("texts", 10, 1000, 60.0), "texts: 10 of 1000, 10.0/min, about 99 min left"),
        (("texts", 10, None, 10.0), "texts: 10, 1/s"), (("x", 0, 10, 0.0), "x: 0 of 10"),
    ],
)  # fmt: skip
def test_progress_says_how_long_the_rest_takes(values, said):
    assert describe(*values) == said
