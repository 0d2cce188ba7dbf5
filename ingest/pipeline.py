"""`brain ingest`: what is asked for becomes papers, files are fetched and read, passages and embeddings are queued.

Every step is idempotent and leaves its state in the database: a run that is stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psycopg import Connection

from corpus.database import Database
from corpus.errors import InputError
from corpus.settings import Settings
from ingest.acquire.fulltexts import TRIED_DAYS
from ingest.acquire.plan import Need
from ingest.acquire.run import Acquired, Acquisition, MakeFetcher
from ingest.extraction import run_extractions
from ingest.fetching import SQL as FETCH
from ingest.fetching import http_settings, run_fetches
from ingest.files import PDF_SUFFIXES, TEXT_SUFFIXES, list_files, register_file
from ingest.http.clock import Clock, SystemClock
from ingest.http.fetcher import Fetcher
from ingest.jsonl import Line, iter_lines
from ingest.papers import BATCH, PRIORITY_BACKLOG, PRIORITY_NEW, write_papers
from ingest.records import PaperRecord, record_from_row
from ingest.runs import Progress, Quiet, Report, Wanted
from ingest.seeding import Taken, ingest_seed
from ingest.seeds import (
    SeedFile,
    find_seed_file,
    get_seed_file,
    list_seed_files,
    read_entry,
    read_seed_file,
    seed_path,
    write_seed_file,
)
from ingest.store import Store
from ingest.topics import SQL as TOPICS
from ingest.topics import export_seeds

__all__ = ["Ingest", "Progress", "Quiet", "Report", "Wanted"]


@dataclass(slots=True)
class Ingest:
    """One run. Constructed with what it uses; `run` does everything in order."""

    database: Database
    store: Store
    settings: Settings
    progress: Progress = field(default_factory=Quiet)
    make_fetcher: MakeFetcher = Fetcher
    clock: Clock = field(default_factory=SystemClock)

    def run(self, wanted: Wanted) -> Report:
        """Do it; raises only for what stops everything (database, a named file or topic that is not there)."""
        report = Report()
        seeds = self._seed_files(wanted)
        found = [*self._list(wanted.pdfs, PDF_SUFFIXES), *self._list(wanted.files, TEXT_SUFFIXES)]
        taken = [ingest_seed(self.database, self.store, self.progress, seed, wanted, report) for seed in seeds]
        acquired = self._acquire(taken, wanted, report) if taken else Acquired()
        if found:
            self._register(
                found, [s.topic for s in seeds if s.topic] if wanted.topics else [], report, limit=wanted.limit
            )
        for path in wanted.jsonl:
            self._ingest_jsonl(path, wanted, report)
        if wanted.has_full_texts and taken:
            self._fetch(taken, acquired, report)
        if seeds or found:
            self._extract(report, is_ocr=wanted.is_ocr)
        if acquired.changed_topics or report.n_fetched:
            self._write_back(taken, acquired, report)
        return report

    def _list(self, paths: Sequence[Path], suffixes: Sequence[str]) -> list[Path]:
        return [file for path in paths for file in list_files(path, suffixes)]

    def _seed_files(self, wanted: Wanted) -> list[SeedFile]:
        folder = self.settings.seeds_dir
        if wanted.is_all_topics:
            return [read_seed_file(path) for path in list_seed_files(folder)]
        if (wanted.pdfs or wanted.files) and wanted.topics:
            # a topic that only files are put into needs no seed file
            return [find_seed_file(folder, name) or SeedFile(seed_path(folder, name), name) for name in wanted.topics]
        return [get_seed_file(folder, name) for name in wanted.topics]

    def _acquire(self, taken: Sequence[Taken], wanted: Wanted, report: Report) -> Acquired:
        """Ask the sources for what the topics list and search."""
        self.progress.begin("sources", None)
        acquisition = Acquisition(
            self.database, self.settings, http_settings(self.settings), self.make_fetcher, self.clock,
            on_step=lambda name: self.progress.step(note=name),
        )  # fmt: skip
        done = acquisition.run([t.work for t in taken], Need(wanted.has_full_texts), limit=wanted.limit)
        report.n_found, report.n_found_new = done.n_found, done.n_new
        if done.is_offline:
            report.notes.append("There is no network: sources are asked by the next run that has one.")
        report.notes += [f"{said}; it is asked again by the next run" for _, said in sorted(done.waiting.items())]
        report.notes += [f"{name} {said}" for name, said in sorted(done.said.items())]
        with self.database.connect(autocommit=True) as connection:
            for each in taken:
                self._name_unknown(connection, each, done, report)
                if each.seed.topic is not None and not done.is_offline and not done.waiting:
                    connection.execute(TOPICS["set_fetched_at"], [each.seed.topic])
        return done

    def _name_unknown(self, connection: Connection[Any], each: Taken, done: Acquired, report: Report) -> None:
        for title in each.work.titles:
            if title in done.waiting_titles or title in done.found_titles:
                continue
            why = "no network" if done.is_offline else "no source knows exactly one paper of it"
            report.problems.append(
                f"{each.seed.path}: {title!r} has a title only, and {why}; give its arXiv id, DOI, PMID or file"
            )
        if not done.is_offline:
            rows = connection.execute(TOPICS["list_unknown"], [each.work.listed]).fetchall()
            report.problems += [f"{paper_id} is not known to any source: {asked}" for paper_id, asked in rows]

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

    def _fetch(self, taken: Sequence[Taken], acquired: Acquired, report: Report) -> None:
        self.progress.begin("full texts", None)
        urls = [url for each in taken for url in each.urls]
        if acquired.is_offline:
            report.problems += [f"{url} cannot be fetched: there is no network" for url, _ in urls]
            return
        with self.database.connect(autocommit=True) as connection:
            pks = [pk for each in taken for pk in (*each.work.listed, *each.work.known)]
            topics = [each.seed.topic for each in taken if each.seed.topic is not None]
            pks += [row[0] for row in connection.execute(TOPICS["list_pks"], [topics]).fetchall()]
            connection.execute(FETCH["enqueue"], {"pks": pks, "priority": PRIORITY_BACKLOG, "days": TRIED_DAYS})
            row = connection.execute(FETCH["count_waiting"]).fetchone()
        if not urls and not (row and row[0]):
            return
        run = run_fetches(
            self.database, self.store, self.settings, urls=urls, make_fetcher=self.make_fetcher, clock=self.clock,
            on_done=lambda name, outcome, _: self.progress.step(note=f"{name} {outcome}"),
        )  # fmt: skip
        report.n_fetched += run.n_done
        report.n_later += run.n_later
        report.n_absent += run.n_absent
        report.problems += [f"{name}: {reason}" for name, reason in run.failed]

    def _write_back(self, taken: Sequence[Taken], acquired: Acquired, report: Report) -> None:
        """Bring the topics' seed files to what is known now; titles that have become papers give way to them."""
        try:
            for each in taken:
                found = {title for title in each.work.titles if title in acquired.found_titles}
                if found:
                    base = each.seed.path.parent.parent
                    each.seed.entries = [e for e in each.seed.entries if not _is_title_of(e, base, found)]
                    write_seed_file(each.seed)
            with self.database.connect() as connection:
                export_seeds(connection, self.settings.seeds_dir, only={each.seed.topic for each in taken})
        except OSError as error:
            report.problems.append(
                f"The seed files could not be written back: {error}. Mend it, then `brain seed export`."
            )

    def _extract(self, report: Report, *, is_ocr: bool) -> None:
        self.progress.begin("texts out of files", None)
        run = run_extractions(
            self.database, self.store, n_children=self.settings.extract_children, is_ocr=is_ocr,
            on_done=lambda name, verdict, _: self.progress.step(note=f"{name} {verdict}"),
        )  # fmt: skip
        for verdict, n in run.verdicts.items():
            report.verdicts[verdict] = report.verdicts.get(verdict, 0) + n
        report.notes += run.refused
        if run.n_failed:
            report.problems.append(f"{run.n_failed} files could not be read: see `brain failures`")


def _record(line: Line, prefix: str | None) -> PaperRecord:
    if line.error is not None:
        raise InputError(line.error)
    try:
        return record_from_row(line.value, prefix=prefix)
    except (ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"it cannot be read ({type(error).__name__}: {str(error)[:120]})") from error


def _is_title_of(entry: Mapping[str, Any], base: Path, titles: Collection[str]) -> bool:
    try:
        read = read_entry(entry, base)
    except InputError:
        return False
    return read.record is None and read.title in titles
