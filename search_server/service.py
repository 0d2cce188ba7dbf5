"""Answers questions without HTTP: three lists side by side, fused, each hit with the passage that it can be quoted by."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from psycopg_pool import PoolTimeout

from corpus.database import Database, is_connection_loss, translate
from corpus.errors import BrainError, DatabaseError, DatabaseUnavailable
from corpus.settings import Settings
from encoders.base import Encoder
from search_server import vectors
from search_server.audit import Audit
from search_server.encoding import QueryEncoder
from search_server.errors import DatabaseGone, DatabaseUnsupported, SearchProblem, TimedOut
from search_server.filters import Filters, effective_kinds
from search_server.finish import Finisher
from search_server.fusion import EQUAL_WEIGHTS, LISTS, ListName
from search_server.gate import Gate
from search_server.lists import Lists
from search_server.params import SearchParams
from search_server.resolve import find_named_papers
from search_server.state import ServerState
from search_server.vectors import may_ask_again
from search_server.words.follow import Follower
from search_server.work import Work

T = TypeVar("T")
_POOL_TIMEOUT_S = 1.2
_PAUSE_S = 0.1
_AGAIN_S = 1.5
"""How long a question is asked again while connections break."""


class SearchService:
    """Lives as long as a server, or as one command. Made by `open`."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        share_index: bool = False,
        load: Callable[..., Encoder] | None = None,
        n_running: int = 8,
        n_waiting: int = 64,
    ) -> None:
        self.database = database
        self.settings = settings
        self.pool = vectors.open_pool(database, min_size=2, max_size=3 * n_running, timeout_s=_POOL_TIMEOUT_S)
        self.encoder = QueryEncoder(cache=settings.cache_dir, load=load)
        self.words = Follower(database, settings.home_dir / "word-index", share=share_index)
        self.state = ServerState(database, self.pool, self.encoder)
        self.gate = Gate(n_running, n_waiting)
        self.lists = Lists(self.pool, self.encoder, self.words, self.state)
        self.finisher = Finisher(self.lists)
        self.audit = Audit(self.pool, self.state)
        self._renewed_at = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self.listeners: list[Callable[[dict[str, Any]], None]] = []

    # -- life -----------------------------------------------------------------------------------------------------------

    @classmethod
    @asynccontextmanager
    async def open(cls, database: Database, settings: Settings, **more: Any) -> AsyncIterator[SearchService]:
        """Start following and loading at once; end both at the end. The embedded database is started here and only here."""
        await asyncio.to_thread(database.ensure_started)
        service = cls(database, settings, **more)
        await service.start()
        try:
            yield service
        finally:
            await service.stop()

    async def start(self) -> None:
        """Begin; returns at once."""
        await self.pool.open(wait=False)
        self.words.start()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.state.refresh(), 3)
        self._tasks += [asyncio.create_task(self.state.keep()), asyncio.create_task(self.audit.keep())]

    async def stop(self) -> None:
        """End all threads, tasks and connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self.words.stop)
        self.encoder.close()
        self.lists.close()
        with contextlib.suppress(Exception):
            await self.pool.close(timeout=2)

    async def wait_ready(self, patience: timedelta, *, vectors: bool = True) -> None:
        """Wait until words (and, with `vectors`, the encoder) can answer, or the time is over."""
        end = time.monotonic() + patience.total_seconds()
        await asyncio.to_thread(self.words.wait_open, patience)
        while vectors and time.monotonic() < end:
            state = self.encoder.state["state"]
            if state in {"ready", "down"} or (self.state.is_known and self.state.encoder_row is None):
                return
            await asyncio.sleep(0.05)

    # -- questions --------------------------------------------------------------------------------------------------------

    async def search(self, params: SearchParams) -> dict[str, Any]:
        """Answer one question: the JSON of `/brain_search`. Raises a SearchProblem."""
        async with self.gate.enter():
            started = time.perf_counter()
            try:
                answer = await self.on_good_connections(lambda: self._answer(params, started))
            except TimeoutError as error:
                raise self.problem_of(PoolTimeout()) from error
            except (psycopg.Error, PoolTimeout, DatabaseError) as error:
                raise self.problem_of(error) from error
        for listen in self.listeners:
            listen(answer)
        return answer

    async def on_good_connections(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask; when connections are lost on the way, ask again on new ones, of another host where there are several.

        `ask` only reads. Raises what the last try raised.
        """
        started = time.monotonic()
        is_second = False
        while True:
            began = time.monotonic()
            try:
                return await ask()
            except (psycopg.OperationalError, DatabaseUnavailable) as error:
                lost = error.__cause__ if isinstance(error, DatabaseUnavailable) else error
                is_late = is_second and began - started > _AGAIN_S
                if is_late or lost is None or isinstance(lost, PoolTimeout) or not may_ask_again(lost):
                    raise
            if is_second:
                await asyncio.sleep(_PAUSE_S)  # a server that refuses at once is not hammered
            is_second = True
            if is_connection_loss(lost):
                await self._renew(began)

    async def _renew(self, began: float) -> None:
        """Replace all connections that are older than a question which lost one: a host that is gone broke them all."""
        if began >= self._renewed_at:
            self._renewed_at = time.monotonic()
            await self.pool.drain()

    async def _answer(self, params: SearchParams, started: float) -> dict[str, Any]:
        await self._check_database()
        tuned = self.state.tuned
        weights: dict[ListName, float] = dict(params.weights or self._stored_weights() or EQUAL_WEIGHTS)
        per_list = params.per_list or max(tuned.per_list, params.k)
        work = Work(params, weights, per_list, params.fusion or tuned.fusion)
        topics = await self.state.topic_ids(params.topic)
        without = await self.state.topic_ids(params.exclude_topic)
        kinds, dropped = effective_kinds(params.kind, params.exclude_kind)
        work.filters = Filters(topics, without, kinds, dropped, params.year_from, params.year_to)
        named, _ = await asyncio.gather(find_named_papers(self.lists, work), self.lists.ask(work))
        if work.n_timeouts and work.n_timeouts == len(work.asked_lists):
            raise TimedOut("No list answered within its time.", mend="Ask again, or ask fewer lists.")
        fused = await self.lists.fuse(work)
        hits = await self.finisher.hits(work, fused, named)
        self.audit.offer(work)
        explained = {"explain": await self.finisher.explain(work)} if params.explain else {}
        work.took["total"] = (time.perf_counter() - started) * 1000
        return {
            "query": params.q, "k": params.k, "n_hits": len(hits),
            "took_ms": {name: round(work.took.get(name, 0.0), 2) for name in ("encode", *LISTS, "total")},
            "encoder": self.state.encoder_row.name if self.state.encoder_row else None,
            "degraded": work.degraded, "hits": hits, **explained,
        }  # fmt: skip

    def _stored_weights(self) -> dict[ListName, float] | None:
        stored = self.state.tuned.weights
        return {name: float(stored.get(name, 0.0)) for name in LISTS} if stored else None

    # -- trouble --------------------------------------------------------------------------------------------------------

    async def _check_database(self) -> None:
        """While the database is known to be gone: one short look before any list is asked, and the reason told."""
        failure = self.state.failure
        if self.state.failed_at is None or failure is None:
            return
        if not isinstance(failure, DatabaseUnavailable):
            raise self.problem_of(failure)
        async with self.pool.connection() as connection:
            await connection.execute("SELECT 1")
        self.state.failed_at, self.state.failure = None, None

    def problem_of(self, error: Exception) -> SearchProblem:
        """What a caller is told about an error of the database."""
        if isinstance(error, PoolTimeout):
            return DatabaseGone(
                f"The database {self.database.url.masked} does not answer.",
                mend="Start it, or wait: the server goes on by itself when it is back.",
            )
        known = translate(error, self.database) if isinstance(error, psycopg.Error) else error
        if isinstance(known, DatabaseUnavailable):
            return DatabaseGone(known.what, mend=known.mend)
        if isinstance(known, BrainError):
            return DatabaseUnsupported(known.what, mend=known.mend)
        return DatabaseGone(str(known))
