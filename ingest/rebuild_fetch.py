"""Full texts that the store has not, from the address that they came from, under the paper that they belonged to."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from corpus.database import Database
from corpus.errors import BrainError
from corpus.settings import Settings
from ingest.acquire.run import MakeFetcher
from ingest.fetching import http_settings
from ingest.files import register_file
from ingest.http.fetcher import Fetcher
from ingest.pipeline import Progress
from ingest.rebuild import Rebuilt
from ingest.store import Store
from ingest.stored import StoredDocument, write_documents
from ingest.topics import SQL as TOPICS

_WIDTH = 4


def fetch_absent(
    database: Database,
    store: Store,
    settings: Settings,
    report: Rebuilt,
    progress: Progress,
    make_fetcher: MakeFetcher = Fetcher,
) -> dict[str, str]:
    """Fetch again what has an address; returns why the others did not come, by sha256.

    The same bytes become the same document; other bytes (a source may serve a new version) a new one of the same paper.
    """
    wanted = [each for each in report.absent if each.source_url]
    reasons: dict[str, str] = {}
    if wanted:
        progress.begin("full texts from their addresses", len(wanted))
        asyncio.run(_fetch_all(database, store, settings, wanted, report, progress, make_fetcher, reasons))
    return reasons


def name_absent(database: Database, report: Rebuilt, reasons: Mapping[str, str]) -> None:
    """Name in the report's problems every full text that came neither from its address nor by its paper's identifiers."""
    hashes = [bytes.fromhex(each.sha256) for each in report.absent]
    with database.connect(autocommit=True) as connection:
        rows = connection.execute(
            "SELECT encode(sha256, 'hex') FROM document WHERE sha256 = ANY (%s)", [hashes]
        ).fetchall()
    there = {row[0] for row in rows}
    report.n_documents += sum(each.sha256 in there for each in report.absent)
    report.absent = [each for each in report.absent if each.sha256 not in there]
    for each in report.absent:
        why = reasons.get(each.sha256, "the store has not got it, and no source has")
        report.problems.append(f"{_name(each)}: {why}")


async def _fetch_all(
    database: Database,
    store: Store,
    settings: Settings,
    wanted: list[StoredDocument],
    report: Rebuilt,
    progress: Progress,
    make_fetcher: MakeFetcher,
    reasons: dict[str, str],
) -> None:
    settings.home_dir.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="fetch-", dir=settings.home_dir))
    gate = asyncio.Semaphore(_WIDTH)
    try:
        async with make_fetcher(http_settings(settings)) as fetcher:

            async def one(each: StoredDocument) -> None:
                async with gate:
                    try:
                        got = await fetcher.download(each.source_url or "", folder)
                        await asyncio.to_thread(_keep, database, store, each, got.path, got.sha256)
                        report.absent.remove(each)
                        report.n_documents += 1
                    except (BrainError, OSError) as error:
                        reasons[each.sha256] = str(error)
                    progress.step(note=each.paper_id)

            await asyncio.gather(*(one(each) for each in wanted))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep(database: Database, store: Store, each: StoredDocument, path: Path, sha256: str) -> None:
    with database.connect(autocommit=True) as connection:
        if sha256 == each.sha256:
            store.put_file(path)
            write_documents(connection, [each], {sha256: path.stat().st_size})
        else:
            row = connection.execute(TOPICS["find_pk"], {"paper_id": each.paper_id}).fetchone()
            register_file(connection, store, path, paper_pk=row[0] if row else None, source_url=each.source_url)
        path.unlink(missing_ok=True)


def _name(each: StoredDocument) -> str:
    return f"{each.file_name or each.sha256} of {each.paper_id}"
