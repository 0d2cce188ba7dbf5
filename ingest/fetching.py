"""Fetches full texts: fetch jobs of papers that name an address, and addresses that are all that a seed entry has.

Every attempt and how it ended is a row of `fetch_attempt`. A throttled or dead host is asked again later by itself.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from corpus.database import Database
from corpus.errors import BrainError, FetchError, InputError
from corpus.settings import Settings
from ingest.files import register_file
from ingest.http.body import Downloaded
from ingest.http.fetcher import Fetcher
from ingest.http.settings import HttpSettings
from ingest.papers import PRIORITY_BACKLOG
from ingest.store import Store
from sql import files

_log = structlog.get_logger()
SQL = files.queries("fetch")
_LEASE_S = 60.0
_LATER_S = 900.0
_WIDTH = 4
OnDone = Callable[[str, str, str], None]


@dataclass(slots=True)
class FetchRun:
    """What one run did; `failed` names what could not be had and why, `later` how many wait for their host."""

    n_done: int = 0
    n_later: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)


def http_settings(settings: Settings) -> HttpSettings:
    """The HTTP stack as the environment wants it."""
    return HttpSettings(
        contact_email=settings.contact_email or None,
        base_url=settings.sources_base_url or None,
        cache_dir=settings.home_dir / "http-cache",
    )


def run_fetches(
    database: Database, store: Store, settings: Settings, *, urls: Sequence[tuple[str, Sequence[str]]] = (),
    on_done: OnDone | None = None,
) -> FetchRun:  # fmt: skip
    """Work off every fetch job that may run now, and fetch `urls` (address, topics) that no paper stands for yet."""
    return asyncio.run(_run(database, store, settings, list(urls), on_done))


async def _run(
    database: Database, store: Store, settings: Settings, urls: list[tuple[str, Sequence[str]]], on_done: OnDone | None
) -> FetchRun:
    run = FetchRun()
    settings.home_dir.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="fetch-", dir=settings.home_dir))
    try:
        async with Fetcher(http_settings(settings)) as fetcher:
            gate = asyncio.Semaphore(_WIDTH)

            async def one(url: str, topics: Sequence[str]) -> None:
                async with gate:
                    await _fetch_url(database, store, fetcher, folder, url, topics, run, on_done)

            await asyncio.gather(*(one(url, topics) for url, topics in urls))
            while jobs := await asyncio.to_thread(_claim, database, _WIDTH):
                await asyncio.gather(*(_fetch_job(database, store, fetcher, folder, job, run, on_done) for job in jobs))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return run


def _claim(database: Database, n: int) -> list[tuple[Any, ...]]:
    with database.connect(autocommit=True) as connection:
        return connection.execute(SQL["claim"], {"n": n, "lease_s": _LEASE_S}).fetchall()


async def _fetch_url(
    database: Database, store: Store, fetcher: Fetcher, folder: Path, url: str, topics: Sequence[str], run: FetchRun,
    on_done: OnDone | None,
) -> None:  # fmt: skip
    try:
        got = await fetcher.download(url, folder)
        await asyncio.to_thread(_register, database, store, got, url, topics, None)
        run.n_done += 1
        outcome, reason = "ok", ""
    except (BrainError, OSError) as error:
        outcome, reason = getattr(error, "outcome", "failed"), str(error)
        run.failed.append((url, reason))
    if on_done:
        on_done(url, outcome, reason)


async def _fetch_job(
    database: Database,
    store: Store,
    fetcher: Fetcher,
    folder: Path,
    job: tuple[Any, ...],
    run: FetchRun,
    on_done: OnDone | None,
) -> None:
    job_id, token, paper_pk, paper_id, url = job
    keeper = asyncio.create_task(_keep(database, job_id, token))
    sha256: str | None = None
    is_transient = False
    try:
        if not url:
            raise InputError(f"{paper_id} names no address of a full text")
        got = await fetcher.download(url, folder)
        sha256 = got.sha256
        await asyncio.to_thread(_register, database, store, got, url, (), paper_pk)
        outcome, reason = "ok", ""
    except (BrainError, OSError) as error:
        outcome, reason = getattr(error, "outcome", "failed"), str(error)
        is_transient = bool(getattr(error, "transient", False)) and not isinstance(error, FetchError)
    finally:
        keeper.cancel()
    values = {
        "job_id": job_id, "token": token, "paper_pk": paper_pk, "url": url or "", "outcome": outcome, "reason": reason or None,
        "sha256": bytes.fromhex(sha256) if sha256 else None, "later_s": _LATER_S, "class": "unavailable" if is_transient else "absent",
    }  # fmt: skip
    await asyncio.to_thread(_close, database, values, outcome == "ok", is_transient)
    if outcome == "ok":
        run.n_done += 1
    elif is_transient:
        run.n_later += 1
    else:
        run.failed.append((paper_id, reason))
    if on_done:
        on_done(paper_id, outcome, reason)


async def _keep(database: Database, job_id: int, token: Any) -> None:
    while True:
        await asyncio.sleep(_LEASE_S / 3)
        await asyncio.to_thread(_renew, database, job_id, token)


def _renew(database: Database, job_id: int, token: Any) -> None:
    with database.connect(autocommit=True) as connection:
        connection.execute("SELECT job_renew(%s, %s, %s)", [[job_id], [token], _LEASE_S])


def _register(
    database: Database, store: Store, got: Downloaded, url: str, topics: Sequence[str], paper_pk: int | None
) -> None:
    name = Path(url.split("?", maxsplit=1)[0].rstrip("/")).name[:200] or "download"
    named = got.path.with_name(f"{got.sha256[:8]}-{_safe(name)}")
    got.path.replace(named)
    try:
        with database.connect(autocommit=True) as connection:
            register_file(
                connection, store, named, topics=topics, paper_pk=paper_pk, source_url=url, priority=PRIORITY_BACKLOG
            )
    finally:
        named.unlink(missing_ok=True)


def _safe(name: str) -> str:
    """File names never come from outside: letters, digits, dot, dash and underscore of the address are kept."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name).lstrip(".") or "file"


def _close(database: Database, values: dict[str, Any], is_ok: bool, is_transient: bool) -> None:
    with database.connect() as connection:
        connection.execute(SQL["record_attempt"], values)
        connection.execute(SQL["complete" if is_ok else "later" if is_transient else "fail"], values)
