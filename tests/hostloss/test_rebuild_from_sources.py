"""Database and store are lost: full texts come back from their sources, and every other one is listed by name."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from brain.rebuild_progress import Stages
from brain.rebuild_steps import run
from corpus import receipt
from corpus.database import Database
from ingest.pipeline import Wanted
from ingest.store import Store
from ingest.topics import export_seeds
from tests.acquire.internet import ARXIV, Internet, serving
from tests.acquire.support import LISTED, TOPIC, OrderedClock, make_fetcher, make_ingest, write_topic
from tests.farm.support import drain

pytestmark = pytest.mark.shared


def test_full_texts_come_back_from_the_sources_and_the_others_are_named(database, empty, tmp_path):
    write_topic(tmp_path, ids=LISTED[:1], queries=())
    files = tmp_path / "files"
    files.mkdir()
    # One that arXiv offers too, and one that no source has.
    others = [paper for own, paper in ARXIV.items() if own != LISTED[0]]
    known = min(others, key=lambda paper: paper.path.stat().st_size)
    shutil.copy(known.path, files / "from-a-folder.pdf")
    (files / "note.md").write_text("# A note of our own\n\n" + "Words about moss. " * 40)
    with serving(Internet()) as internet:
        made = make_ingest(database, tmp_path, internet)
        made.run(Wanted(topics=[TOPIC], pdfs=[files], files=[files / "note.md"]))
        settings = made.settings
        assert asyncio.run(drain(database)) == 0
        with database.connect(autocommit=True) as connection:
            export_seeds(connection, settings.seeds_dir)
            receipt.write(receipt.take(connection), settings.seeds_dir)
        shutil.rmtree(tmp_path / "store")
        clock = OrderedClock()
        make = make_fetcher(clock)
        with Stages() as stages:
            outcome = run(
                settings, db=empty, vectors=None, is_offline=False, progress=stages, make_fetcher=make, clock=clock
            )
    assert outcome.comparison is not None
    missing = outcome.comparison.missing
    assert [document["file_name"] for document in missing.documents] == ["note.md"]
    assert missing.papers == []
    assert [each.file_name for each in outcome.report.absent] == ["note.md"]
    assert [line.partition(" ")[0] for line in outcome.report.problems] == ["note.md"]
    assert outcome.report.n_documents == 2
    store = Store(tmp_path / "store")
    with Database.at(empty, settings.home_dir).connect() as connection:
        rows = connection.execute("SELECT sha256, verdict FROM document").fetchall()
    assert [verdict for _, verdict in rows] == ["ok"] * 2
    assert all(store.local_path(sha256.hex()).exists() for sha256, _ in rows)
