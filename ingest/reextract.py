"""Reads documents anew that an older extractor has read; see `redraft` for how the new text takes the old one's place.

Each file is a transaction of its own, so a run that was killed goes on where it stopped, and two runs at once share the
work or do it twice to the same end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import structlog
from psycopg import Connection, errors
from psycopg.rows import class_row

from corpus.database import Database
from corpus.errors import StoreError, UsageError
from ingest.extraction import default_children
from ingest.redraft import SQL, Became, store_reextraction
from ingest.store import Store
from ingest.text.extract import ExtractorPool
from ingest.text.result import EXTRACTOR_VERSION, Extraction

_log = structlog.get_logger()
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Outdated:
    """A document that is to be read anew."""

    document_id: int
    sha256: str
    file_name: str
    paper_id: str
    verdict: str
    extractor_version: int | None
    is_ocr: bool

    @property
    def name(self) -> str:
        """The paper and its file, as messages name them."""
        return f"{self.paper_id} ({self.file_name or self.sha256[:12]})"


@dataclass(slots=True)
class Reextraction:
    """What a run did: counts, and by name what could not be done."""

    extractor_version: int = EXTRACTOR_VERSION
    n_wanted: int = 0
    n_same: int = 0
    n_changed: int = 0
    n_waiting: int = 0
    """The new text is there and serves as soon as workers have embedded it."""
    n_refused: int = 0
    """Without usable text before, and today."""
    kept: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    n_drafts: int = 0
    """Texts that wait for their embeddings when the run ends, also from earlier runs."""

    @property
    def problems(self) -> list[str]:
        """What a person has to look at."""
        return [*self.missing, *self.failed, *self.kept]


def list_outdated(
    connection: Connection[Any],
    *,
    topics: Sequence[str] = (),
    papers: Sequence[str] = (),
    is_all: bool = False,
    is_ocr: bool = False,
) -> list[Outdated]:
    """The documents that an older extractor has read (with `is_all`: every one that was read), of topics or papers.

    With `is_ocr` also those that text recognition may give a text.

    Raises UsageError for a topic or a paper that there is not.
    """
    unknown = connection.execute(SQL["unknown_topics"], {"names": list(topics)}).fetchone()
    if unknown is not None:
        raise UsageError(f"There is no topic {unknown[0]!r}.", mend="`brain seed list` names the topics.")
    pks: list[int] = []
    for key, pk in connection.execute(SQL["resolve_papers"], {"keys": list(papers)}).fetchall():
        if pk is None:
            raise UsageError(f"There is no paper {key!r}.", mend="`brain papers` lists them.")
        pks.append(pk)
    values = {
        "version": EXTRACTOR_VERSION, "is_all": is_all, "is_ocr": is_ocr, "topics": list(topics) or None, "pks": pks if papers else None,
    }  # fmt: skip
    with connection.cursor(row_factory=class_row(Outdated)) as cursor:
        return cursor.execute(SQL["list_outdated"], values).fetchall()


def reextract(
    database: Database, store: Store, wanted: Sequence[Outdated], *, is_all: bool = False, is_ocr: bool = False, n_children: int = 0,
    on_done: Callable[[Outdated], None] | None = None,
) -> Reextraction:  # fmt: skip
    """Read the documents anew in limited children. Runs twice: the second time there is nothing to do."""
    run = Reextraction(n_wanted=len(wanted))
    width = n_children or default_children()
    running: dict[Future[Extraction], Outdated] = {}
    with (
        database.connect(autocommit=True) as connection,
        ExtractorPool(width) as pool,
        ThreadPoolExecutor(width, thread_name_prefix="extract") as threads,
    ):
        connection.execute(SQL["settle_all"])
        for document in wanted:
            try:
                path = store.local_path(document.sha256)
            except (StoreError, OSError) as error:
                run.missing.append(f"{document.name}: {error}")
                _done(document, on_done)
                continue
            future = threads.submit(pool.extract, path, name=document.file_name, is_ocr=is_ocr or document.is_ocr)
            running[future] = document
            if len(running) > width:
                _finish_some(connection, running, run, on_done, is_all=is_all)
        while running:
            _finish_some(connection, running, run, on_done, is_all=is_all)
        row = connection.execute(SQL["count_drafts"]).fetchone()
        run.n_drafts = row[0] if row else 0
    return run


def _finish_some(
    connection: Connection[Any], running: dict[Future[Extraction], Outdated], run: Reextraction,
    on_done: Callable[[Outdated], None] | None, *, is_all: bool,
) -> None:  # fmt: skip
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        document = running.pop(future)
        try:
            extraction = future.result()
            became = _store(connection, document, extraction, is_all=is_all)
        except Exception as error:  # one file must not end the run
            if connection.closed:
                raise
            _log.exception("reextraction_failed", file=document.name)
            run.failed.append(f"{document.name}: {type(error).__name__}: {error}")
        else:
            _count(run, document, extraction, became)
        _done(document, on_done)


def _store(connection: Connection[Any], document: Outdated, extraction: Extraction, *, is_all: bool) -> Became:
    """One transaction; again where a worker that embeds the same texts was in the way."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(errors.DeadlockDetected), connection.transaction():
            return store_reextraction(connection, document.document_id, extraction, is_all=is_all)
    with connection.transaction():
        return store_reextraction(connection, document.document_id, extraction, is_all=is_all)


def _count(run: Reextraction, document: Outdated, extraction: Extraction, became: Became) -> None:
    if became == "kept":
        why = f"{extraction.verdict}: {extraction.reason}"
        run.kept.append(f"{document.name}: keeps its older text; today's extractor says {why}")
    elif became == "same":
        run.n_same += 1
    elif became == "changed":
        run.n_changed += 1
    elif became == "waiting":
        run.n_waiting += 1
    elif became == "refused":
        run.n_refused += 1


def _done(document: Outdated, on_done: Callable[[Outdated], None] | None) -> None:
    if on_done is not None:
        on_done(document)
