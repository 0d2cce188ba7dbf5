"""`brain ingest`: what is asked for becomes papers, files are fetched and read, passages and embeddings are queued.

Every step is idempotent and leaves its state in the database: a run that is stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from psycopg import Connection

from corpus.database import Database
from corpus.errors import InputError
from corpus.settings import Settings
from ingest.extraction import run_extractions
from ingest.fetching import SQL as FETCH
from ingest.fetching import run_fetches
from ingest.files import PDF_SUFFIXES, TEXT_SUFFIXES, list_files, register_file
from ingest.jsonl import Line, iter_lines
from ingest.papers import BATCH, PRIORITY_BACKLOG, PRIORITY_NEW, Written, write_papers
from ingest.records import PaperRecord, record_from_row
from ingest.seeds import SeedFile, SeedPaper, get_seed_file, list_seed_files, read_entry, read_seed_file
from ingest.store import Store
from ingest.topics import SQL as TOPICS
from ingest.topics import write_topic


class Progress(Protocol):
    """What a run tells the person who waits."""

    def begin(self, what: str, total: int | None) -> None:
        """A stage begins; `total` is None where nobody knows."""
        ...

    def step(self, n: int = 1, note: str = "") -> None:
        """So much more of it is done."""
        ...


class Quiet:
    """Tells nothing."""

    def begin(self, what: str, total: int | None) -> None:
        """Ignore."""

    def step(self, n: int = 1, note: str = "") -> None:
        """Ignore."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one `brain ingest` was asked for."""

    topics: Sequence[str] = ()
    is_all_topics: bool = False
    pdfs: Sequence[Path] = ()
    files: Sequence[Path] = ()
    jsonl: Sequence[Path] = ()
    prefix: str | None = None
    limit: int | None = None
    has_full_texts: bool = True
    is_ocr: bool = False


