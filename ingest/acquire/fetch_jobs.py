"""The run over fetch jobs: a few papers at once, their leases kept, what did not answer asked again before the run ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psycopg import Connection

from corpus.errors import BrainError
from ingest.acquire.desk import Books
from ingest.acquire.downloads import Downloads
from ingest.acquire.fulltexts import (
    SQL,
    FetchJob,
    Places,
    claim,
    host_record,
    places_of,
    search,
    write_found,
    write_later,
    write_nothing,
)
from ingest.fulltext import Attempt, FullText, FullTextFinder, Search
from ingest.fulltext.finder import Extract
from ingest.fulltext.rank import HostRecord
from ingest.http.clock import Clock
from ingest.store import Store
from ingest.work import Location

LEASE_S = 30.0
_WIDTH = 6
_N_ROUNDS = 4
_FIRST_WAIT_S, _PATIENCE_S = 5.0, 120.0
_LATER_S, _LONGEST_LATER_S = 900.0, 86400.0
OnDone = Callable[[str, str, str], None]


@dataclass(slots=True)
class FetchRun:
    """What one run did; `failed` names what could not be had and why, `n_later` how many wait for their host."""

    n_done: int = 0
    n_later: int = 0
    n_absent: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Held:
    """A job in hand: what was tried so far, and what a further round leaves out."""

    job: FetchJob
    places: Places
    attempts: list[Attempt] = field(default_factory=list)
    retry_after_s: float | None = None


@dataclass(slots=True)
class FetchJobs:
    """Works off the queue; constructed with what it uses."""

    books: Books
    store: Store
    downloads: Downloads
    finder: FullTextFinder
    extract: Extract
    folder: Path
    clock: Clock
    run: FetchRun
    on_done: OnDone | None = None
    _held: dict[int, _Held] = field(default_factory=dict)
    _record: HostRecord = field(default_factory=dict)

    async def work(self) -> None:
        """Until no job is left that may run now; those of a run that was killed come back when their lease ends."""
        self._record = await self.books.do(host_record)
        await self.books.do(lambda connection: connection.execute(SQL["drop_ownerless"]))
        keeper = asyncio.create_task(self._keep())
        try:
            waited_s = 0.0
            while True:
                await self._round_of_claims()
                await self._more_rounds()
                if not await self.books.do(_n_held) or waited_s > LEASE_S + 2:
                    return
                await asyncio.sleep(1.0)  # the database's clock decides when a lease ends
                waited_s += 1.0
        finally:
            keeper.cancel()

    async def _round_of_claims(self) -> None:
        async def one() -> None:
            while jobs := await self.books.do(claim, 1, LEASE_S):
                for job in jobs:
                    self._held[job.job_id] = held = _Held(job, await self.books.do(places_of, job))
                    await self._try(held)

        await asyncio.gather(*(one() for _ in range(_WIDTH)))

    async def _more_rounds(self) -> None:
        """Ask again for what did not answer, or sent something else: hosts send half a file or a page now and then."""
        wait_s = _FIRST_WAIT_S
        for _ in range(1, _N_ROUNDS):
            again = [held for held in self._held.values() if _is_worth_it(held)]
            if not again:
                break
            asked = [held.retry_after_s for held in again if held.retry_after_s]
            await self.clock.sleep(max(wait_s, *(a for a in asked if a <= _PATIENCE_S)) if asked else wait_s)
            wait_s *= 3
            gate = asyncio.Semaphore(_WIDTH)

            async def one(held: _Held, gate: asyncio.Semaphore = gate) -> None:
                async with gate:
                    self.downloads.forget(url for url, attempt in _last_words(held).items() if _is_odd(attempt))
                    await self._try(held)

            await asyncio.gather(*(one(held) for held in again))
        for held in list(self._held.values()):
            await self._give_up(held)

    async def _try(self, held: _Held) -> None:
        try:
            if held.job.kind not in {"paper", "book"} and held.job.pdf_url:
                done = await self._as_it_is(held.job.pdf_url)
            else:
                done = await search(self.finder, held.job, _left(held), self._record)
        except Exception as error:  # one paper must not end the others
            done = Search(
                attempts=[Attempt(Location(held.job.pdf_url or ""), "failed", f"{type(error).__name__}: {error}")]
            )
        held.attempts += done.attempts
        held.retry_after_s = done.retry_after_s
        if done.found is not None:
            done.attempts = held.attempts
            is_written = await self.books.do(write_found, self.store, held.job, done)
            self._drop(held)
            if is_written:
                self.run.n_done += 1
                self._tell(held, "ok", "")
        elif not _is_worth_it(held):
            await self._give_up(held)

    async def _as_it_is(self, url: str) -> Search:
        """Notes, news and the like are what the address holds: there is no paper that they could be mistaken for."""
        place = Location(url)
        try:
            got = await self.downloads.download(url, self.folder)
        except (BrainError, OSError) as error:
            is_transient = isinstance(error, BrainError) and error.transient
            return Search(
                attempts=[Attempt(place, getattr(error, "outcome", "failed"), str(error), None, is_transient)]
            )
        extraction = await asyncio.to_thread(self.extract, got.path)
        await asyncio.to_thread(self.store.put_file, got.path)
        got.path.unlink(missing_ok=True)
        found = FullText(got.sha256, place, got.final_url, got.content_type, got.n_bytes, extraction, "its address")
        return Search(found=found, attempts=[Attempt(place, "stored", "as it is", got.sha256)])

    async def _give_up(self, held: _Held) -> None:
        done = Search(attempts=held.attempts, retry_after_s=held.retry_after_s)
        if _is_later(held):
            wait_s = min(_LONGEST_LATER_S, max(_LATER_S, held.retry_after_s or 0.0))
            await self.books.do(write_later, held.job, done, wait_s)
            self.run.n_later += 1
            outcome, reason = "later", next((a.reason for a in held.attempts if a.is_transient), "")
        else:
            reason = await self.books.do(write_nothing, held.job, done)
            outcome = "absent"
            self.run.n_absent += 1
            if held.job.pdf_url:
                self.run.failed.append((held.job.paper_id, reason))
        self._drop(held)
        self._tell(held, outcome, reason)

    def _drop(self, held: _Held) -> None:
        self._held.pop(held.job.job_id, None)
        self.downloads.forget(attempt.location.url for attempt in held.attempts)

    def _tell(self, held: _Held, outcome: str, reason: str) -> None:
        if self.on_done:
            self.on_done(held.job.paper_id, outcome, reason)

    async def _keep(self) -> None:
        """Renew the leases of everything in hand."""
        while True:
            await asyncio.sleep(LEASE_S / 3)
            jobs = [held.job for held in self._held.values()]
            with contextlib.suppress(BrainError):
                await self.books.do(_renew, [job.job_id for job in jobs], [job.lease_token for job in jobs])


def _last_words(held: _Held) -> dict[str, Attempt]:
    return {attempt.location.url: attempt for attempt in held.attempts}


def _is_later(held: _Held) -> bool:
    return any(attempt.is_transient for attempt in _last_words(held).values())


def _is_odd(attempt: Attempt) -> bool:
    """Whether a place may say something else the next time: it sent a wrong file for the first time, or nonsense."""
    if attempt.outcome == "quarantined":
        return "put aside before" not in attempt.reason
    return attempt.outcome == "nonsense"


def _is_worth_it(held: _Held) -> bool:
    """Whether this run asks again; a host that wants to be left for long is asked by a later run."""
    if held.retry_after_s is not None and held.retry_after_s > _PATIENCE_S:
        return False
    n_tries = max((sum(a.location.url == url for a in held.attempts) for url in _last_words(held)), default=0)
    return n_tries < _N_ROUNDS and any(a.is_transient or _is_odd(a) for a in _last_words(held).values())


def _left(held: _Held) -> Places:
    """What is still to be tried: not what has had its say in this run, not the files that were put aside in it."""
    over = {url for url, a in _last_words(held).items() if not (a.is_transient or _is_odd(a) or a.outcome == "led_on")}
    aside = {a.sha256 for a in held.attempts if a.outcome == "quarantined" and a.sha256}
    known = held.places
    return Places(known.wanted, known.locations, known.skip | over, known.refused | aside)


def _n_held(connection: Connection[Any]) -> int:
    row = connection.execute(SQL["count_held"]).fetchone()
    return row[0] if row else 0


def _renew(connection: Connection[Any], ids: list[int], tokens: list[Any]) -> None:
    if ids:
        connection.execute("SELECT job_renew(%s, %s, %s)", [ids, tokens, LEASE_S])
