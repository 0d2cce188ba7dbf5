"""Brings a corpus back into an empty database, out of seed files and the store: papers first, then files, then their texts.

Every step may be broken off and run again: it finds out from the database what is left. Nothing is decided anew; see
`ingest.stored`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psycopg import Connection

from corpus.database import Database
from corpus.errors import InputError, StoreError, UsageError
from corpus.texts import storable
from ingest.decisions import read_decisions, restore_citations, restore_refusals, restore_settings
from ingest.documents import update_document
from ingest.extraction import default_children
from ingest.papers import BATCH, Written, lock_papers, write_abstracts
from ingest.pipeline import Progress, Quiet
from ingest.seeds import SeedFile, list_seed_files, read_seed_file
from ingest.store import Store
from ingest.stored import (
    StoredDocument,
    StoredPaper,
    is_stored,
    read_stored,
    write_documents,
    write_same_as,
    write_stored,
)
from ingest.text.extract import ExtractorPool
from ingest.text.result import Extraction
from ingest.topics import write_topic
from sql import files

SQL = files.queries("rebuild")
_READ_AT_ONCE = 64


@dataclass(slots=True)
class Rebuilt:
    """What came back. `absent` are full texts that the store has not; `waiting` entries that were never acquired."""

    papers: Written = field(default_factory=Written)
    n_topics: int = 0
    n_documents: int = 0
    n_read: int = 0
    n_citations: int = 0
    n_waiting: int = 0
    absent: list[StoredDocument] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def begin(connection: Connection[Any], seeds: Path) -> bool:
    """Refuse a database that something else has filled; remember that this one is being rebuilt.

    True when a rebuild went through here before.
    Raises UsageError: a rebuild writes what the seed files say, which would undo what was changed since.
    """
    row = connection.execute(SQL["is_known_to_rebuild"]).fetchone()
    assert row is not None
    state, has_papers, n_later = row
    is_open = state is not None and state.get("state") == "running"
    if has_papers and not is_open and (state is None or n_later):
        raise UsageError(
            "The database holds papers already; a rebuild is for an empty one.",
            mend="Give an empty database with --db, or bring papers in with `brain ingest`.",
        )
    connection.execute(SQL["set_state"], {"value": json.dumps({"state": "running", "seeds": str(seeds)})})
    return has_papers and not is_open


def end(connection: Connection[Any], *, is_whole: bool) -> None:
    """Remember that the rebuild went through."""
    connection.execute(SQL["set_state"], {"value": json.dumps({"state": "done", "is_whole": is_whole})})


@dataclass(slots=True)
class Rebuild:
    """One run over one folder of seed files; the connection of each step is its own."""

    database: Database
    store: Store
    seeds: Path
    progress: Progress = field(default_factory=Quiet)
    report: Rebuilt = field(default_factory=Rebuilt)

    def write_papers(self) -> list[StoredDocument]:
        """Papers with their topics, marks and identifiers: found by their words from now on. Returns their files."""
        decisions = read_decisions(self.seeds)
        documents: dict[tuple[str, str], StoredDocument] = {}
        copies: dict[str, str] = {}
        with self.database.connect(autocommit=True) as connection:
            restore_settings(connection, decisions)
            for path in list_seed_files(self.seeds):
                seed = read_seed_file(path)
                self.report.problems += [str(error) for error in seed.errors]
                self.report.n_topics += seed.topic is not None
                write_topic(connection, seed)
                self.progress.begin(f"papers of {seed.topic or 'no topic'}", len(seed.entries))
                for batch in _batches(self._stored(seed)):
                    self.report.papers.add(write_stored(connection, batch, seed.topic))
                    self.progress.step(len(batch))
                    documents |= {(d.paper_id, d.sha256): d for paper in batch for d in paper.documents}
                    copies |= {p.record.paper_id: p.same_as for p in batch if p.same_as is not None}
            write_same_as(connection, sorted(copies.items()))
            restore_refusals(connection, decisions)
            self.report.n_citations = restore_citations(connection, self.seeds)
        return list(documents.values())

    def _stored(self, seed: SeedFile) -> Iterator[StoredPaper]:
        for entry in seed.entries:
            if not is_stored(entry):
                self.report.n_waiting += 1
                continue
            try:
                yield read_stored(entry)
            except InputError as error:
                self.report.problems.append(f"{seed.path}: {error}")

    def write_documents(self, documents: Iterable[StoredDocument]) -> None:
        """Rows of the files that the store has; the others are `absent`."""
        wanted = list(documents)
        self.progress.begin("files of the store", len(wanted))
        there = set(self.store.iter_sha256()) if wanted else set()
        found = [each for each in wanted if each.sha256 in there]
        self.report.absent = [each for each in wanted if each.sha256 not in there]
        self.report.n_documents = len(found)
        with self.database.connect(autocommit=True) as connection:
            for at in range(0, len(found), BATCH):
                batch = found[at : at + BATCH]
                write_documents(connection, batch, self._sizes(batch))
                self.progress.step(len(batch))

    def _sizes(self, documents: Iterable[StoredDocument]) -> dict[str, int]:
        unknown = [each.sha256 for each in documents if each.n_bytes is None]
        return {sha256: self.store.local_path(sha256).stat().st_size for sha256 in unknown}

    def read_documents(self, *, n_children: int = 0, after_batch: Callable[[], None] = lambda: None) -> None:
        """Read every file that has not been read yet; `after_batch` is called now and then, to cut what was read."""
        width = n_children or default_children()
        with (
            self.database.connect(autocommit=True) as connection,
            ExtractorPool(width) as pool,
            ThreadPoolExecutor(width, thread_name_prefix="extract") as threads,
        ):
            left = connection.execute(SQL["list_unread"]).fetchall()
            self.progress.begin("texts out of files", len(left))
            running: dict[Future[Extraction], tuple[int, str]] = {}
            for document_id, sha256, name in left:
                try:
                    path = self.store.local_path(sha256)
                except StoreError as error:
                    self.report.problems.append(f"{name or sha256}: {error}")
                    continue
                running[threads.submit(pool.extract, path, name=name or path.name)] = (document_id, name or sha256)
                if len(running) > width:
                    self._finish(connection, running, after_batch)
            while running:
                self._finish(connection, running, after_batch)
            after_batch()

    def _finish(
        self,
        connection: Connection[Any],
        running: dict[Future[Extraction], tuple[int, str]],
        after_batch: Callable[[], None],
    ) -> None:
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            document_id, name = running.pop(future)
            try:
                extraction = future.result()
                with connection.transaction():
                    _store_read(connection, document_id, extraction)
            except Exception as error:  # one file must not end the rebuild
                self.report.problems.append(f"{name}: {type(error).__name__}: {error}")
                continue
            self.report.n_read += 1
            self.progress.step(note=f"{name} {extraction.verdict}")
            if self.report.n_read % _READ_AT_ONCE == 0:
                after_batch()


def _store_read(connection: Connection[Any], document_id: int, extraction: Extraction) -> None:
    """Write what extraction made of a file of a known paper: its text, and the job that cuts it."""
    lock_papers(connection)
    row = connection.execute(SQL["lock_unread"], [document_id]).fetchone()
    if row is None:
        return
    paper_pk, reason, same_as, title = row
    update_document(connection, document_id, extraction)
    if reason and not extraction.reason:
        connection.execute("UPDATE document SET reason = %s WHERE document_id = %s", [reason, document_id])
    if not extraction.is_ok or same_as is not None:
        return
    if not title and extraction.title:
        _name_paper(connection, paper_pk, extraction)
    connection.execute(SQL["enqueue_chunk"], {"document_id": document_id})


def _name_paper(connection: Connection[Any], paper_pk: int, extraction: Extraction) -> None:
    """A paper that nobody could name gets the title that today's reading finds."""
    from corpus.texts import paper_text, text_sha256
    from ingest.files import SQL as DOCUMENTS

    title, abstract = (storable(text)[0] if text else None for text in (extraction.title, extraction.abstract))
    text = paper_text(title, abstract)
    if text is None:
        return
    values = {
        "title": title,
        "abstract": abstract,
        "text": text,
        "text_sha256": text_sha256(text),
        "year": None,
        "url": None,
    }
    connection.execute(DOCUMENTS["update_paper_from_document"], {**values, "paper_pk": paper_pk})
    write_abstracts(connection, [(paper_pk, text)], old_hashes=[], priority=100)


def _batches(papers: Iterator[StoredPaper]) -> Iterator[list[StoredPaper]]:
    batch: list[StoredPaper] = []
    for paper in papers:
        batch.append(paper)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def is_seed_folder(folder: Path) -> bool:
    """Whether anything can be rebuilt from the folder."""
    return folder.is_dir() and os.access(folder, os.R_OK) and bool(list_seed_files(folder))
