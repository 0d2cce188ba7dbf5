"""Runs extract jobs: children read files under limits, results are written one transaction a file.

A killed run leaves jobs whose lease ends within a minute; the next run takes them up.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog
from psycopg import Connection

from corpus.database import Database
from corpus.errors import StoreError
from ingest.documents import store_extraction
from ingest.files import SQL
from ingest.store import Store
from ingest.text.extract import ExtractorPool
from ingest.text.result import Extraction

_log = structlog.get_logger()
LEASE_S = 60.0
_RENEW_S = 15.0


@dataclass(slots=True)
class ExtractionRun:
    """What one run did; `refused` names each file without a usable text, its verdict and the reason."""

    n_done: int = 0
    n_failed: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Held:
    job_id: int
    token: UUID
    document_id: int
    priority: int
    name: str
    path: Path | None
    error: str = ""


def default_children() -> int:
    """One child a core, at most four: extraction is CPU work, and its memory is bounded per child."""
    return max(1, min(4, os.cpu_count() or 1))


def run_extractions(
    database: Database, store: Store, *, n_children: int = 0, is_ocr: bool = False,
    on_done: Callable[[str, str, str], None] | None = None,
) -> ExtractionRun:  # fmt: skip
    """Work off every extract job there is, until none waits and none is held by somebody else.

    `on_done(file name, verdict, reason)` is called after each file.
    """
    width = n_children or default_children()
    run = ExtractionRun()
    running: dict[Future[Extraction], _Held] = {}
    with (
        database.connect(autocommit=True) as connection,
        ExtractorPool(width) as pool,
        ThreadPoolExecutor(width, thread_name_prefix="extract") as threads,
    ):
        while True:
            for held in _claim(connection, store, width + 1 - len(running)):
                if held.path is None:
                    _fail(connection, held, held.error)
                    run.n_failed += 1
                else:
                    running[threads.submit(pool.extract, held.path, name=held.name, is_ocr=is_ocr)] = held
            if not running:
                if _n_waiting(connection) == 0:
                    return run
                _pause(connection)
                continue
            done, _ = wait(running, timeout=_RENEW_S, return_when=FIRST_COMPLETED)
            if running:
                held_now = list(running.values())
                connection.execute(
                    "SELECT job_renew(%s, %s, %s)", [[h.job_id for h in held_now], [h.token for h in held_now], LEASE_S]
                )
            for future in done:
                _finish(connection, running.pop(future), future, run, on_done)


def _claim(connection: Connection[Any], store: Store, n: int) -> list[_Held]:
    if n <= 0:
        return []
    rows = connection.execute(
        "SELECT job_id, lease_token, item_ids[1], priority, n_attempts FROM job_claim('extract', NULL, NULL, %s, %s)",
        [n, LEASE_S],
    ).fetchall()
    return [held for row in rows if (held := _held(connection, store, row)) is not None]


def _held(connection: Connection[Any], store: Store, row: tuple[Any, ...]) -> _Held | None:
    job_id, token, document_id, priority, _ = row
    document = connection.execute(
        "SELECT encode(sha256, 'hex'), coalesce(file_name, '') FROM document WHERE document_id = %s", [document_id]
    ).fetchone()
    if document is None:
        connection.execute("SELECT job_complete(%s, %s)", [[job_id], [token]])
        return None
    try:
        return _Held(job_id, token, document_id, priority, document[1], store.local_path(document[0]))
    except (StoreError, OSError) as error:
        return _Held(job_id, token, document_id, priority, document[1], None, str(error))


def _finish(
    connection: Connection[Any], held: _Held, future: Future[Extraction], run: ExtractionRun,
    on_done: Callable[[str, str, str], None] | None,
) -> None:  # fmt: skip
    try:
        extraction = future.result()
        with connection.transaction():
            if not connection.execute("SELECT job_complete(%s, %s)", [[held.job_id], [held.token]]).fetchall():
                return  # the lease ran out: whoever has the job now writes it
            stored = store_extraction(connection, held.document_id, extraction, is_backlog=held.priority >= 100)
    except Exception as error:  # one file must not end the run
        _log.exception("extraction_failed", file=held.name)
        _fail(connection, held, f"{type(error).__name__}: {error}")
        run.n_failed += 1
        return
    run.n_done += 1
    run.verdicts[extraction.verdict] = run.verdicts.get(extraction.verdict, 0) + 1
    if not extraction.is_ok:
        run.refused.append(f"{held.name}: {extraction.verdict}: {extraction.reason}")
    if on_done:
        reason = extraction.reason or ("another copy" if stored and stored.is_copy else "")
        on_done(held.name, extraction.verdict, reason)


def _fail(connection: Connection[Any], held: _Held, why: str) -> None:
    connection.execute("SELECT job_fail(%s, %s, 'poison', %s, NULL)", [held.job_id, held.token, why[:2000]])


def _n_waiting(connection: Connection[Any]) -> int:
    row = connection.execute(SQL["count_extract_jobs"]).fetchone()
    assert row is not None
    return row[0]


def _pause(connection: Connection[Any]) -> None:
    """Wait a moment for jobs that another process holds: it finishes them, or their lease ends."""
    connection.execute("LISTEN job_extract")
    for _ in itertools.islice(connection.notifies(timeout=1.0, stop_after=1), 1):
        pass
