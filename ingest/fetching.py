"""Fetches full texts: fetch jobs of papers, and addresses that are all that a seed entry has.

Every attempt and how it ended is a row of `fetch_attempt`. A throttled or dead host is asked again by itself: within the
run where it wants a short wait, else by a later one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from corpus.database import Database
from corpus.errors import BrainError
from corpus.settings import Settings
from ingest.acquire.desk import Books
from ingest.acquire.downloads import Downloads
from ingest.acquire.fetch_jobs import FetchJobs, FetchRun, OnDone
from ingest.acquire.fulltexts import SQL, safe_name
from ingest.extraction import default_children
from ingest.files import register_file
from ingest.fulltext import FullTextFinder
from ingest.http.body import Downloaded
from ingest.http.clock import Clock, SystemClock
from ingest.http.fetcher import Fetcher
from ingest.http.settings import HttpSettings
from ingest.papers import PRIORITY_BACKLOG
from ingest.sources import make_sources
from ingest.store import Store
from ingest.text.extract import ExtractorPool

__all__ = ["SQL", "FetchRun", "http_settings", "run_fetches"]
_WIDTH = 4
_N_ROUNDS = 3
MakeFetcher = Callable[[HttpSettings], Fetcher]


def http_settings(settings: Settings) -> HttpSettings:
    """The HTTP stack as the environment wants it, with the published limits of every source's hosts."""
    rules = tuple(rule for source in make_sources(os.environ).values() for rule in source.hosts)
    return HttpSettings(
        contact_email=settings.contact_email or None,
        base_url=settings.sources_base_url or None,
        cache_dir=settings.home_dir / "http-cache",
        rules=rules,
    )


def run_fetches(
    database: Database, store: Store, settings: Settings, *, urls: Sequence[tuple[str, Sequence[str]]] = (),
    on_done: OnDone | None = None, make_fetcher: MakeFetcher = Fetcher, clock: Clock | None = None,
) -> FetchRun:  # fmt: skip
    """Work off every fetch job that may run now, and fetch `urls` (address, topics) that no paper stands for yet."""
    return asyncio.run(_run(database, store, settings, list(urls), on_done, make_fetcher, clock or SystemClock()))


async def _run(
    database: Database, store: Store, settings: Settings, urls: list[tuple[str, Sequence[str]]], on_done: OnDone | None,
    make_fetcher: MakeFetcher, clock: Clock,
) -> FetchRun:  # fmt: skip
    run = FetchRun()
    settings.home_dir.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="fetch-", dir=settings.home_dir))
    try:
        with (
            database.connect(autocommit=True) as connection,
            ExtractorPool(settings.extract_children or default_children()) as pool,
        ):
            async with make_fetcher(http_settings(settings)) as fetcher:
                downloads = Downloads(fetcher, settings.home_dir / "downloads")
                gate = asyncio.Semaphore(_WIDTH)

                async def one(url: str, topics: Sequence[str]) -> None:
                    async with gate:
                        await _fetch_url(database, store, downloads, folder, url, topics, run, on_done, clock)

                await asyncio.gather(*(one(url, topics) for url, topics in urls))
                finder = FullTextFinder(
                    downloads, store, pool.extract, folder, quarantine=Store(settings.home_dir / "quarantine")
                )
                jobs = FetchJobs(Books(connection), store, downloads, finder, pool.extract, folder, clock, run, on_done)
                await jobs.work()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return run


async def _fetch_url(
    database: Database, store: Store, downloads: Downloads, folder: Path, url: str, topics: Sequence[str], run: FetchRun,
    on_done: OnDone | None, clock: Clock,
) -> None:  # fmt: skip
    outcome, reason = "failed", ""
    for n in range(_N_ROUNDS):
        try:
            got = await downloads.download(url, folder)
            await asyncio.to_thread(_register, database, store, got, url, topics)
            run.n_done += 1
            outcome, reason = "ok", ""
            break
        except (BrainError, OSError) as error:
            outcome, reason = getattr(error, "outcome", "failed"), str(error)
            if not getattr(error, "transient", False) or n == _N_ROUNDS - 1:
                run.failed.append((url, reason))
                break
            await clock.sleep(5.0 * 3**n)
    downloads.forget([url])
    if on_done:
        on_done(url, outcome, reason)


def _register(database: Database, store: Store, got: Downloaded, url: str, topics: Sequence[str]) -> None:
    try:
        with database.connect(autocommit=True) as connection:
            register_file(
                connection,
                store,
                got.path,
                topics=topics,
                source_url=url,
                priority=PRIORITY_BACKLOG,
                name=safe_name(url),
            )
    finally:
        got.path.unlink(missing_ok=True)
