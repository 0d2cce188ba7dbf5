"""The self-test in order: the real database's shape and rights, then each part of intake and search in a scratch one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from corpus import selftest as corpus_parts
from corpus import vector_index
from corpus.database import Database
from corpus.encoders import EncoderRow, get_active, register_encoder
from corpus.schema import check_schema
from corpus.selftest import PartFailed, Report
from corpus.settings import Settings
from embed_worker.served import load_and_prove
from embed_worker.worker import Options, Worker
from encoders.base import Encoder, EncoderSpec
from ingest import selftest as intake
from ingest.store import Store
from search_server import selftest as search_parts
from search_server.service import SearchService
from sql.files import queries

_WORK_S = 120
Loader = Callable[[EncoderRow, str, Path], Encoder]


def run(database: Database, settings: Settings, *, loader: Loader = load_and_prove) -> Report:
    """Run every part once; never raises for a part. The scratch database and all files are gone at the end."""
    report = Report()
    with tempfile.TemporaryDirectory(prefix="brain-selftest-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        for part, work in intake.list_source_parts():
            report.run(part, work)
        report.run("seed files", lambda: intake.check_seed_files(settings.seeds_dir, _sub(folder, "seeds")))
        report.run("store", lambda: intake.check_store(Store(settings.store_url)))
        report.run("disk", lambda: intake.check_disk(settings.home_dir))
        report.run("extraction", lambda: intake.check_extraction(_sub(folder, "extraction")))
        report.run("full-text finder", lambda: intake.check_finder(_sub(folder, "finder")))
        row: EncoderRow | None = report.run("database", lambda: _active(database))
        if database.url.embedded_dir is not None:
            report.run("database's disk", lambda: intake.check_disk(Path(str(database.url.embedded_dir))))
        _check_real(database, settings, report, row)
        scratch: Database | None = report.run(
            "scratch database",
            lambda: stack.enter_context(corpus_parts.scratch_database(database, f"brain_selftest_{os.getpid()}")),
        )
        if scratch is not None:
            report.run("schema", lambda: _compare_shapes(database, scratch))
            report.run("intake", lambda: intake.check_intake(scratch, _sub(folder, "intake"), settings))
            report.run("links and seed export", lambda: intake.check_links_and_export(scratch, _sub(folder, "links")))
            report.run("citations in answers", lambda: intake.check_citations(scratch))
        encoder: Encoder | None = report.run("encoder", lambda: loader(_need(row), "auto", settings.cache_dir))
        if scratch is not None and encoder is not None:
            report.run("cutting and embedding", lambda: _check_farm(scratch, encoder))
            report.run(
                "lists and fusion",
                lambda: asyncio.run(_check_search(scratch, settings, encoder, _sub(folder, "search"))),
            )
        if encoder is not None:
            encoder.close()
    with contextlib.suppress(Exception), database.connect(autocommit=True) as connection:
        corpus_parts.save(connection, report)
    return report


def _sub(folder: Path, name: str) -> Path:
    path = folder / name
    path.mkdir()
    return path


def _active(database: Database) -> EncoderRow:
    with database.connect() as connection:
        check_schema(connection)
        return get_active(connection)


def _need(row: EncoderRow | None) -> EncoderRow:
    if row is None:
        raise PartFailed("The database names no encoder to load.", mend="Run `brain init`.")
    return row


def _check_real(database: Database, settings: Settings, report: Report, row: EncoderRow | None) -> None:
    """What only the real database can tell."""

    def with_connection(work: Callable[[Any], None]) -> Callable[[], None]:
        def run_it() -> None:
            with database.connect(autocommit=True) as connection:
                work(connection)

        return run_it

    report.run("rights", with_connection(corpus_parts.check_rights))
    if row is not None:
        report.run("vector index", with_connection(lambda c: _check_vector_index(c, row)))
    report.run(
        "word index", with_connection(lambda c: search_parts.check_word_index(c, settings.home_dir / "word-index"))
    )


def _check_vector_index(connection: Any, row: EncoderRow) -> None:
    states = vector_index.list_states(connection, row.encoder_id)
    bad = [
        f"{part} embeddings: {'broken off' if states.get(part) is False else 'missing'}"
        for part in ("passage", "paper")
        if not states.get(part)
    ]
    if bad:
        raise PartFailed(
            f"The vector index is not whole ({', '.join(bad)}).", mend="Run `brain doctor --mend`, or `brain init`."
        )


def _compare_shapes(database: Database, scratch: Database) -> None:
    with scratch.connect() as connection:
        wanted = corpus_parts.shape(connection)
    with database.connect() as connection:
        corpus_parts.check_shape(corpus_parts.shape(connection), wanted)


def _check_farm(scratch: Database, encoder: Encoder) -> None:
    """A worker cuts and embeds all that intake wrote, with the encoder that serves."""
    spec: EncoderSpec = encoder.spec
    with scratch.connect() as connection:
        row = register_encoder(connection, spec, activate=True)
    with scratch.connect(autocommit=True) as connection:
        connection.execute("SELECT job_enqueue_missing(%s, 100)", [row.encoder_id])
    options = Options(
        cache=Path(), version="selftest", name="selftest", is_draining=True, loader=lambda *_: _Kept(encoder)  # pyright: ignore[reportArgumentType]
    )  # fmt: skip
    code = asyncio.run(asyncio.wait_for(Worker(scratch, options).run(), _WORK_S))
    with scratch.connect() as connection:
        found = connection.execute(queries("selftest")["embedded"]).fetchone()
    assert found is not None
    n_passages, n_embedded, n_papers, n_papers_embedded, failed = found
    if code or failed or n_passages != n_embedded or n_papers != n_papers_embedded or n_passages < 4:
        raise PartFailed(
            f"The worker ended with {code}: {n_embedded} of {n_passages} passages and {n_papers_embedded} of {n_papers} papers have "
            f"embeddings. {failed}"
        )


class _Kept:
    """The encoder, for one of two users: closing it is left to the self-test."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def close(self) -> None:
        """Stay loaded."""


async def _check_search(scratch: Database, settings: Settings, encoder: Encoder, folder: Path) -> None:
    settings = settings.model_copy(update={"home": folder})
    async with SearchService.open(scratch, settings, load=lambda *_, **__: _Kept(encoder)) as service:
        await service.wait_ready(timedelta(seconds=60))
        await service.state.refresh()
        await search_parts.check_lists(service)
