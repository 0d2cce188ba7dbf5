"""Seed files into the database: their topics, papers, marks and files; what is left is asked of sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from psycopg import Connection

from corpus.database import Database
from corpus.errors import InputError
from ingest.acquire.run import TopicWork
from ingest.files import register_file
from ingest.papers import BATCH, PRIORITY_NEW, Written, write_papers
from ingest.records import PaperRecord
from ingest.runs import Progress, Report, Wanted
from ingest.seeds import SeedFile, SeedPaper, read_entry
from ingest.store import Store
from ingest.topics import SQL as TOPICS
from ingest.topics import write_topic


@dataclass(slots=True)
class Taken:
    """What a seed file brought: what its topic asks of sources, and addresses that no paper stands for yet."""

    seed: SeedFile
    work: TopicWork
    urls: list[tuple[str, Sequence[str]]] = field(default_factory=list)


def ingest_seed(
    database: Database, store: Store, progress: Progress, seed: SeedFile, wanted: Wanted, report: Report
) -> Taken:
    """Write what a topic's file says: topic, papers, marks, files. Idempotent; nothing is asked of any source."""
    report.problems += [str(error) for error in seed.errors]
    base = seed.path.parent.parent
    read: list[SeedPaper] = []
    for entry in seed.entries[: wanted.limit]:
        try:
            read.append(read_entry(entry, base))
        except InputError as error:
            report.problems.append(f"{seed.path}: {error}")
    topics = (seed.topic,) if seed.topic else ()
    records = [_in_topic(p.record, topics) for p in read if p.record is not None and not p.entry.get("is_wordless")]
    progress.begin(f"topic {seed.topic or 'unsorted'}", len(read))
    with database.connect(autocommit=True) as connection:
        if seed.topic is not None:
            write_topic(connection, seed)
        for at in range(0, len(records), BATCH):
            with connection.transaction():
                report.papers.add(_write_adding_topics(connection, records[at : at + BATCH]))
            progress.step(len(records[at : at + BATCH]))
        for paper in read:
            if paper.record is not None and paper.mark:
                connection.execute(TOPICS["set_mark"], {"paper_id": paper.record.paper_id, "mark": paper.mark})
        if wanted.has_full_texts:
            _register_seeded(connection, store, read, topics, report)
        listed: set[int] = set()
        known: set[int] = set()
        for paper in read:
            if (pk := pk_of(connection, paper.record)) is not None:
                (known if paper.entry.get("is_stored") is True else listed).add(pk)
        titles = [p.title for p in read if p.title and p.record is None and p.path is None and p.url is None]
        queries = [q for q in seed.meta.get("queries") or () if isinstance(q, str) and q.strip()]
        since = _day(seed.meta.get("fetched_at"))
        work = TopicWork(
            seed.topic, sorted(listed), sorted(known - listed), titles, queries if wanted.has_searches else [], since
        )
        urls: list[tuple[str, Sequence[str]]] = [
            (paper.url, topics) for paper in read
            if paper.record is None and paper.url is not None and not _has_url(connection, paper.url)
        ]  # fmt: skip
    return Taken(seed, work, urls)


def _register_seeded(
    connection: Connection[Any],
    store: Store,
    read: Sequence[SeedPaper],
    topics: Sequence[str],
    report: Report,
) -> None:
    """Files that entries name, and files that the store has already by their hash."""
    for paper in read:
        path = paper.path
        if path is None and paper.sha256 is not None and store.has(paper.sha256):
            path = store.local_path(paper.sha256)
        if path is None:
            continue
        try:
            record = paper.record or _record_of_file(store, paper, path)
            if record is not paper.record:
                with connection.transaction():
                    write_papers(connection, [record])
            pk = pk_of(connection, record)
            registered = register_file(
                connection,
                store,
                path,
                topics=topics,
                paper_pk=pk,
                source_url=paper.url,
                priority=PRIORITY_NEW,
            )
        except InputError as error:
            report.problems.append(str(error))
            continue
        report.n_files += 1
        report.n_new_files += registered.is_new


def _record_of_file(store: Store, paper: SeedPaper, path: Path) -> PaperRecord:
    """What an entry without identifier says of the paper that its file is."""
    try:
        sha256 = store.put_file(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.", file=str(path)) from error
    record = read_entry({**paper.entry, "id": f"file:{sha256}", "sha256": sha256}, path.parent).record
    assert record is not None
    return record


def _in_topic(record: PaperRecord, topics: tuple[str, ...]) -> PaperRecord:
    return replace(record, topics=topics or None)


def _write_adding_topics(connection: Connection[Any], records: Sequence[PaperRecord]) -> Written:
    """Write papers of one topic's file; topics that other files gave them stay."""
    names = {r.paper_id: r.topics for r in records}
    written = write_papers(connection, [replace(r, topics=None) for r in records])
    topics = sorted({name for found in names.values() for name in found or ()})
    if topics:
        connection.execute(TOPICS["add_papers_to_topic"], {"paper_ids": list(names), "names": topics})
    return written


def pk_of(connection: Connection[Any], record: PaperRecord | None) -> int | None:
    """The paper that a record means."""
    if record is None:
        return None
    row = connection.execute(TOPICS["find_pk"], {"paper_id": record.paper_id}).fetchone()
    return row[0] if row else None


def _day(text: object) -> date | None:
    try:
        return date.fromisoformat(str(text)[:10])
    except ValueError:
        return None


def _has_url(connection: Connection[Any], url: str) -> bool:
    row = connection.execute("SELECT 1 FROM document WHERE source_url = %s LIMIT 1", [url]).fetchone()
    return row is not None