@dataclass(slots=True)
class Report:
    """What became of it. `problems` are named by file and line; exit code 3 when there are any."""

    papers: Written = field(default_factory=Written)
    n_files: int = 0
    n_new_files: int = 0
    n_fetched: int = 0
    n_later: int = 0
    n_replaced_chars: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Ingest:
    """One run. Constructed with what it uses; `run` does everything in order."""

    database: Database
    store: Store
    settings: Settings
    progress: Progress = field(default_factory=Quiet)

    def run(self, wanted: Wanted) -> Report:
        """Do it; raises only for what stops everything (database, a named file or topic that is not there)."""
        report = Report()
        seeds = self._seed_files(wanted)
        found = [*self._list(wanted.pdfs, PDF_SUFFIXES), *self._list(wanted.files, TEXT_SUFFIXES)]
        urls: list[tuple[str, Sequence[str]]] = []
        for seed in seeds:
            urls += self._ingest_seed(seed, wanted, report)
        if found:
            self._register(
                found, [s.topic for s in seeds if s.topic] if wanted.topics else [], report, limit=wanted.limit
            )
        for path in wanted.jsonl:
            self._ingest_jsonl(path, wanted, report)
        if wanted.has_full_texts and (seeds or urls):
            self._fetch(urls, report)
        if seeds or found:
            self._extract(report, is_ocr=wanted.is_ocr)
        return report

    def _list(self, paths: Sequence[Path], suffixes: Sequence[str]) -> list[Path]:
        return [file for path in paths for file in list_files(path, suffixes)]

    def _seed_files(self, wanted: Wanted) -> list[SeedFile]:
        folder = self.settings.seeds_dir
        if wanted.is_all_topics:
            return [read_seed_file(path) for path in list_seed_files(folder)]
        if (wanted.pdfs or wanted.files) and wanted.topics:
            # a topic that only files are put into needs no seed file
            from ingest.seeds import find_seed_file, seed_path

            return [find_seed_file(folder, name) or SeedFile(seed_path(folder, name), name) for name in wanted.topics]
        return [get_seed_file(folder, name) for name in wanted.topics]

    def _ingest_seed(self, seed: SeedFile, wanted: Wanted, report: Report) -> list[tuple[str, Sequence[str]]]:
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
        self.progress.begin(f"topic {seed.topic or 'unsorted'}", len(read))
        with self.database.connect(autocommit=True) as connection:
            if seed.topic is not None:
                write_topic(connection, seed)
            for at in range(0, len(records), BATCH):
                with connection.transaction():
                    report.papers.add(_write_adding_topics(connection, records[at : at + BATCH]))
                self.progress.step(len(records[at : at + BATCH]))
            for paper in read:
                if paper.record is not None and paper.mark:
                    connection.execute(TOPICS["set_mark"], {"paper_id": paper.record.paper_id, "mark": paper.mark})
            if wanted.has_full_texts:
                self._register_seeded(connection, read, topics, report)
                ids = [p.record.paper_id for p in read if p.record is not None and p.url is not None]
                connection.execute(FETCH["enqueue"], {"paper_ids": ids, "priority": PRIORITY_BACKLOG})
            if seed.topic is not None:
                connection.execute(TOPICS["set_fetched_at"], [seed.topic])
            report.problems += [
                f"{seed.path}: {paper.title!r} has a title only; give its arXiv id, DOI, PMID or file"
                for paper in read if paper.record is None and paper.path is None and paper.url is None
            ]  # fmt: skip
            return [
                (paper.url, topics) for paper in read
                if paper.record is None and paper.url is not None and not _has_url(connection, paper.url)
            ]  # fmt: skip

    def _register_seeded(
        self, connection: Connection[Any], read: Sequence[SeedPaper], topics: Sequence[str], report: Report
    ) -> None:
        """Files that entries name, and files that the store has already by their hash."""
        for paper in read:
            path = paper.path
            if path is None and paper.sha256 is not None and self.store.has(paper.sha256):
                path = self.store.local_path(paper.sha256)
            if path is None:
                continue
            try:
                record = paper.record or self._record_of_file(paper, path)
                if record is not paper.record:
                    with connection.transaction():
                        write_papers(connection, [record])
                pk = _pk_of(connection, record)
                registered = register_file(
                    connection,
                    self.store,
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

    def _record_of_file(self, paper: SeedPaper, path: Path) -> PaperRecord:
        """What an entry without identifier says of the paper that its file is."""
        try:
            sha256 = self.store.put_file(path)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}.", file=str(path)) from error
        record = read_entry({**paper.entry, "id": f"file:{sha256}", "sha256": sha256}, path.parent).record
        assert record is not None
        return record

    def _register(self, found: Sequence[Path], topics: Sequence[str], report: Report, *, limit: int | None) -> None:
        self.progress.begin("files into the store", len(found))
        with self.database.connect(autocommit=True) as connection:
            for path in found:
                if limit is not None and report.n_new_files >= limit:
                    break
                try:
                    registered = register_file(connection, self.store, path, topics=topics)
                except InputError as error:
                    report.problems.append(str(error))
                else:
                    report.n_files += 1
                    report.n_new_files += registered.is_new
                self.progress.step(note=path.name)

    def _ingest_jsonl(self, path: Path, wanted: Wanted, report: Report) -> None:
        if not path.is_file():
            raise InputError(f"There is no file {path}.", file=str(path))
        self.progress.begin(f"papers of {path.name}", None)
        batch: list[PaperRecord] = []
        n_read = 0
        with self.database.connect(autocommit=True) as connection:

            def flush() -> None:
                with connection.transaction():
                    is_backlog = n_read > BATCH or len(batch) > 64
                    priority = PRIORITY_BACKLOG if is_backlog else PRIORITY_NEW
                    report.papers.add(write_papers(connection, batch, priority=priority))
                self.progress.step(len(batch))
                batch.clear()

            try:
                for line in iter_lines(path):
                    if wanted.limit is not None and n_read >= wanted.limit:
                        break
                    try:
                        record = _record(line, wanted.prefix)
                    except InputError as error:
                        report.problems.append(f"{path} line {line.number}: {error}; it was left out")
                        continue
                    report.n_replaced_chars += record.n_replaced_chars
                    n_read += 1
                    batch.append(record)
                    if len(batch) == BATCH:
                        flush()
            except InputError as error:
                report.problems.append(str(error))
            if batch:
                flush()

    def _fetch(self, urls: Sequence[tuple[str, Sequence[str]]], report: Report) -> None:
        self.progress.begin("full texts", None)
        run = run_fetches(self.database, self.store, self.settings, urls=urls, on_done=lambda name, outcome, _: self.progress.step(note=f"{name} {outcome}"))  # fmt: skip
        report.n_fetched += run.n_done
        report.n_later += run.n_later
        report.problems += [f"{name}: {reason}" for name, reason in run.failed]

    def _extract(self, report: Report, *, is_ocr: bool) -> None:
        self.progress.begin("texts out of files", None)
        run = run_extractions(
            self.database, self.store, n_children=self.settings.extract_children, is_ocr=is_ocr,
            on_done=lambda name, verdict, _: self.progress.step(note=f"{name} {verdict}"),
        )  # fmt: skip
        for verdict, n in run.verdicts.items():
            report.verdicts[verdict] = report.verdicts.get(verdict, 0) + n
        if run.n_failed:
            report.problems.append(f"{run.n_failed} files could not be read: see `brain failures`")


def _record(line: Line, prefix: str | None) -> PaperRecord:
    if line.error is not None:
        raise InputError(line.error)
    return record_from_row(line.value, prefix=prefix)


def _in_topic(record: PaperRecord, topics: tuple[str, ...]) -> PaperRecord:
    from dataclasses import replace

    return replace(record, topics=topics or None)


def _write_adding_topics(connection: Connection[Any], records: Sequence[PaperRecord]) -> Written:
    """Write papers of one topic's file; topics that other files gave them stay."""
    from dataclasses import replace

    names = {r.paper_id: r.topics for r in records}
    written = write_papers(connection, [replace(r, topics=None) for r in records])
    topics = sorted({name for found in names.values() for name in found or ()})
    if topics:
        connection.execute(TOPICS["add_papers_to_topic"], {"paper_ids": list(names), "names": topics})
    return written


def _pk_of(connection: Connection[Any], record: PaperRecord | None) -> int | None:
    if record is None:
        return None
    row = connection.execute(TOPICS["find_pk"], {"paper_id": record.paper_id}).fetchone()
    return row[0] if row else None


def _has_url(connection: Connection[Any], url: str) -> bool:
    row = connection.execute("SELECT 1 FROM document WHERE source_url = %s LIMIT 1", [url]).fetchone()
    return row is not None
